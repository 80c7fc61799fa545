"""Constituency trees: spans scored by a network, and treebank grammars.

config.py                    settings of both
parser.py, derivations.py    answers, unary chains, trees of the highest expected F1
bracket_explanation.py       probabilities of all brackets, and what else a tree may be
span_*.py, folded_spans.py   labelled spans and CKY; answers with labels summed out
pcfg.py, treebank_rules.py   grammars, their rules and storage
grammar_words.py             what grammars know of words
"""
