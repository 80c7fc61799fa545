"""Tags of real-valued vectors: a deep network under a chain, the neural CRF and the neural hidden-unit CRF.

>>> words = [VectorSequence(pixels, ("c", "a", "t")), ...]                        # doctest: +SKIP
>>> tagger = VectorTagger.from_data(words, VectorTaggerConfig(transitions="network"))   # doctest: +SKIP
>>> tagger.pretrain(words)                                                        # doctest: +SKIP
>>> train(tagger, words, held_out, TrainingConfig(epochs=30), out="letters")      # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self, get_args

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from trelliswork.data import VectorSequence, Vocabulary, token_budget_batches
from trelliswork.data.settings import Settings, setting
from trelliswork.errors import TrellisworkError
from trelliswork.models.base import Alternative, Answer, Description, PartProbability, Scores
from trelliswork.models.batched import BUDGET
from trelliswork.models.networks.attribution import Attribution, attribute
from trelliswork.models.networks.stored_network import StoredNetwork, strongest_transitions
from trelliswork.models.part_choices import PartChoices, token_choices
from trelliswork.models.storage import StoredConfig
from trelliswork.models.taggers.evaluation import evaluate_tags
from trelliswork.models.taggers.labels import Pins
from trelliswork.models.taggers.networks.config import Transitions
from trelliswork.models.taggers.networks.word_votes import WordExplanation, explained_tags
from trelliswork.models.votes import WITHOUT_WORDS, Reason, Vote, ranked, word_vote
from trelliswork.nn.crf import CRF
from trelliswork.nn.dropout import Dropout
from trelliswork.nn.encoders.deep import Activation, DeepEncoder
from trelliswork.nn.rbm import PretrainingConfig, Visible
from trelliswork.nn.scorers import HiddenUnitScorer, LinearScorer, TransitionScorer
from trelliswork.runtime.arrays import Bool, Float, Int
from trelliswork.runtime.threads import one_thread_if_small
from trelliswork.training.shares import answered

if TYPE_CHECKING:
    from trelliswork.distributions import LinearChain

VectorScorer = Literal["linear", "hidden-units"]


@dataclass(frozen=True)
class VectorTaggerConfig(Settings):
    """Settings of a `VectorTagger`.

    `layers` hidden layers of `hidden` units see a `window` of vectors; `dropout` between and behind them,
    `input_dropout` in front. `scorer="hidden-units"` puts `n_units` binary units between network and labels
    (van der Maaten et al. 2011, Hidden-unit conditional random fields); `transitions="network"` lets the network score
    pairs of labels too (Do and Artieres 2010, Neural conditional random fields).
    """

    window: int = setting(1, "Window size in vectors.")
    hidden: int = setting(200, "Hidden units per layer.")
    layers: int = setting(2, "Number of hidden layers.")
    activation: Activation = setting("sigmoid", "Activation of the hidden layers", choices=get_args(Activation))
    dropout: float = setting(0.0, "Dropout on the hidden units.", at_least=0, below=1)
    input_dropout: float = setting(0.0, "Dropout on the inputs.", at_least=0, below=1)
    scorer: VectorScorer = setting("linear", "Scorer: from vectors to label scores", choices=get_args(VectorScorer))
    n_units: int = setting(100, "Number of binary hidden units (scorer hidden-units).")
    transitions: Transitions = setting("fixed", "Transition scores", choices=get_args(Transitions))


class EncodedVectors(tuple[Tensor, Tensor]):
    """Vectors and the indices of their labels."""

    def __len__(self) -> int:
        return len(self[0])


class VectorTagger(StoredNetwork):
    """A deep network over vectors, a scorer and a CRF; trains with `trelliswork.training.train`.

    Args:
        config: the settings.
        dim: width of the vectors.
        labels: the labels by number.
    """

    reads, graph, explains = "vectors", "vectors", True

    def __init__(self, config: VectorTaggerConfig, dim: int, labels: Vocabulary) -> None:
        super().__init__()
        self.config, self.dim, self.labels = config, dim, labels
        self.encoder = DeepEncoder(
            dim,
            window=config.window,
            hidden=config.hidden,
            layers=config.layers,
            activation=config.activation,
            dropout=config.dropout,
        )
        self.input_dropout, self.hidden_dropout = Dropout(config.input_dropout), Dropout(config.dropout)
        self.scorer: nn.Module = LinearScorer(config.hidden, len(labels))
        if config.scorer == "hidden-units":
            self.scorer = HiddenUnitScorer(config.hidden, len(labels), config.n_units)
        self.pairs = TransitionScorer(config.hidden, len(labels)) if config.transitions == "network" else None
        self.crf = CRF(len(labels), batch_first=True)

    @classmethod
    def from_data(
        cls, train: Sequence[VectorSequence], config: VectorTaggerConfig | None = None, *, seed: int = 0
    ) -> Self:
        """Return a new model for labelled sequences; its initial weights depend on `seed` alone.

        Args:
            train: sequences of vectors with labels.
            config: the settings; those of `VectorTaggerConfig()` if None.
            seed: what the initial weights depend on.

        Returns:
            The model, with its initial weights.
        """
        if not any(len(sequence) for sequence in train):
            raise TrellisworkError("expected labelled sequences to build a tagger from, got none; check the data")
        labels = Vocabulary(sorted({label for sequence in train for label in _labels_of(sequence)}))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return cls(config or VectorTaggerConfig(), train[0].vectors.shape[1], labels)

    # Learning

    def pretrain(
        self,
        sequences: Sequence[VectorSequence],
        config: PretrainingConfig | None = None,
        *,
        visible: Visible = "binary",
    ) -> list[float]:
        """Learn first weights of the hidden layers without labels; return the reconstruction error of each.

        Hinton et al. (2006), A fast learning algorithm for deep belief nets.

        `visible` is "binary" for vectors in [0, 1], "gaussian" for real values (standardise them first).

        Args:
            sequences: vectors; labels are not used.
            config: the settings of the RBMs; `PretrainingConfig()` if None.
            visible: kind of the values of the vectors.
        """
        # [S4, RBM pre-training]
        self._check(sequences)
        return self.encoder.pretrain(*_padded([each.vectors for each in sequences]), config, visible=visible)

    @contextmanager
    def frozen_encoder(self) -> Iterator[None]:
        """Enter a context in which hidden layers keep their weights: the CRF above them learns first, then all."""
        # [S4.216-218]
        for parameter in self.encoder.parameters():
            parameter.requires_grad_(False)
        try:
            yield
        finally:
            for parameter in self.encoder.parameters():
                parameter.requires_grad_(True)

    def encode(self, sequences: Sequence[VectorSequence], *, with_tags: bool = False) -> list[EncodedVectors]:
        """Return vectors and label indices, to be reused from epoch to epoch."""
        self._check(sequences)
        return [EncodedVectors((each.vectors, self._gold(each) if with_tags else torch.zeros(0))) for each in sequences]

    def loss(self, batch: Sequence[VectorSequence] | Sequence[EncodedVectors]) -> Float[Tensor, ""]:
        """Return -log p(labels | vectors), summed over the batch."""
        # [S4.213-218]
        encoded = [
            each if isinstance(each, EncodedVectors) else self.encode([each], with_tags=True)[0] for each in batch
        ]
        vectors, mask = _padded([each[0] for each in encoded])
        gold = pad_sequence([each[1] for each in encoded], batch_first=True)
        if self.pairs is None:
            return -self.crf(self.scorer(self._features(vectors, mask)), gold, mask)
        return -self._chain(vectors, mask).log_prob(gold).sum()

    def _features(self, vectors: Tensor, mask: Tensor) -> Float[Tensor, "batch n hidden"]:
        return self.hidden_dropout(self.encoder(self.input_dropout(vectors), mask))

    def _chain(self, vectors: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"]) -> LinearChain:
        features = self._features(vectors, mask)
        pair_scores = None if self.pairs is None else self.pairs(features)
        return self.crf.distribution(self.scorer(features), mask, pair_scores=pair_scores)

    def _gold(self, sequence: VectorSequence) -> Int[Tensor, " n"]:
        labels = _labels_of(sequence)
        for i, label in enumerate(labels):
            if label not in self.labels:
                raise TrellisworkError(f"expected one of {len(self.labels)} known labels; got {label!r} at row {i}")
        return torch.tensor(self.labels.indices(labels))

    def _check(self, sequences: Sequence[VectorSequence]) -> None:
        for i, sequence in enumerate(sequences):
            if sequence.vectors.shape[1] != self.dim:
                got = sequence.vectors.shape[1]
                raise TrellisworkError(f"expected vectors of {self.dim} values, as in training; got {got} in row {i}")

    # Answers

    def distribution(self, sequences: Sequence[VectorSequence]) -> LinearChain:
        """Return p(labels | vectors) of a batch; values are indices into `labels`."""
        self._check(sequences)
        with self.evaluating(), one_thread_if_small(sum(map(len, sequences)) * self.n_parameters):
            return self._chain(*_padded([each.vectors for each in sequences]))

    def tag(self, sequences: Sequence[VectorSequence]) -> list[list[str]]:
        """Return the best labels of each sequence."""
        results: list[list[str]] = [[] for _ in sequences]
        filled = [i for i, each in enumerate(sequences) if len(each)]
        for batch in token_budget_batches([len(sequences[i]) for i in filled], BUDGET, shuffle=False):
            chosen = [filled[i] for i in batch]
            best = self.distribution([sequences[i] for i in chosen]).argmax.tolist()
            for i, row in zip(chosen, best, strict=True):
                results[i] = [self.labels[label] for label in row[: len(sequences[i])]]
        return results

    def predict(
        self,
        inputs: Sequence[VectorSequence],
        *,
        top_k: int = 1,
        pins: Sequence[Pins] | None = None,
        confidence: bool = True,
    ) -> list[Answer]:
        """Return the best labels of each sequence with exact probabilities, and the `top_k` best.

        Args:
            inputs: sequences of vectors.
            top_k: how many label sequences to return, one at least.
            pins: for each sequence the labels that are known.
            confidence: not used: every answer has its probabilities.

        Returns:
            An answer for each sequence.
        """
        return [self._answer(each, max(top_k, 1), {} if pins is None else pins[i]) for i, each in enumerate(inputs)]

    def _answer(self, sequence: VectorSequence, top_k: int, pins: Pins) -> Answer:
        if not len(sequence):
            return Answer([], 1.0, alternatives=[Alternative([], 1.0)])
        chain = self._pinned([sequence], [pins])
        values, scores = chain.top_k(top_k)
        shares = chain.log_prob(values).double().exp()[:, 0].tolist()
        possible = [i for i, score in enumerate(scores[:, 0].tolist()) if score > -float("inf")]
        best = [Alternative([self.labels[y] for y in values[i, 0].tolist()], shares[i]) for i in possible]
        sure = chain.marginals[0].gather(-1, values[0, 0][:, None])[:, 0].tolist()
        parts = [
            PartProbability(i, i + 1, label, min(p, 1.0))
            for i, (label, p) in enumerate(zip(best[0].value, sure, strict=True))
        ]
        names = [str(i) for i in range(1, len(sequence) + 1)]
        return Answer(best[0].value, best[0].probability, names, parts=parts, alternatives=best)

    def _pinned(self, sequences: Sequence[VectorSequence], pins: Sequence[Pins]) -> LinearChain:
        """Return p(labels | vectors, pins); a pin is a label, or several of which one is right."""
        chain = self.distribution(sequences)
        if not any(pins):
            return chain
        allowed = torch.ones(len(sequences), chain.event_shape[0], len(self.labels), dtype=torch.bool)
        for row, known in enumerate(pins):
            for i, label in known.items():
                allowed[row, i] = False
                allowed[row, i, self.labels.indices([label] if isinstance(label, str) else label)] = True
        return chain.constrain(allowed)

    # Explanations

    def explain(self, inputs: Sequence[VectorSequence]) -> list[WordExplanation]:
        """Return the labels of each sequence, the vectors that they are due to, and the alternatives."""
        return [explained_tags(self, each) for each in inputs]

    def choices(
        self, inputs: Sequence[VectorSequence], *, pins: Sequence[Pins] | None = None, most: int | None = None
    ) -> list[list[PartChoices]]:
        """Return the labels that each vector may have, by their exact probability given the pins.

        Args:
            inputs: sequences of vectors.
            pins: for each sequence the labels that are known.
            most: how many choices to list for each part; None for all.

        Returns:
            For each sequence the choices of its vectors.
        """
        choices = []
        for i, each in enumerate(inputs):
            known = {} if pins is None else pins[i]
            shares = self._pinned([each], [known]).marginals[0] if len(each) else torch.zeros(0, len(self.labels))
            choices.append(token_choices(shares.detach().double().numpy(), self.known_labels, most))
        return choices

    def best_values(self, batch: Sequence[VectorSequence], pins: Sequence[Pins] | None) -> list[list[int]]:
        """Return the best labels of each sequence, as numbers."""
        best = self._pinned(batch, pins or [{}] * len(batch)).argmax.tolist()
        return [row[: len(each)] for row, each in zip(best, batch, strict=True)]

    def tags_of_value(self, value: Sequence[int], n: int) -> list[str]:
        """Return the names of labels."""
        return [self.labels[label] for label in value]

    def attributed(
        self, sequence: VectorSequence, value: Sequence[int], rivals: Sequence[Sequence[int]]
    ) -> list[Attribution]:
        """Return the shares of the vectors in the difference between the scores of labels and of each rival.

        Args:
            sequence: the vectors, [n, d].
            value: their labels, [n].
            rivals: other labels of them.

        Returns:
            An attribution for each rival.
        """
        kept, others = torch.tensor(value), torch.tensor(rivals)

        def margins(scales: Float[Tensor, "rows n 1"], which: Int[Tensor, " rows"]) -> Tensor:
            chain = self._chain(sequence.vectors * scales, torch.ones(scales.shape[:2], dtype=torch.bool))
            return chain.score(kept.expand(len(which), -1)) - chain.score(others[which])

        with self.evaluating():
            return attribute(margins, (len(sequence), 1), len(rivals), sequence.vectors)

    def reason(self, sequence: VectorSequence, shares: Attribution, rival: str, at: int) -> Reason:
        """Return attributed shares as votes.

        Args:
            sequence: the vectors, [n, d].
            shares: what the vectors add to a decision.
            rival: the label that the decision was against.
            at: the vector that the decision is about.

        Returns:
            The votes, the strongest first.
        """
        votes = [
            word_vote("vector", str(i + 1), i, float(score), {}, at) for i, score in enumerate(shares.shares[:, 0])
        ]
        base = Vote("", shares.base, WITHOUT_WORDS)
        return Reason(rival, shares.difference, ranked([*votes, base]), shares.error, shares.steps)

    def describe(self, top: int = 20) -> Description:
        names = self.known_labels
        return Description(
            f"a deep network over vectors of {self.dim} numbers under a linear-chain CRF",
            labels={"labels": f"{len(names)}: {', '.join(names)}"},
            record={"labels": names},
            settings=self.config.to_dict(),
            sections=[("network", self.config.to_dict())],
            transitions=strongest_transitions(self.crf, names),
        )

    def evaluate(self, sequences: Sequence[VectorSequence]) -> Scores:
        """Return accuracy on labelled sequences."""
        return evaluate_tags([_labels_of(each) for each in sequences], answered(self.tag, sequences), "plain")

    # Disk

    def stored_config(self) -> dict[str, object]:
        return {"settings": self.config.to_dict(), "dim": self.dim, "labels": self.labels.to_list()}

    @classmethod
    def from_stored(cls, config: StoredConfig) -> Self:
        return cls(VectorTaggerConfig.from_dict(config["settings"]), config["dim"], Vocabulary(config["labels"]))

    @property
    def known_labels(self) -> list[str]:
        """The labels that a vector can have."""
        return self.labels.to_list()


def _labels_of(sequence: VectorSequence) -> tuple[str, ...]:
    if sequence.labels is None:
        raise TrellisworkError("expected labelled sequences, got one without labels; give VectorSequence(v, labels)")
    return sequence.labels


def _padded(vectors: Sequence[Float[Tensor, "n d"]]) -> tuple[Float[Tensor, "batch n d"], Bool[Tensor, "batch n"]]:
    """Return sequences side by side, and where they are."""
    lengths = torch.tensor([len(each) for each in vectors])
    padded = pad_sequence(list(vectors), batch_first=True)
    return padded, torch.arange(padded.shape[1]) < lengths[:, None]
