"""Spanning trees: the record that the distributions read."""

from trelliswork.structures.arc_solver import Family
from trelliswork.structures.spanning import kernels, search, structure, tree_kernels

FAMILY = Family(
    "spanning",
    structure,
    False,
    sums=kernels.matrix_tree,
    changes=kernels.posterior_changes,
    best=tree_kernels.best_trees,
    top=search.top_trees,
    draw=tree_kernels.sample_trees,
)
STRUCTURE = FAMILY.structure()
