"""The list of structures: each is one record of its folder. The contract tests, the benchmarks and `warmup` iterate it.

A newcomer copies a folder and adds its record here, and its distribution to `distributions/registry.py`. `beam` is not
in the list: it sums over nothing.
"""

from trelliswork.structures.automata.record import STRUCTURE as AUTOMATA
from trelliswork.structures.chain.record import STRUCTURE as CHAIN
from trelliswork.structures.constituency.record import STRUCTURE as CONSTITUENCY
from trelliswork.structures.ctc.record import STRUCTURE as CTC
from trelliswork.structures.ctc.strings import STRUCTURE as CTC_STRINGS
from trelliswork.structures.edit.record import STRUCTURE as EDIT
from trelliswork.structures.factors.record import STRUCTURE as FACTORS
from trelliswork.structures.grammar.record import STRUCTURE as GRAMMAR
from trelliswork.structures.projective.record import STRUCTURE as PROJECTIVE
from trelliswork.structures.segments.record import STRUCTURE as SEGMENTS
from trelliswork.structures.spanning.record import STRUCTURE as SPANNING

STRUCTURES = (
    AUTOMATA, CHAIN, CONSTITUENCY, CTC, CTC_STRINGS, EDIT, FACTORS, GRAMMAR, PROJECTIVE, SEGMENTS, SPANNING,
)  # fmt: skip
