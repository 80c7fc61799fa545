"""Edit scripts: monotonic alignments of two sequences. Start with `math.md`, then `structure.py`."""
