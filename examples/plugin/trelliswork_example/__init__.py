"""An encoder, a data format, a model with a name and a structure for Trelliswork, in a package of their own."""
