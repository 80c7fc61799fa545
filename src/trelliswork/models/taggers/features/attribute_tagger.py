"""A tagger over attributes that come with the tokens, not from templates: CRFsuite's data, or dicts of your own.

>>> tagger = AttributeTagger.fit(list(read_crfsuite("train.crfsuite")))       # doctest: +SKIP
>>> tagger = AttributeTagger.from_crfsuite("model.crfsuite")                  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trelliswork.data import Sentence
from trelliswork.data.attributes import AttributeRows, HashedIndex, HashedNames, KeyIndex, Templates, from_dicts
from trelliswork.data.attributes.dicts import EntryNames, Token
from trelliswork.data.attributes.key_index import keys_of
from trelliswork.data.attributes.rows import offsets_of
from trelliswork.data.crfsuite import ATTRIBUTES, CRFsuiteModel, read_crfsuite_model
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.models.taggers.features.corpus import TaggedData
from trelliswork.models.taggers.features.crf.model import FeatureCRF
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.encoding import blocks_of
from trelliswork.models.taggers.features.learners.config import LearningConfig
from trelliswork.models.taggers.features.tagger import FeatureTagger
from trelliswork.models.taggers.labels import Labels
from trelliswork.runtime.arrays import Array

TRANSITIONS_ONLY = Templates.parse(["B"])


class AttributeTagger(FeatureTagger):
    """A `FeatureCRF` over what is in `Sentence.extra["attributes"]`: for each token a dict or a list of names."""

    KIND = "AttributeTagger"
    reads = "attributes"

    @classmethod
    def of(cls, crf: FeatureCRF, names: Sequence[str], config: LearningConfig | None = None) -> AttributeTagger:
        """Return a tagger of a trained CRF whose attributes have these names; weights of 0 are left out.

        Args:
            crf: the trained CRF.
            names: the names of its attributes, by number.
            config: the settings to keep with it; those without constraints if None.

        Returns:
            The tagger.
        """
        labels = Labels.as_written([crf.labels])
        smaller, kept = crf.compact()
        own = names_left(names, smaller, kept)
        return cls(TRANSITIONS_ONLY, labels, smaller, config or LearningConfig(constrained=False), own)

    @classmethod
    def from_crfsuite(cls, path: str | Path) -> AttributeTagger:
        """Return a model that CRFsuite trained: its binary file, or the text of `crfsuite dump`."""
        tagger = cls.of(*crf_of(read_crfsuite_model(path)))
        tagger.metrics["data"] = {"converted_from": Path(path).name}
        return tagger

    @classmethod
    def fit(
        cls,
        train: Sequence[Sentence] | TaggedData,
        config: LearningConfig | None = None,
        *,
        templates: Templates | None = None,
        features: object = None,
        **options: Any,
    ) -> FeatureTagger:
        """Learn from tagged sentences that have attributes; as `FeatureTagger.fit`, without what makes attributes.

        Args:
            train: tagged sentences with attributes, or `TaggedData` of them.
            config: the settings of learning; `LearningConfig()` if None.
            templates: must be None, as the attributes come with the data.
            features: must be None too.

        Returns:
            The tagger.
        """
        if templates is not None or features is not None:
            given = "template" if templates is not None else "function"
            raise TrellisworkError(f"the attributes come with the data; leave the {given} out or give CoNLL columns")
        data = TaggedData.of(train)
        for block in blocks_of(data.sentences):
            attributes_of_all(block)  # an error names file and line
        tagger = super().fit(data, config, templates=TRANSITIONS_ONLY, features=attributes_of, **options)
        tagger.features = None
        return tagger

    def rows(self, sentences: Sequence[Sentence]) -> AttributeRows:
        lengths, counts, keys, values, _ = attributes_of_all(sentences)
        return self.crf.rows(lengths, counts, keys, values)


def names_left(names: Sequence[str], smaller: FeatureCRF, kept: Array) -> Sequence[str]:
    """Return the names of the attributes that a smaller CRF has kept.

    Args:
        names: the names of all attributes.
        smaller: the CRF that has kept some of them.
        kept: their numbers.

    Returns:
        The names, by their new numbers.
    """
    hashed = isinstance(smaller.index, HashedIndex)
    return HashedNames(smaller.conjunctions) if hashed else [names[i] for i in kept]


def attributes_of(sentence: Sentence) -> Sequence[Token]:
    """Return the attributes of each token of a sentence that must have them."""
    attributes = sentence.extra.get(ATTRIBUTES)
    if not isinstance(attributes, list) or len(attributes) != len(sentence):
        got = "none" if attributes is None else type(attributes).__name__
        got = f"{len(attributes)}" if isinstance(attributes, list) else got
        where = f'in a CRFsuite data file or under "{ATTRIBUTES}" in JSON lines'
        problem = f"expected the attributes of {len(sentence)} tokens, {where}, got {got}"
        raise DataError(sentence.file or "sentence", problem, line=sentence.line)
    return attributes


def attributes_of_all(sentences: Sequence[Sentence]) -> tuple[Array, Array, Array, Array | None, EntryNames]:
    """Return what `from_dicts` returns; an error names the file and line of the sentence."""
    given = [attributes_of(sentence) for sentence in sentences]
    try:
        return from_dicts(given)
    except DataError:
        for sentence, each in zip(sentences, given, strict=True):
            try:
                from_dicts([each])
            except DataError as error:
                raise DataError(sentence.file or "sentence", error.problem, line=sentence.line) from error
        raise


def crf_of(model: CRFsuiteModel) -> tuple[FeatureCRF, list[str]]:
    """Return CRFsuite's weights as ours, and the names of the attributes."""
    states = sorted(model.states)
    owners = np.array([attribute for attribute, _ in states], np.int64)
    counts = np.bincount(owners, minlength=len(model.attributes))
    arcs = np.array(sorted(model.transitions), np.int64).reshape(-1, 2)
    labels = np.array([label for _, label in states], np.int32)
    parameters = Parameters(len(model.labels), offsets_of(counts), labels, arcs)
    weights = [model.states[each] for each in states] + [model.transitions[i, j] for i, j in arcs.tolist()]
    index = KeyIndex.of(keys_of(model.attributes))
    return FeatureCRF(tuple(model.labels), index, parameters, np.array(weights, np.float64)), model.attributes
