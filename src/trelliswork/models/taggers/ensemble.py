"""Several taggers that answer together, such as those that `train --seeds` leaves in one folder.

>>> tagger = Ensemble.load("ner")                                         # doctest: +SKIP
>>> tagger.confidences([Sentence(("Ann", "sings"))])[0].tokens           # doctest: +SKIP
[0.97, 0.88]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from trelliswork.data import Sentence
from trelliswork.data.attributes.dicts import FeatureFunction, Function
from trelliswork.distributions.averaging import average_argmax
from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.models.base import Description, Readable, Scores
from trelliswork.models.loading import load, model_folders
from trelliswork.models.networks.attribution import Attribution, mean_of
from trelliswork.models.taggers.averaged_tagger import AveragedTagger
from trelliswork.models.taggers.features.tagger import FeatureTagger
from trelliswork.models.taggers.labels import Pins
from trelliswork.models.taggers.networks.tagger import Tagger
from trelliswork.models.taggers.networks.word_votes import WordExplanation, explained_tags
from trelliswork.models.votes import Reason

if TYPE_CHECKING:
    from trelliswork.distributions import LinearChain


class Ensemble(AveragedTagger):
    """p(y | x) = the mean of the taggers' p(y | x). They must have the same labels and read the same columns."""

    def __init__(self, taggers: Sequence[Tagger | FeatureTagger]) -> None:
        if not taggers:
            raise TrellisworkError("expected taggers to put together, got none; give one at least")
        first = taggers[0]
        for i, tagger in enumerate(taggers, 1):
            if not tagger.supports_ensembling:
                raise TrellisworkError(
                    f"expected taggers with a tag for each token, got a {type(tagger).__name__} as number {i}; drop it"
                )
            if (tagger.labels, tagger.n_columns) != (first.labels, first.n_columns):
                raise TrellisworkError(
                    f"expected taggers with the same labels and columns; those of number {i} are different; "
                    "train all on the same data"
                )
        self.taggers, self.labels = list(taggers), first.labels
        self.metrics: Scores = {"data": first.metrics.get("data")}
        self.tokeniser, self.column_taggers = first.tokeniser, first.column_taggers
        self.lemmatiser = first.lemmatiser
        self.folders: list[str] = []

    @classmethod
    def load(cls, directory: str | Path, *, features: Function | str | FeatureFunction | None = None) -> Ensemble:
        """Return all models in the folders of a folder; `features` as for `FeatureTagger.load`."""
        folders = model_folders(directory)
        if not folders:
            raise ModelError(f"{directory}: expected a folder with folders of models, got none; train with --seeds 3")
        ensemble = cls([load(folder, features=features) for folder in folders])  # type: ignore[misc]  # refused there
        ensemble.folders = [str(folder) for folder in folders]
        return ensemble

    def describe(self, top: int = 20) -> Description:
        """Describe the members, which is the same for all; transitions are means."""
        each = [tagger.describe(top) for tagger in self.taggers]
        scores = {
            name: f"dev {dev.get('metric', 'score')} {100 * dev['score']:.2f}" if dev.get("score") is not None else "-"
            for name, dev in ((name, tagger.metrics.get("dev") or {}) for name, tagger in self.exported.items())
        }
        sums: dict[tuple[str, str], float] = {}
        for described in each:
            for score, before, after in described.transitions:
                sums[before, after] = sums.get((before, after), 0.0) + score / len(each)
        return Description(
            f"{len(each)} models that answer together, each {each[0].kind}",
            each[0].labels, {**each[0].record, "members": scores}, each[0].settings,
            [("members", scores), *each[0].sections], sorted(((s, *pair) for pair, s in sums.items()), reverse=True),
        )  # fmt: skip

    @property
    def exported(self) -> Mapping[str, Tagger | FeatureTagger]:
        names = [Path(folder).name for folder in self.folders]
        names = names or [f"model-{i}" for i in range(1, len(self.taggers) + 1)]
        return dict(zip(names, self.taggers, strict=True))

    def save(self, directory: str | Path, *, extra: Mapping[str, str] | None = None) -> None:
        """Write each tagger into a folder of its own."""
        for i, tagger in enumerate(self.taggers, 1):
            tagger.save(Path(directory) / f"model-{i}", extra=extra)

    def knows(self, word: str) -> bool | None:
        return self.taggers[0].knows(word)

    @property
    def n_columns(self) -> int:
        return self.taggers[0].n_columns

    @property
    def n_parameters(self) -> int:
        return sum(tagger.n_parameters for tagger in self.taggers)

    @property
    def explains(self) -> bool:  # type: ignore[override]
        """True if all members are networks that read the same of each word: their votes are averaged."""
        networks = self._networks
        return len(networks) == len(self.taggers) and len({tuple(each.input_parts) for each in networks}) == 1

    def explain(self, sentences: Readable) -> list[WordExplanation]:
        """Return the tags that the members agree on, with the means of their votes (differences between scores)."""
        if not self.explains:
            members = ", ".join(sorted({type(tagger).__name__ for tagger in self.taggers}))
            problem = f"expected an ensemble of networks that read the same of each word to explain, got {members}"
            raise TrellisworkError(f"{problem}; explain a member, such as {(self.folders or ['taggers[0]'])[0]}")
        return [explained_tags(self, each) for each in self.sentences_of(sentences)]

    def best_values(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> list[list[int]]:
        """Return the best labels of each sentence."""
        with self.evaluating():
            best = average_argmax(self.members(batch, pins)).tags.tolist()
        return [row[: len(sentence)] for row, sentence in zip(best, batch, strict=True)]

    def tags_of_value(self, value: Sequence[int], n: int) -> list[str]:
        """Return the tags of labels, in the scheme of the data."""
        return self.labels.tags(value)

    def attributed(
        self, sentence: Sentence, value: Sequence[int], rivals: Sequence[Sequence[int]]
    ) -> list[Attribution]:
        """Return the means of the shares of the words.

        Args:
            sentence: the sentence.
            value: the labels, [n].
            rivals: other labels of the same sentence.

        Returns:
            An attribution for each rival.
        """
        by_member = [network.attributed(sentence, value, rivals) for network in self._networks]
        return [mean_of(same) for same in zip(*by_member, strict=True)]

    def reason(self, sentence: Sentence, shares: Attribution, rival: str, at: int | None = None) -> Reason:
        """Return shares as votes.

        Args:
            sentence: the sentence.
            shares: what its words, by their parts, add to a decision.
            rival: the answer that the decision was against, in words.
            at: the token that the decision is about; None for the whole sentence.

        Returns:
            The votes, the strongest first.
        """
        return self._networks[0].reason(sentence, shares, rival, at)

    @property
    def _networks(self) -> list[Tagger]:
        return [tagger for tagger in self.taggers if isinstance(tagger, Tagger)]

    def evaluating(self) -> AbstractContextManager[object]:
        stack = ExitStack()
        for tagger in self.taggers:
            stack.enter_context(tagger.evaluating())
        return stack

    def members(self, sentences: Sequence[Sentence], pins: Sequence[Pins] | None = None) -> list[LinearChain]:
        return [tagger.distribution(sentences, pins) for tagger in self.taggers]  # type: ignore[misc]
