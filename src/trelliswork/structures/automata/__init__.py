"""Weighted finite-state acceptors and transducers. Start with `math.md`, then `structure.py`.

structure.py, solver.py     machines, and the sum over their paths for any semiring; both solvers of the queries
symbols.py, build.py        symbol tables; machines from strings, lists of strings and emissions
rational.py, compose.py     union, concatenation, star, projection; composition and intersection
epsilon.py, determinise.py  smaller machines of the same strings: without epsilon, deterministic, pushed, minimal
levels.py, closure.py       the order of a sum over paths; all paths of a machine with cycles
search.py                   the k best paths and strings
ngram_counts.py, ngram_arrays.py, ngram_pruning.py, ngram_tries.py    n-gram models as flat tries: counts, smoothing,
                            pruning, from lists of n-grams
passes.py, kernels.py, compose_kernels.py    the same by numba
"""
