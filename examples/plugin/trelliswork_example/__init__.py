"""An encoder, a data format and a structure for Trelliswork, in a package of their own."""
