"""A tagger: a network, such as the window of [S3] or an LSTM from both ends, under a linear-chain CRF.

>>> tagger = Tagger.from_data(train_sentences)                         # doctest: +SKIP
>>> train(tagger, train_sentences, dev_sentences, out="chunker")       # doctest: +SKIP
>>> Tagger.load("chunker").tag([Sentence(("Ann", "sings", "."))])      # doctest: +SKIP
[['B-NP', 'B-VP', 'O']]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from trelliswork.data import Sentence, WordVectors
from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.models.card import model_card
from trelliswork.models.config import TaggerConfig
from trelliswork.models.features import VECTOR, TokenFeatures, restore_vocabulary
from trelliswork.models.labels import Labels
from trelliswork.models.network import load_vectors, make_dropout, make_encoder, make_inputs, make_scorer
from trelliswork.models.sentence_tagger import SentenceTagger
from trelliswork.models.storage import StoredModel, check_output, read_model, write_model
from trelliswork.nn.crf import CRF
from trelliswork.nn.inputs import TokenBatch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

    from trelliswork.distributions import LinearChain


class EncodedSentence(NamedTuple):
    """A sentence as indices: what the network reads and, if known, what it should answer."""

    features: Int[Tensor, "n f"]
    words: tuple[str, ...]
    labels: Int[Tensor, " n"] | None

    def __len__(self) -> int:
        return self.features.shape[0]


class Tagger(nn.Module, SentenceTagger):
    """Inputs, encoder, scorer and CRF; trains with `trelliswork.training.train`."""

    def __init__(self, config: TaggerConfig, features: TokenFeatures, labels: Labels):
        super().__init__()
        self.config, self.features, self.labels = config, features, labels
        self.metrics: dict[str, Any] = {}
        n_labels = len(labels.vocabulary)
        self.inputs = make_inputs(config, features)
        self.encoder = make_encoder(config, self.inputs.dim)
        self.scorer = make_scorer(config, self.encoder.dim, n_labels)
        self.input_dropout = make_dropout(config, config.dropout)
        self.hidden_dropout = make_dropout(config, config.hidden_dropout)
        if config.constrained and labels.has_spans:
            self.crf = CRF.from_tags(labels.vocabulary.to_list(), scheme=labels.scheme, batch_first=True)
        else:
            self.crf = CRF(n_labels, batch_first=True)

    @classmethod
    def from_data(
        cls,
        train: Sequence[Sentence],
        config: TaggerConfig | None = None,
        *,
        scheme: str | None = None,
        vectors: WordVectors | None = None,
        seed: int = 0,
    ) -> Tagger:
        """A new tagger whose vocabularies and labels come from tagged sentences.

        `scheme` is that of the tags (IOB1, IOB2, IOBES, plain), inferred when None. `vectors` are read beside the words
        of the training data. The initial weights depend on `seed` alone.
        """
        if not train:
            raise TrellisworkError("expected tagged sentences to build a tagger from, got none; check the data")
        config = config or TaggerConfig()
        labels = Labels.from_sentences(train, scheme=scheme, label_scheme=config.label_scheme)
        config = replace(config, vector_dim=0 if vectors is None else vectors.dim)
        features = TokenFeatures.from_sentences(train, config, () if vectors is None else vectors.words)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            tagger = cls(config, features, labels)
        if vectors is not None:
            load_vectors(tagger.inputs.lookup.tables[features.names.index(VECTOR)], vectors)
        return tagger

    @property
    def n_columns(self) -> int:
        return self.features.n_columns

    @property
    def n_parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())

    # Learning

    def encode(self, sentences: Sequence[Sentence], *, with_tags: bool = False) -> list[EncodedSentence]:
        """Sentences as indices, to be reused from epoch to epoch."""
        constrained = self.config.constrained
        return [
            EncodedSentence(
                self.features.encode(sentence),
                sentence.words,
                torch.tensor(self.labels.indices(sentence, constrained=constrained)) if with_tags else None,
            )
            for sentence in sentences
        ]

    def forward(self, batch: TokenBatch) -> Float[Tensor, "batch n c"]:
        """Scores of each label at each token."""
        tokens = self.encoder(self.input_dropout(self.inputs(batch)), batch.mask)
        return self.scorer(self.hidden_dropout(tokens), batch.mask)

    def loss(self, batch: Sequence[Sentence] | Sequence[EncodedSentence]) -> Float[Tensor, ""]:
        """-log p(tags | words), summed over the batch [S3, Sentence-Level Log-Likelihood; S1, loss]."""
        encoded = [
            sentence if isinstance(sentence, EncodedSentence) else self.encode([sentence], with_tags=True)[0]
            for sentence in batch
        ]
        labels = [sentence.labels for sentence in encoded if sentence.labels is not None]
        if len(labels) != len(encoded):
            raise TrellisworkError("expected tagged sentences, got one without; encode(..., with_tags=True)")
        emissions, mask = self._emissions(encoded)
        return -self.crf(emissions, pad_sequence(labels, batch_first=True).to(emissions.device), mask)

    def _emissions(
        self, encoded: Sequence[EncodedSentence]
    ) -> tuple[Float[Tensor, "batch n c"], Bool[Tensor, "batch n"]]:
        batch = self.features.batch([each.features for each in encoded], [each.words for each in encoded])
        batch = batch.to(next(self.parameters()).device)
        return self(batch), batch.mask

    # Answers

    def chain(self, sentences: Sequence[Sentence]) -> LinearChain:
        emissions, mask = self._emissions(self.encode(sentences))
        return self.crf.distribution(emissions, mask)

    def _decode(self, sentences: Sequence[Sentence]) -> list[list[int]]:
        emissions, mask = self._emissions(self.encode(sentences))
        return self.crf.decode(emissions, mask)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        was_training = self.training
        self.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            self.train(was_training)

    # Disk

    def check_output(self, directory: str | Path) -> None:
        """Raise `OutputError` if `save` could not write there."""
        check_output(directory)

    def save(self, directory: str | Path, *, extra: Mapping[str, str] | None = None) -> None:
        """Write the model folder (see `storage`); `extra` holds further text files by name."""
        config = {
            "settings": self.config.to_dict(),
            "scheme": self.labels.scheme,
            "data_scheme": self.labels.data_scheme,
            "labels": self.labels.vocabulary.to_list(),
            "vocabularies": {name: v.to_list() for name, v in self.features.vocabularies.items()},
        }
        model = StoredModel("Tagger", config, self.state_dict(), self.metrics, self.card(), extra or {})
        write_model(directory, model)

    def card(self) -> str:
        """The text of MODEL_CARD.md."""
        return model_card(
            "Tagger",
            summary=f"A network ({self.config.encoder}) under a linear-chain CRF, for {self.labels.data_scheme} tags.",
            labels=self.labels.vocabulary.to_list(),
            settings=self.config.to_dict(),
            metrics=self.metrics,
            n_parameters=self.n_parameters,
        )

    @classmethod
    def load(cls, directory: str | Path) -> Tagger:
        """Read a model folder; a missing, truncated, foreign or newer one is a `ModelError`."""
        stored = read_model(directory, "Tagger")
        try:
            tagger = cls._from_stored(stored.config)
            tagger.load_state_dict(dict(stored.weights))
        except KeyError as error:
            raise ModelError(f"{directory}: config.json lacks {error}; copy the model again") from error
        except (TypeError, AttributeError, RuntimeError, TrellisworkError) as error:
            first = str(error).strip().splitlines()[-1].strip()
            raise ModelError(f"{directory}: config.json and weights do not fit ({first}); copy it again") from error
        tagger.metrics = dict(stored.metrics)
        return tagger.eval()

    @classmethod
    def _from_stored(cls, config: Mapping[str, Any]) -> Tagger:
        settings = TaggerConfig.from_dict(config["settings"])
        vocabularies = {name: restore_vocabulary(items) for name, items in config["vocabularies"].items()}
        labels = Labels.from_stored(config["labels"], config["scheme"], config["data_scheme"])
        with torch.random.fork_rng(devices=[]):  # initial values are overwritten; leave the caller's seed alone
            return cls(settings, TokenFeatures(settings, vocabularies), labels)
