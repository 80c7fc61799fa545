"""Choices for each piece of a source, with the exact probability of each target of the piece.

The pieces are those of the best alignment of the best target. That a piece becomes some symbols is a pin, so that its
probability is the sum over all alignments that agree with the pin, as a share of the sum over all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from trelliswork.models.transducers.pair_ngram.chunk_model import ChunkModel
from trelliswork.models.transducers.pair_ngram.source_lattice import Chunks, SourceLattice
from trelliswork.models.transducers.transducer import SpanPin, Symbols

MOST_TRIED = 60  # targets of a piece, by their chunk pairs alone; all the others together are the rest


class PieceChoices(NamedTuple):
    """Source symbols [start, end), and what they may become with the probability of each, the most probable first."""

    start: int
    end: int
    shares: list[tuple[Symbols, float]]


def piece_choices(
    model: ChunkModel, source: Symbols, pins: Sequence[SpanPin], lattice: SourceLattice, target: Symbols
) -> list[PieceChoices]:
    """Return the choices of each piece given the pins; `lattice` is that of both, cut as the `target`; what is missing
    to 1 is that the source is cut elsewhere."""
    pinned, choices = {(pin.start, pin.end): pin.symbols for pin in pins}, []
    for start, end, written in _pieces(lattice.align(target).chunks, target, pins):
        shares = dict.fromkeys([written, *_targets(model, source[start:end])], 0.0)
        if (start, end) in pinned:
            shares[pinned[start, end]] = 1.0
        else:
            for symbols in shares:
                known = sorted([*pins, SpanPin(start, end, symbols)])
                shares[symbols] = min(math.exp(model.lattice(source, known).log_joint - lattice.log_joint), 1.0)
        choices.append(PieceChoices(start, end, sorted(shares.items(), key=lambda each: -each[1])))
    return choices


def _pieces(chunks: Chunks, target: Symbols, pins: Sequence[SpanPin]) -> Iterator[tuple[int, int, Symbols]]:
    """Yield the source of each chunk and what it becomes; what is pinned together is one piece."""
    for start, end, first, last in chunks:
        pin = next((each for each in pins if each.start <= start and end <= each.end), None)
        if pin is None:
            yield start, end, target[first:last]
        elif pin.start == start:
            yield pin.start, pin.end, pin.symbols


def _targets(model: ChunkModel, source: Symbols) -> list[Symbols]:
    """Return the targets that chunk pairs make of a piece with the highest probability without a context."""
    made: list[dict[Symbols, float]] = [{(): 1.0}]  # of its first symbols, as many as the place in the list
    for end in range(1, len(source) + 1):
        here: dict[Symbols, float] = {}
        for start in range(max(0, end - model.longest), end):
            for pair in range(*model.ranges.get(source[start:end], (0, 0))):
                weight = math.exp(model.ngrams.log_prob[pair + 1])
                for before, share in made[start].items():
                    symbols = before + model.chunks[pair][1]
                    here[symbols] = max(here.get(symbols, 0.0), share * weight)
        made.append(dict(sorted(here.items(), key=lambda each: -each[1])[:MOST_TRIED]))
    return list(made[-1])
