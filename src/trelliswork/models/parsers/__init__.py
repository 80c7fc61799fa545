"""Parsers: models whose answer is a tree over the words.

dependency/     heads and labels, every arc scored
transition/     heads and labels, decision by decision
constituency/   brackets: spans by CKY, treebank grammars
"""
