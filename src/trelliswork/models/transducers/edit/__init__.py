"""Strings rewritten from left to right: insert, substitute, copy and delete, and the sum over all ways to do so.

config.py       settings
transducer.py   the model
presets.py      its name and what differs from the defaults
recipe.py       how it is trained by name
"""
