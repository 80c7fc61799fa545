"""Parsers: models whose answer is a tree over the words.

dependency/     heads and labels: every arc scored, or built decision by decision
constituency/   brackets: spans by CKY, treebank grammars
"""
