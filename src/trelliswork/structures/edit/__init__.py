"""Edit scripts: monotonic alignments of two sequences. Start with `math.md`, then `structure.py`.

structure.py                the recursion over any semiring: counts, all derivatives
solver.py, kernels.py       log Z, marginals, argmax, top_k, samples
"""
