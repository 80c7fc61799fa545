"""Context-free grammars in Chomsky normal form. Start with `math.md`, then `grammar.py` and `structure.py`."""
