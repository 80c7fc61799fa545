"""Constituency trees: spans scored by a network, and treebank grammars.

parser.py, derivations.py    answers, unary chains, trees of the highest expected F1
bracket_*.py                                       probabilities of all brackets, and what else a tree may be
config.py                                          settings of both
span_*.py, folded_spans.py                         labelled spans and CKY; answers with labels summed out
pcfg*.py, treebank_rules.py                        grammars and their rules
grammar_words.py                     what grammars know of words
"""
