"""Semirings: the same recursion over a structure yields sums, best scores, counts or samples, depending on these.

>>> from trelliswork.semirings import Counting, Log, Max
>>> scores = torch.tensor([0.0, 1.0, -torch.inf])
>>> [semiring.sum(semiring.lift(scores), dim=-1).item() for semiring in (Max(), Counting())]
[1.0, 2.0]
"""

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
