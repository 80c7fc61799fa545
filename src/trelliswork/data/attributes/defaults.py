"""Templates that need not be written: chosen by the columns there are."""

from __future__ import annotations

from trelliswork.data.attributes.templates import Templates

_WORDS = """
U00:%x[-2,0]
U01:%x[-1,0]
U02:%x[0,0]
U03:%x[1,0]
U04:%x[2,0]
U05:%x[-1,0]/%x[0,0]
U06:%x[0,0]/%x[1,0]
U10:%x[0,0.lower]
U11:%x[-1,0.lower]
U12:%x[1,0.lower]
U20:%x[0,0.prefix1]
U21:%x[0,0.prefix2]
U22:%x[0,0.prefix3]
U23:%x[0,0.prefix4]
U24:%x[0,0.suffix1]
U25:%x[0,0.suffix2]
U26:%x[0,0.suffix3]
U27:%x[0,0.suffix4]
U30:%x[-1,0.short]
U31:%x[0,0.short]
U32:%x[1,0.short]
U33:%x[-1,0.short]/%x[0,0.short]/%x[1,0.short]
U34:%x[0,0.shape]
B
"""

_COLUMN = """
U{c}00:%x[-2,{c}]
U{c}01:%x[-1,{c}]
U{c}02:%x[0,{c}]
U{c}03:%x[1,{c}]
U{c}04:%x[2,{c}]
U{c}05:%x[-2,{c}]/%x[-1,{c}]
U{c}06:%x[-1,{c}]/%x[0,{c}]
U{c}07:%x[0,{c}]/%x[1,{c}]
U{c}08:%x[1,{c}]/%x[2,{c}]
U{c}09:%x[-2,{c}]/%x[-1,{c}]/%x[0,{c}]
U{c}10:%x[-1,{c}]/%x[0,{c}]/%x[1,{c}]
U{c}11:%x[0,{c}]/%x[1,{c}]/%x[2,{c}]
"""


def default_templates(n_columns: int) -> Templates:
    """Words, affixes and shapes in a window; windows, pairs and triples of every further column."""
    further = "".join(_COLUMN.format(c=c) for c in range(1, n_columns))
    return Templates.parse((_WORDS + further).splitlines())
