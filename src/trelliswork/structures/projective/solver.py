"""Projective trees: the record that the distributions read."""

from trelliswork.structures.arc_solver import Family
from trelliswork.structures.projective import kernels, scaled_kernels, search, structure

FAMILY = Family(
    "projective",
    structure,
    True,
    sums=scaled_kernels.inside_outside,
    changes=scaled_kernels.posterior_changes,
    best=kernels.best_trees,
    top=search.top_trees,
    draw=scaled_kernels.sample_trees,
)
STRUCTURE = FAMILY.structure()
