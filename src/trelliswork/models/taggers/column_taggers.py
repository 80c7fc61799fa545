"""Taggers for the columns that a model reads next to the words, kept with it: new text need not have the columns.

The model itself learns from columns as these taggers guess them, each fifth of the training data by taggers of the
other four, so that it sees the mistakes it will meet.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Self

from trelliswork.data import Sentence
from trelliswork.errors import TrellisworkError
from trelliswork.logs import count
from trelliswork.models.loading import model_folders
from trelliswork.models.recipe import Note
from trelliswork.models.taggers.features.corpus import TaggedData
from trelliswork.models.taggers.features.learners.config import LearningConfig
from trelliswork.models.taggers.features.tagger import FeatureTagger

FOLDS = 5
MOST_VALUES = 500  # different values of a column that can be predicted
SETTINGS = LearningConfig(algorithm="perceptron", max_iterations=5)  # seconds, and about as good as a CRF
UNKNOWN = "_"  # how a column says that it is empty


class ColumnTaggers:
    """A tagger for each column next to the words; those of a folder are read when they are first needed."""

    def __init__(self, taggers: Sequence[FeatureTagger] | None = None, folder: Path | None = None) -> None:
        self.folder = folder
        if taggers is not None:
            self.taggers = list(taggers)

    @classmethod
    def fit(cls, train: Sequence[Sentence]) -> Self:
        """Learn each column of some sentences from their words."""
        columns = (TaggedData(_as_tags(train, i), "plain") for i in range(len(train[0].features)))
        return cls([FeatureTagger.fit(column, SETTINGS) for column in columns])

    @cached_property
    def taggers(self) -> list[FeatureTagger]:
        """One for each column."""
        return [FeatureTagger.load(folder) for folder in model_folders(self.folder or "")]

    def with_columns(self, sentences: Sequence[Sentence]) -> list[Sentence]:
        """Return the sentences with all columns: those that are missing, or nothing but _, are predicted."""
        wanted = [i for i, sentence in enumerate(sentences) if len(sentence) and _is_incomplete(sentence)]
        complete = list(sentences)
        for i, columns in zip(wanted, self._predicted([sentences[i] for i in wanted]), strict=True):
            given = sentences[i].features or ((UNKNOWN,),) * len(columns)
            chosen = (mine if _is_empty(theirs) else theirs for mine, theirs in zip(columns, given, strict=False))
            complete[i] = replace(sentences[i], features=tuple(chosen))
        return complete

    def replaced(self, sentences: Sequence[Sentence]) -> list[Sentence]:
        """Return the sentences with predicted columns alone."""
        pairs = zip(sentences, self._predicted(sentences), strict=True)
        return [replace(sentence, features=columns) for sentence, columns in pairs]

    def _predicted(self, sentences: Sequence[Sentence]) -> list[tuple[tuple[str, ...], ...]]:
        if not sentences:
            return []
        bare = [Sentence(sentence.words) for sentence in sentences]
        by_column = [tagger.tag(bare) for tagger in self.taggers]
        return [tuple(tuple(tags[i]) for tags in by_column) for i in range(len(bare))]

    def save(self, directory: str | Path) -> None:
        """Write a model folder for each, in the place of others; where they are already, nothing is to be done.

        Those of a model that was there before are replaced one by one, so that none is missing after a kill.
        """
        target = Path(directory)
        if self.folder is not None and self.folder.exists() and target.exists() and target.samefile(self.folder):
            return
        for i, tagger in enumerate(self.taggers, 1):
            tagger.save(target / f"{i:02d}")
        for further in model_folders(target)[len(self.taggers) :]:
            shutil.rmtree(further)
        self.folder = target


def predicted_columns(
    train: Sequence[Sentence], dev: Sequence[Sentence], note: Note
) -> tuple[list[Sentence], list[Sentence], ColumnTaggers]:
    """Return both with predicted columns, and their taggers; those of the training data have not seen it.

    Args:
        train: the training data with its columns.
        dev: the dev data with its columns.
        note: called with how often the columns are right.

    Returns:
        Both with columns as they are predicted, and the taggers of the columns.
    """
    for i in range(len(train[0].features)):
        n_values = len({value for sentence in train for value in sentence.features[i]})
        if n_values > MOST_VALUES:
            raise TrellisworkError(
                f"--predict-columns: expected columns of at most {MOST_VALUES} different values, got {n_values:,} in "
                f"number {i + 1} in addition to the words; leave it out with --feature-columns"
            )
    taggers = ColumnTaggers.fit(train)
    sentences: list[Sentence] = list(train)
    n_folds = min(FOLDS, len(train))
    for fold in range(n_folds if n_folds > 1 else 0):
        rest = [sentence for i, sentence in enumerate(train) if i % n_folds != fold]
        sentences[fold::n_folds] = ColumnTaggers.fit(rest).replaced(train[fold::n_folds])
    guessed = taggers.replaced(dev)
    note(f"columns: {count(len(taggers.taggers), 'tagger')} learned; right on dev: {_accuracy(dev, guessed)}")
    return sentences, guessed, taggers


def _as_tags(sentences: Sequence[Sentence], column: int) -> list[Sentence]:
    return [Sentence(each.words, each.features[column]) for each in sentences]


def _accuracy(gold: Sequence[Sentence], predicted: Sequence[Sentence]) -> str:
    shares = []
    for i in range(len(gold[0].features)):
        pairs = [
            pair
            for a, b in zip(gold, predicted, strict=True)
            for pair in zip(a.features[i], b.features[i], strict=True)
        ]
        shares.append(f"{100 * sum(a == b for a, b in pairs) / max(len(pairs), 1):.2f}%")
    return ", ".join(shares)


def _is_incomplete(sentence: Sentence) -> bool:
    return not sentence.features or any(map(_is_empty, sentence.features))


def _is_empty(column: Sequence[str]) -> bool:
    return all(value == UNKNOWN for value in column)
