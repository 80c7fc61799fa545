"""Networks over the states of transition systems: units that read a state and earlier ones, and their kernels.

`unit` has the network (TBRU) and its run through a system; `parsing` and `frames` have what parsers put in, and the
tagger that a parser reads; `states` has the fast ways of a feed-forward unit, over the kernels.
"""

from trelliswork.nn.transitions.frames import FrameUnit
from trelliswork.nn.transitions.parsing import ParsingUnit, TaggingUnit
from trelliswork.nn.transitions.unit import TBRU, RecurrentSystem, Unrolled, unroll

__all__ = ["TBRU", "FrameUnit", "ParsingUnit", "RecurrentSystem", "TaggingUnit", "Unrolled", "unroll"]
