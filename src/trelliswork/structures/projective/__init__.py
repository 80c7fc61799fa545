"""Projective dependency trees (Eisner). Start with `math.md`, then `structure.py`.

structure.py                Eisner's recursion over any semiring: counts, all derivatives
solver.py, ../arc_solver.py the record; the queries that all dependency trees share, labels included
scaled_kernels.py           log Z, marginals and their derivative in exp space
kernels.py                  the same in log space; argmax and samples
"""
