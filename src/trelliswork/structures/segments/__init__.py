"""Segmentations: semi-Markov models. Start with `math.md`, then `structure.py`."""
