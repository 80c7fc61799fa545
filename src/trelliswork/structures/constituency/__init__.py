"""Constituency trees with labelled spans. Start with `math.md`, then `structure.py`.

structure.py                CKY over any semiring: counts, all derivatives
solver.py                   both solvers, and the passes of the kernels over arrays
scaled_kernels.py           log Z and marginals in exp space
kernels.py                  the same in log space, of binary trees and of trees of any arity; scores of values
label_kernels.py            the best label of a span, and sums over labels
tree_kernels.py             argmax and samples
"""
