"""The list of structures: each is one record of its folder. The contract tests, the benchmarks and `warmup` iterate it.

A newcomer copies a folder and adds its record here, and its distribution to `distributions/registry.py`. `beam` is not
in the list: it sums over nothing.
"""

from trelliswork.structures.automata.solver import STRUCTURE as AUTOMATA
from trelliswork.structures.chain.solver import STRUCTURE as CHAIN
from trelliswork.structures.constituency.solver import STRUCTURE as CONSTITUENCY
from trelliswork.structures.ctc.solver import STRUCTURE as CTC
from trelliswork.structures.ctc.strings import STRUCTURE as CTC_STRINGS
from trelliswork.structures.edit.solver import STRUCTURE as EDIT
from trelliswork.structures.factors.solver import STRUCTURE as FACTORS
from trelliswork.structures.grammar.solver import STRUCTURE as GRAMMAR
from trelliswork.structures.projective.solver import STRUCTURE as PROJECTIVE
from trelliswork.structures.segments.solver import STRUCTURE as SEGMENTS
from trelliswork.structures.spanning.solver import STRUCTURE as SPANNING

STRUCTURES = (
    AUTOMATA, CHAIN, CONSTITUENCY, CTC, CTC_STRINGS, EDIT, FACTORS, GRAMMAR, PROJECTIVE, SEGMENTS, SPANNING,
)  # fmt: skip
