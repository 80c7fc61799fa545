"""Dependency trees: heads and labels of words.

parser.py, pins.py                             base class, report, known heads and labels
biaffine.py, arc_explanation.py                the graph-based parser, which scores every arc
transition.py, decision_explanation.py         the transition-based parser, which builds trees decision by decision
config.py                                      settings of both
"""
