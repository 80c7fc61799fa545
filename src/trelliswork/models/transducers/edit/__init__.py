"""Strings rewritten from left to right: insert, substitute, copy and delete, and the sum over all ways to do so.

config.py       settings
transducer.py   the model
"""
