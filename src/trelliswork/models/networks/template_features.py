"""The attributes of tokens that templates make, as numbers for direct connections to the labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trelliswork.data import Sentence
from trelliswork.data.attributes import KeyIndex, Templates
from trelliswork.data.attributes.key_index import keys_of
from trelliswork.data.attributes.templates import default_templates
from trelliswork.errors import TrellisworkError
from trelliswork.models.taggers.features.encoding import columns_of
from trelliswork.runtime.shapes import Int

Array = np.ndarray[Any, Any]
DEFAULT = "default"


def parse_templates(lines: Sequence[str], n_columns: int) -> Templates:
    """Templates of single tags; ("default",) stands for those that the columns suggest."""
    found = default_templates(n_columns) if tuple(lines) == (DEFAULT,) else Templates.parse(lines)
    found.check(n_columns)
    single = tuple(template for template in found.templates if not template.pairs)
    if not single:
        raise TrellisworkError("expected templates that begin with U, such as U00:%x[0,0], got none; add one")
    return Templates(single)


class TemplateFeatures:
    """Sentences as attribute numbers, one for each template; 0 where an attribute was not kept.

    >>> words = TemplateFeatures.from_sentences([Sentence(("a", "b", "a"))], ("U:%x[0,0]",), min_count=2)
    >>> words.names, words.encode([Sentence(("b", "a"))])[0].tolist()
    (['U:a'], [[0], [2]])
    """

    FIRST = 2  # padding and unknown come before, as in the vocabulary that the names are stored in

    def __init__(self, templates: Templates, names: Sequence[str]) -> None:
        self.templates, self.names = templates, list(names)
        self._index = KeyIndex.of(keys_of(self.names))
        if len(self._index) != len(self.names):
            raise TrellisworkError("expected names of attributes that differ, got some twice; copy the model again")

    @classmethod
    def from_sentences(cls, sentences: Sequence[Sentence], lines: Sequence[str], min_count: int) -> TemplateFeatures:
        """Keep the attributes that come at least `min_count` times."""
        lengths, columns = columns_of(sentences)
        templates = parse_templates(lines, len(columns))
        keys, _ = templates.keys(lengths, columns)
        index = KeyIndex()
        numbers = index.add(np.ascontiguousarray(keys).ravel())
        kept = np.bincount(numbers, minlength=len(index)) >= min_count
        first = np.full(len(index), numbers.size)
        np.minimum.at(first, numbers, np.arange(numbers.size))
        places = np.stack(np.divmod(first[kept], len(templates.templates)), 1)
        return cls(templates, templates.names(places, lengths, columns))

    @property
    def n_templates(self) -> int:
        return len(self.templates.templates)

    def encode(self, sentences: Sequence[Sentence]) -> list[Int[Tensor, "n t"]]:
        """The attributes of some sentences; many at once are much faster."""
        lengths, columns = columns_of(sentences)
        keys, _ = self.templates.keys(lengths, columns)
        found = self._index.find(np.ascontiguousarray(keys).ravel()).astype(np.int64)
        numbers = np.where(found < 0, 0, found + self.FIRST).reshape(-1, self.n_templates)
        return list(torch.from_numpy(numbers).split(lengths.tolist()))
