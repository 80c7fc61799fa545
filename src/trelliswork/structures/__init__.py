"""One folder for each family of y; `registry.py` lists their records.

Each has `structure.py` (parts and the reference recursions over any semiring), kernels for the hot queries, `record.py`
(both solvers of the queries, and an example) and `math.md`.
"""
