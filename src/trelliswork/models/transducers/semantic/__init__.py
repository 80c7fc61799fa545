"""From questions to meanings: trees and queries.

forms.py         what targets are: lambda terms, Prolog terms, other brackets; and what is the same
constraints.py   what comes out always closes its brackets
config.py        settings
seq2tree.py      the network with a hierarchical decoder
"""
