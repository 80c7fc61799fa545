"""Attention models from strings to strings: recurrent (Bahdanau, Luong) and transformers.

config.py       their settings
building.py     encoders, decoders and output layers by name
network.py      the network: examples, likelihood, storage
answering.py    beams, samples, constraints, alignments
learning.py     objectives beside the likelihood
pieces.py       symbols as the network reads them: words, characters or subwords
"""
