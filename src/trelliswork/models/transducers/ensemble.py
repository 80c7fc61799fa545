"""Several transducers that answer together, such as those that `train --seeds` leaves in one folder."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from trelliswork.data import Sentence
from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.models.base import Description
from trelliswork.models.loading import load, model_folders
from trelliswork.models.transducers.transducer import Symbols, Transduced, Transducer

FIRST, WIDER, MOST = 4, 4, 64  # best targets of each member: at first, how many times more, and at most


class TransducerEnsemble(Transducer):
    """p(target | source) = the mean of the members' p(target | source).

    The targets that some member finds among its k best are scored exactly by all. Every other one is at most as
    probable as the mean of what the members give to the last of theirs, so that it is known whether the best of all
    are among them; if not, k grows. Symbols of answers have no probabilities of their own.
    """

    search = "exact"

    def __init__(self, members: Sequence[Transducer]) -> None:
        if not members:
            raise TrellisworkError("expected transducers to put together, got none; give one at least")
        for i, member in enumerate(members, 1):
            if not (isinstance(member, Transducer) and member.supports_ensembling):
                kind = type(member).__name__
                raise TrellisworkError(
                    f"expected transducers with exact probabilities of pairs, got a {kind} as number {i}; drop it"
                )
            if member.format != members[0].format:
                raise TrellisworkError(
                    f"expected transducers with the same format of pairs, got {member.format} in number {i} and "
                    f"{members[0].format} in number 1; train all on the same data"
                )
        self.members, self.format = list(members), members[0].format
        self.metrics = {"data": members[0].metrics.get("data")}
        self.folders: list[str] = []

    @classmethod
    def load(cls, directory: str | Path, *, features: object = None) -> TransducerEnsemble:
        """Load all models in the folders of a folder."""
        folders = model_folders(directory)
        if not folders:
            raise ModelError(f"{directory}: expected a folder with folders of models, got none; train with --seeds 3")
        ensemble = cls([load(folder) for folder in folders])  # type: ignore[misc]  # refused there
        ensemble.folders = [str(folder) for folder in folders]
        return ensemble

    def save(self, directory: str | Path, *, extra: Mapping[str, str] | None = None) -> None:
        """Write each member into a folder of its own."""
        for i, member in enumerate(self.members, 1):
            member.save(Path(directory) / f"model-{i}", extra=extra)

    def evaluating(self) -> ExitStack:
        stack = ExitStack()
        for member in self.members:
            stack.enter_context(member.evaluating())
        return stack

    # Answers

    def transduced(self, batch: Sequence[Symbols], top_k: int, sure: bool) -> list[Transduced]:
        answers = [Transduced([])] * len(batch)
        rows, k = list(range(len(batch))), max(top_k, FIRST)
        while rows:
            for i, each in zip(rows, self._merged([batch[i] for i in rows], k, top_k), strict=True):
                answers[i] = each
            rows = [i for i in rows if not answers[i].certain] if k < MOST else []
            k *= WIDER
        return answers

    def _merged(self, batch: Sequence[Symbols], k: int, top_k: int) -> Iterator[Transduced]:
        """Yield the best of what each member finds among its k best."""
        lists = list(zip(*(member.transduced(batch, k, False) for member in self.members), strict=True))
        targets = [list(dict.fromkeys(target for answer in each for target, _ in answer.best)) for each in lists]
        pairs = [Sentence(source, target=y) for source, every in zip(batch, targets, strict=True) for y in every]
        scores = iter(self.log_probs(pairs))
        for each, every in zip(lists, targets, strict=True):
            scored = [(target, next(scores)) for target in every]
            best = sorted(scored, key=lambda pair: (-pair[1], pair[0]))[:top_k]
            beyond = [math.exp(answer.best[-1][1]) if len(answer.best) == k else 0.0 for answer in each]
            bound = sum(beyond) / len(beyond)
            enough = bound == 0.0 or (len(best) == top_k and math.exp(best[-1][1]) >= bound)
            yield Transduced(best, certain=enough and all(answer.certain for answer in each))

    def log_probs(self, pairs: Sequence[Sentence]) -> list[float]:
        """Return the log of the mean probability of each pair."""
        scores = np.array([member.log_probs(pairs) for member in self.members])
        log_means: list[float] = (np.logaddexp.reduce(scores, axis=0) - math.log(len(self.members))).tolist()
        return log_means

    # What it is

    def knows(self, word: str) -> bool | None:
        return self.members[0].knows(word)

    def twin(self, word: str) -> str | None:
        return self.members[0].twin(word)

    @property
    def copies_unknown(self) -> bool:
        return self.members[0].copies_unknown

    def unknown_text(self, symbols: Sequence[str]) -> str:
        return self.members[0].unknown_text(symbols)

    @property
    def n_parameters(self) -> int:
        return sum(member.n_parameters for member in self.members)

    @property
    def exported(self) -> Mapping[str, Transducer]:
        names = [Path(folder).name for folder in self.folders]
        names = names or [f"model-{i}" for i in range(1, len(self.members) + 1)]
        return dict(zip(names, self.members, strict=True))

    def describe(self, top: int = 20) -> Description:
        """Describe the first member, and how good each of them was."""
        first = self.members[0].describe(top)
        scores = {
            name: f"dev {dev.get('metric', 'score')} {100 * dev['score']:.2f}" if dev.get("score") is not None else "-"
            for name, dev in ((name, member.metrics.get("dev") or {}) for name, member in self.exported.items())
        }
        kind = f"{len(self.members)} models that answer together, each {first.kind}"
        record = {**first.record, "members": scores}
        return Description(kind, first.labels, record, first.settings, [("members", scores), *first.sections])
