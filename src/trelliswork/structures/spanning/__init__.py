"""Spanning trees: non-projective dependency trees. Start with `math.md`, then `structure.py`.

structure.py                the matrix-tree theorem in torch: all derivatives
solver.py, ../arc_solver.py the record; the queries that all dependency trees share, labels included
kernels.py, log_kernels.py  log Z, marginals and their derivative: in exp space, in log space
tree_kernels.py             argmax and samples
"""
