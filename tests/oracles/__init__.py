"""Enumerators: every value of a small structure, one by one. The truth that tests compare with; exponential."""
