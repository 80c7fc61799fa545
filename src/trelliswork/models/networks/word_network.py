"""The common part of networks over words, whatever they answer: inputs, an encoder, vocabularies, batches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor

from trelliswork.data import Sentence, WordVectors
from trelliswork.errors import TrellisworkError
from trelliswork.models.networks.attribution import Attribution, attribute, scaled
from trelliswork.models.networks.building import load_vectors, make_dropout, make_encoder, make_inputs, pretrain_encoder
from trelliswork.models.networks.config import NetworkConfig
from trelliswork.models.networks.features import VECTOR, TokenFeatures
from trelliswork.models.networks.stored_network import StoredNetwork
from trelliswork.models.recipe import Material, Options
from trelliswork.models.votes import WITHOUT_WORDS, Reason, Vote, ranked, word_vote
from trelliswork.nn.inputs import TokenBatch
from trelliswork.nn.rbm import PretrainingConfig
from trelliswork.runtime.arrays import Float, Int

PRETRAINING_RATE = 5e-3  # of RBMs over real values, for which that of binary values is too large


class EncodedSentence(NamedTuple):
    """A sentence as indices: what the network reads and, if known, what it should answer, a row for each token."""

    features: Int[Tensor, "n f"]
    words: tuple[str, ...]
    gold: Int[Tensor, "n *parts"] | None

    def __len__(self) -> int:
        return self.features.shape[0]


class WordNetwork(StoredNetwork):
    """Inputs and encoder; a subclass adds scores and a structure. Trains with `trelliswork.training.train`."""

    CONFIG: ClassVar[type[NetworkConfig]]

    def __init__(self, config: Any, features: TokenFeatures):
        super().__init__()
        self.config, self.features = config, features
        self.inputs = make_inputs(config, features)
        self.encoder = make_encoder(config, self.inputs.dim)
        self.input_dropout = make_dropout(config, config.dropout)
        self.hidden_dropout = make_dropout(config, config.hidden_dropout)

    @classmethod
    @abstractmethod
    def from_material(cls, material: Material, config: Any, options: Options, seed: int) -> Self:
        """Return a new model, as the command line asks for it.

        Args:
            material: the training material.
            config: the settings of the network.
            options: the options of the command by name.
            seed: what the initial weights depend on.

        Returns:
            The model, with its initial weights.
        """

    @classmethod
    def initialised(cls, train: Sequence[Sentence], vectors: WordVectors | None, seed: int, *parts: Any) -> Self:
        """Return a new model of `parts` (what `__init__` takes), whose first weights depend on `seed` alone.

        Args:
            train: Sentences to learn from.
            vectors: Pretrained vectors; None for none.
            seed: What the first weights depend on.
            parts: What `__init__` takes.

        Returns:
            The model, not trained.
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = cls(*parts)
        model.begin(train, vectors, seed)
        return model

    def begin(self, train: Sequence[Sentence], vectors: WordVectors | None, seed: int) -> None:
        """Set the first weights from pretrained vectors and training words, as far as the settings want them.

        Args:
            train: the training data.
            vectors: pretrained vectors, if there are any.
            seed: what the pre-training depends on.
        """
        if vectors is not None:
            load_vectors(self.inputs.lookup.tables[self.features.names.index(VECTOR)], vectors)
        if self.config.pretrain_epochs:
            how = PretrainingConfig(epochs=self.config.pretrain_epochs, lr=PRETRAINING_RATE, seed=seed)
            pretrain_encoder(self, train, how)

    def vector_coverage(self, sentences: Sequence[Sentence]) -> float:
        """Return the share of the tokens that have a pretrained vector."""
        return self.features.coverage(sentences)

    def knows(self, word: str) -> bool:
        return self.features.knows(word)

    @property
    def n_columns(self) -> int:
        return self.features.n_columns

    # Learning

    @abstractmethod
    def gold(self, sentence: Sentence) -> list[Any]:
        """Return the right answer, one number or one row of numbers a token."""

    @abstractmethod
    def loss(self, batch: Sequence[Sentence] | Sequence[EncodedSentence]) -> Float[Tensor, ""]:
        """Return -log p(answer | words), summed over the batch."""

    def encode(self, sentences: Sequence[Sentence], *, with_tags: bool = False) -> list[EncodedSentence]:
        """Return sentences as indices, to be reused from epoch to epoch."""
        return [
            EncodedSentence(features, sentence.words, torch.tensor(self.gold(sentence)) if with_tags else None)
            for features, sentence in zip(self.features.encode_all(sentences), sentences, strict=True)
        ]

    def encoded(
        self, batch: Sequence[Sentence] | Sequence[EncodedSentence]
    ) -> tuple[list[EncodedSentence], list[Tensor]]:
        """Return sentences as indices, and their right answers, which must be there."""
        rows = [
            sentence if isinstance(sentence, EncodedSentence) else self.encode([sentence], with_tags=True)[0]
            for sentence in batch
        ]
        gold = [sentence.gold for sentence in rows if sentence.gold is not None]
        if len(gold) != len(rows):
            raise TrellisworkError("expected tagged sentences, got one without; encode(..., with_tags=True)")
        return rows, gold

    def token_batch(self, encoded: Sequence[EncodedSentence]) -> TokenBatch:
        """Return encoded sentences side by side, where the weights are."""
        batch = self.features.batch([each.features for each in encoded], [each.words for each in encoded])
        return batch.to(next(self.parameters()).device)

    def encode_tokens(self, batch: TokenBatch) -> Float[Tensor, "batch n d"]:
        """Return one vector per token that knows its neighbours."""
        return self.hidden_dropout(self.encoder(self.input_dropout(self.inputs(batch)), batch.mask))

    # Explanations

    @property
    def input_parts(self) -> list[str]:
        """Names of the parts that a token brings, in the order of `TokenBatch.scales`."""
        spelled = {
            "characters": self.inputs.characters,
            "n-grams": self.inputs.ngrams,
            "pretrained": self.inputs.pretrained,
        }
        direct = ["templates"] if self.config.templates else []
        return [*self.features.names, *(name for name, part in spelled.items() if part is not None), *direct]

    def attribute(
        self,
        sentence: Sentence,
        margins: Callable[[TokenBatch, Int[Tensor, " rows"]], Float[Tensor, " rows"]],
        n_decisions: int,
        cost: int | None = None,
    ) -> list[Attribution]:
        """Return the shares of the words of a sentence in decisions (see `attribution`).

        `margins` says by how much an answer beats its rival in each row of a batch of copies of the sentence, given the
        number of the decision that the row is about; `cost` is that of a row, in tokens.

        Args:
            sentence: the sentence.
            margins: by how much an answer beats its rival, [rows], given a batch of copies and decisions [rows].
            n_decisions: number of decisions.
            cost: tokens that a row takes; those of the sentence if None.

        Returns:
            An attribution for each decision.
        """
        with self.evaluating():
            batch = self.token_batch(self.encode([sentence]))
            like = next(parameter for parameter in self.parameters() if parameter.is_floating_point())
            shape = (len(sentence), len(self.input_parts))
            return attribute(
                lambda scales, which: margins(scaled(batch, scales), which), shape, n_decisions, like, cost=cost
            )

    def reason(self, sentence: Sentence, shares: Attribution, rival: str, at: int | None = None) -> Reason:
        """Return attributed shares as votes of words and of extra columns, with their places seen from token `at`.

        Args:
            sentence: the sentence.
            shares: what its words, by their parts, add to a decision.
            rival: the answer that the decision was against, in words.
            at: the token that the decision is about, from which places are counted; None for the whole sentence.

        Returns:
            The votes, the strongest first.
        """
        titles = [*self.column_names, *(f"column {i}" for i in range(len(self.column_names) + 1, self.n_columns + 1))]
        columns = {f"column{i}": (titles[i - 1], values) for i, values in enumerate(sentence.features, 1)}
        sources: dict[str, list[int]] = {}
        for part, name in enumerate(self.input_parts):
            sources.setdefault(name if name in columns else "word", []).append(part)
        votes = []
        for source, parts in sources.items():
            title, values = columns.get(source, ("word", sentence.words))
            for i, value in enumerate(values):
                own = {self.input_parts[part]: float(shares.shares[i, part]) for part in parts}
                if score := sum(own.values()):
                    votes.append(word_vote(title, value, i, score, own if source == "word" else {}, at))
        if shares.base:
            votes.append(Vote("", shares.base, WITHOUT_WORDS))
        return Reason(rival, shares.difference, ranked(votes), shares.error, shares.steps)

    # Disk

    def stored_config(self) -> dict[str, object]:
        config = {"settings": self.config.to_dict(), "vocabularies": self.features.stored_vocabularies()}
        if self.inputs.pretrained is not None:
            config["pretrained"] = self.inputs.pretrained.to_dict()
        return config
