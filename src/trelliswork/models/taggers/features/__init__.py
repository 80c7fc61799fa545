"""Taggers that score with sparse features."""
