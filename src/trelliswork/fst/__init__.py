"""Weighted finite-state machines: acceptors, transducers, n-gram models and their file formats.

>>> from trelliswork import fst
>>> spell = fst.Transducer([(0, 0, "a", "a"), (0, 0, "b", "b"), (0, 0, "a", "b")], [0.0, 0.0, -2.0], final=0)
>>> spell.log_prob("bb", given="ab")
tensor(-2.1269)
"""

from trelliswork.distributions.acceptor import Acceptor, Transducer
from trelliswork.distributions.automaton import Path
from trelliswork.distributions.ngram_model import NGramModel
from trelliswork.fst.arpa import read_arpa, write_arpa
from trelliswork.fst.att import read_acceptor, read_symbols, read_transducer, write_att, write_symbols
from trelliswork.structures.automata.closure import lehmann, real_closure
from trelliswork.structures.automata.symbols import EPSILON, Symbols

__all__ = [
    "EPSILON",
    "Acceptor",
    "NGramModel",
    "Path",
    "Symbols",
    "Transducer",
    "lehmann",
    "read_acceptor",
    "read_arpa",
    "read_symbols",
    "read_transducer",
    "real_closure",
    "write_arpa",
    "write_att",
    "write_symbols",
]
