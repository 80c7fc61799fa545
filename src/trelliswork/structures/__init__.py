"""One folder for each family of y; `distributions/registry.py` lists their records.

Each has `structure.py` (parts and the reference recursions over any semiring), kernels for the hot queries, `solver.py`
(both solvers of the queries, and an example) and `math.md`. What folders share lies here:

record.py, reference.py, kernel_solver.py    what a structure is; its queries in plain torch, and by kernel
host_solver.py              scores of another device, asked by kernel on a copy
masks.py                    masks with holes
diagonals.py                charts by the width of their spans
arcs.py, arc_labels.py      the parts of dependency trees, projective or not, and labels on arcs
arc_solver.py, arc_kernels.py    their queries
frontier.py, frontier_kernels.py    searches: what is continued, what is dropped, the way back, what is certain
derivations.py              the k best derivations of any chart, found lazily; `solver.py` of a folder has the chart
"""
