"""Gradients written out by hand, as the equations have them: tested equal to autograd and to the kernels."""
