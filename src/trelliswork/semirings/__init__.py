"""Semirings: what a recursion computes is decided here, how it runs through a structure is not."""

from trelliswork.semirings.arithmetic import Boolean, Counting, Real
from trelliswork.semirings.base import Semiring
from trelliswork.semirings.expectation import Expectation
from trelliswork.semirings.extremum import Max, Tropical
from trelliswork.semirings.kbest import KBest
from trelliswork.semirings.log import Log
from trelliswork.semirings.sampling import Sampling

__all__ = [
    "Boolean",
    "Counting",
    "Expectation",
    "KBest",
    "Log",
    "Max",
    "Real",
    "Sampling",
    "Semiring",
    "Tropical",
]
