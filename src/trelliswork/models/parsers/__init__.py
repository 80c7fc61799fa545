"""Parsers: models whose answer is a tree over the words."""
