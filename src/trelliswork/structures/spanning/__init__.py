"""Spanning trees: non-projective dependency trees. Start with `math.md`, then `structure.py`."""
