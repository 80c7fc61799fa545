"""Binary constituency trees with labelled spans. Start with `math.md`, then `structure.py`."""
