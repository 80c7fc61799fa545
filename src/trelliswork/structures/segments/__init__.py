"""Segmentations: semi-Markov models. Start with `math.md`, then `structure.py`.

structure.py, factored.py   the parts, whole or factored, and the recursion over any semiring: counts, all derivatives
solver.py                   both solvers, and the passes of the kernels over arrays
scaled_kernels.py, kernels.py, part_kernels.py    log Z and marginals: in exp space, in log space, of factored scores
likelihood_kernels.py       log p of one value a row, in one kernel each way
dual_kernels.py             derivatives of marginals along a direction
path_kernels.py             scores of values, argmax, top_k, samples
scan.py                     sums in log n steps, for devices
"""
