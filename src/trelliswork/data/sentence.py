"""A sentence as the readers give it and the taggers take it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trelliswork.data.json_values import Json
from trelliswork.draw.notebook import Piece, Rich, Table
from trelliswork.errors import TrellisworkError

if TYPE_CHECKING:  # both import numpy, which `train --help` does without
    from torch import Tensor

    from trelliswork.runtime.arrays import Float


@dataclass(frozen=True, slots=True)
class Sentence(Rich):
    """Words, their tags if known, further columns, and where the sentence was read.

    `features` holds one tuple per extra column (part of speech, ...), each as long as `words`; `line` is the
    1-based line of the first token, `lines` the line of each where they do not follow one another. `extra` has
    what else a JSON record says, such as an id; it goes out as it came in.

    Of raw text, `text` is the sentence as it is written, `offsets` the place (start, end) of each word in the whole
    text, and `multiword` the tokens that are several words: the first, one after the last, and how it is written.

    Of a treebank, `heads` has the head of each word, words counted from 1 and 0 being the root, with the labels of the
    arcs as `tags`; or `brackets` has the constituents, outermost first, as (start, end, label) with `end` exclusive,
    with the parts of speech as `tags`. `columns` are further columns by their names (LEMMA, UPOS, XPOS,
    FEATS); of a tagged file in CoNLL-U, LEMMA alone.

    Of a pair of strings, `words` are the symbols of the source and `target` those of the target; `text` and
    `target_text` are both as they were read.

    >>> len(Sentence(("Ann", "sings"), ("B-PER", "O"), (("NNP", "VBZ"),)))
    2
    """

    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None
    features: tuple[tuple[str, ...], ...] = ()
    line: int = 1
    file: str = ""
    lines: tuple[int, ...] = field(default=(), compare=False, repr=False)
    extra: Mapping[str, Json] = field(default_factory=dict, compare=False, repr=False)
    text: str = field(default="", compare=False, repr=False)
    offsets: tuple[tuple[int, int], ...] = field(default=(), compare=False, repr=False)
    multiword: tuple[tuple[int, int, str], ...] = field(default=(), compare=False, repr=False)
    heads: tuple[int, ...] | None = None
    brackets: tuple[tuple[int, int, str], ...] | None = None
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False, repr=False)
    target: tuple[str, ...] | None = None
    target_text: str = field(default="", compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.words)

    def _shown(self) -> Sequence[Piece]:
        """Return a table for notebooks, with a column for each word."""
        further = {f"column {i}": column for i, column in enumerate(self.features, 1)}
        known = {"tags": self.tags, "heads": self.heads, "target": self.target, **further, **self.columns}
        return [Table([(name, *values) for name, values in known.items() if values], ("words", *self.words))]

    def line_of(self, i: int) -> int:
        """Return the line of token `i`."""
        return self.lines[i] if self.lines else self.line + i


# A sequence of real-valued vectors with a label each: letters as pixels, frames of sound.


@dataclass(frozen=True, eq=False)
class VectorSequence:
    """One row per position, and its labels if they are known.

    >>> import torch
    >>> len(VectorSequence(torch.zeros(3, 128), ("a", "n", "d")))
    3
    """

    vectors: Float[Tensor, "n d"]
    labels: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.vectors.dim() != 2:
            raise TrellisworkError(f"vectors must be (n, d), one row per position; got {tuple(self.vectors.shape)}")
        if self.labels is not None and len(self.labels) != len(self.vectors):
            raise TrellisworkError(f"expected {len(self.vectors)} labels, one per vector; got {len(self.labels)}")

    def __len__(self) -> int:
        return len(self.vectors)
