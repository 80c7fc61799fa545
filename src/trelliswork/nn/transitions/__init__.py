"""Networks over the states of transition systems: units that read a state and earlier ones, and their kernels.

`unit` (TBRU) is the network, `unrolling` its run through a system, `parsing` and `frames` what parsers put in,
`tagging` one that a parser reads; `search` and `states` are the fast ways of a feed-forward unit, over `kernels`,
`beam_kernels` and `path_kernels`.
"""

from trelliswork.nn.transitions.frames import FrameUnit
from trelliswork.nn.transitions.parsing import ParsingUnit
from trelliswork.nn.transitions.tagging import TaggingUnit
from trelliswork.nn.transitions.unit import TBRU
from trelliswork.nn.transitions.unrolling import RecurrentSystem, Unrolled, unroll

__all__ = ["TBRU", "FrameUnit", "ParsingUnit", "RecurrentSystem", "TaggingUnit", "Unrolled", "unroll"]
