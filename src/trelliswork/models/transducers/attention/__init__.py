"""Attention models from strings to strings: recurrent (Bahdanau, Luong) and transformers.

config.py       their settings
network.py      the network and its parts by name: examples, likelihood, storage, subwords
answering.py    beams, samples, constraints, alignments
learning.py     objectives other than the likelihood
"""
