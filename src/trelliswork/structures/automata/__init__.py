"""Weighted finite-state acceptors and transducers. Start with `math.md`, then `structure.py`."""
