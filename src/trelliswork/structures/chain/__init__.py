"""The linear chain: tag sequences. Start with `math.md`, then `structure.py`.

structure.py                the parts, and the recursions over any semiring: counts, all derivatives, any device
solver.py                   both solvers, and the passes of the kernels over arrays
kernels.py                  log Z and marginals: forward and backward
likelihood.py, likelihood_kernels.py    log p of one value a row, in one kernel each way
dual_kernels.py             derivatives of marginals along a direction
path_kernels.py             scores of values, argmax, top_k, samples
scan.py                     sums in log n steps, for devices
"""
