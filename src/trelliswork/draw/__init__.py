"""Pictures of structures as SVG, for notebooks, reports and tutorials; standard library alone.

>>> from trelliswork import draw
>>> picture = draw.segments(["New", "York", "sleeps"], [(0, 2, "LOC"), (2, 3, "O")])
>>> picture.save("segments.svg")  # doctest: +SKIP
"""

from trelliswork.draw.alignment import alignment
from trelliswork.draw.automaton import automaton
from trelliswork.draw.dependencies import dependencies
from trelliswork.draw.segments import segments
from trelliswork.draw.svg import Drawing
from trelliswork.draw.tree import tree
from trelliswork.draw.trellis import trellis

__all__ = ["Drawing", "alignment", "automaton", "dependencies", "segments", "tree", "trellis"]
