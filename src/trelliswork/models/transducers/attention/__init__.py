"""Attention models from strings to strings: recurrent (Bahdanau, Luong) and transformers.

network.py      the network and its parts by name: examples, likelihood, storage, subwords
answering.py    beams, samples, minimum risk, constraints, alignments
learning.py     objectives other than the likelihood
"""
