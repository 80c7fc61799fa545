"""Taggers and segmenters that score with a neural network."""
