"""Attention models from strings to strings: recurrent (Bahdanau, Luong) and transformers.

config.py       their settings
network.py      the network: examples, likelihood, storage
answering.py    beams, samples, constraints, alignments
learning.py     objectives beside the likelihood
"""
