"""Figures of the source code that may fall and not rise."""
