"""Connectionist temporal classification: frames aligned with label strings. Start with `math.md`.

structure.py                alignments with a known string over any semiring: counts, all derivatives
solver.py, kernels.py       log p of a string and its gradient
path_kernels.py             the best, the k best and sampled alignments
strings.py, search.py       a distribution over all strings; the best ones, exactly
beam.py, beam_kernels.py    beam search with language models and words
"""
