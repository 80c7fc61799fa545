"""Projective dependency trees (Eisner). Start with `math.md`, then `structure.py`."""
