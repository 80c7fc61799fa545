"""The linear chain: tag sequences. Start with `math.md`, then `structure.py`."""
