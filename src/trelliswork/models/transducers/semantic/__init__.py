"""From questions to meanings: trees and queries.

forms.py         what targets are: lambda terms, Prolog terms, other brackets; and what is the same
names.py         a lexicon of names, which are left open
stems.py         words by their stems
constraints.py   targets as trees, what bounds those that are written, and what makes them well-formed
seq2tree.py      the network with a hierarchical decoder
sql.py           SQL as a form of targets, and its grammar
seq2sql.py       the same network with a database
config.py        settings
"""
