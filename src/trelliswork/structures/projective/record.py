"""Projective trees: the record that the distributions read."""

from trelliswork.structures.arc_solver import Family
from trelliswork.structures.projective import kernels, scaled_kernels, structure

FAMILY = Family("projective", structure, True, scaled_kernels.inside_outside, kernels.best_trees, kernels.sample_trees)
STRUCTURE = FAMILY.structure()
