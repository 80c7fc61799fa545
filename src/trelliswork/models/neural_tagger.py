"""What taggers that are networks have in common: inputs, an encoder, batches, their folder."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import torch
from torch import Tensor, nn

from trelliswork.data import Sentence, WordVectors
from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.models.card import model_card
from trelliswork.models.config import TaggerConfig
from trelliswork.models.features import VECTOR, TokenFeatures, restore_vocabulary
from trelliswork.models.labels import Labels
from trelliswork.models.network import load_vectors, make_dropout, make_encoder, make_inputs
from trelliswork.models.sentence_tagger import SentenceTagger
from trelliswork.models.storage import StoredModel, check_output, is_newer, read_model, upgrade, write_model
from trelliswork.nn.inputs import TokenBatch

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class EncodedSentence(NamedTuple):
    """A sentence as indices: what the network reads and, if known, what it should answer."""

    features: Int[Tensor, "n f"]
    words: tuple[str, ...]
    gold: Int[Tensor, " n"] | None

    def __len__(self) -> int:
        return self.features.shape[0]


class NeuralTagger(nn.Module, SentenceTagger):
    """Inputs and encoder; a subclass adds the structure. Trains with `trelliswork.training.train`."""

    def __init__(self, config: TaggerConfig, features: TokenFeatures, labels: Labels):
        super().__init__()
        self.config, self.features, self.labels = config, features, labels
        self.metrics: dict[str, Any] = {}
        self.inputs = make_inputs(config, features)
        self.encoder = make_encoder(config, self.inputs.dim)
        self.input_dropout = make_dropout(config, config.dropout)
        self.hidden_dropout = make_dropout(config, config.hidden_dropout)

    @classmethod
    def from_data(
        cls,
        train: Sequence[Sentence],
        config: TaggerConfig | None = None,
        *,
        scheme: str | None = None,
        vectors: WordVectors | None = None,
        seed: int = 0,
    ) -> Self:
        """A new model whose vocabularies and labels come from tagged sentences.

        `scheme` is that of the tags (IOB1, IOB2, IOBES, plain), inferred when None. `vectors` are read beside the words
        of the training data. The initial weights depend on `seed` alone.
        """
        if not train:
            raise TrellisworkError("expected tagged sentences to build a tagger from, got none; check the data")
        config = replace(config or TaggerConfig(), vector_dim=0 if vectors is None else vectors.dim)
        labels = Labels.from_sentences(train, scheme=scheme, label_scheme=config.label_scheme)
        features = TokenFeatures.from_sentences(train, config, () if vectors is None else vectors.words)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = cls(config, features, labels)
        if vectors is not None:
            load_vectors(model.inputs.lookup.tables[features.names.index(VECTOR)], vectors)
        return model

    @property
    def n_columns(self) -> int:
        return self.features.n_columns

    @property
    def n_parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())

    # Learning

    @abstractmethod
    def gold(self, sentence: Sentence) -> list[int]:
        """The right answer, one number a token."""

    @abstractmethod
    def loss(self, batch: Sequence[Sentence] | Sequence[EncodedSentence]) -> Float[Tensor, ""]:
        """-log p(tags | words), summed over the batch."""

    def encode(self, sentences: Sequence[Sentence], *, with_tags: bool = False) -> list[EncodedSentence]:
        """Sentences as indices, to be reused from epoch to epoch."""
        return [
            EncodedSentence(features, sentence.words, torch.tensor(self.gold(sentence)) if with_tags else None)
            for features, sentence in zip(self.features.encode_all(sentences), sentences, strict=True)
        ]

    def encoded(
        self, batch: Sequence[Sentence] | Sequence[EncodedSentence]
    ) -> tuple[list[EncodedSentence], list[Tensor]]:
        """Sentences as indices, and their right answers, which must be there."""
        found = [
            sentence if isinstance(sentence, EncodedSentence) else self.encode([sentence], with_tags=True)[0]
            for sentence in batch
        ]
        gold = [sentence.gold for sentence in found if sentence.gold is not None]
        if len(gold) != len(found):
            raise TrellisworkError("expected tagged sentences, got one without; encode(..., with_tags=True)")
        return found, gold

    def token_batch(self, encoded: Sequence[EncodedSentence]) -> TokenBatch:
        """Encoded sentences side by side, where the weights are."""
        batch = self.features.batch([each.features for each in encoded], [each.words for each in encoded])
        return batch.to(next(self.parameters()).device)

    def encode_tokens(self, batch: TokenBatch) -> Float[Tensor, "batch n d"]:
        """One vector per token that knows its neighbours."""
        return self.hidden_dropout(self.encoder(self.input_dropout(self.inputs(batch)), batch.mask))

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
        if self.inputs.pretrained is not None:
            config["pretrained"] = self.inputs.pretrained.to_dict()
        model = StoredModel(type(self).__name__, config, self.state_dict(), self.metrics, self.card(), extra or {})
        write_model(directory, model)

    @property
    @abstractmethod
    def summary(self) -> str:
        """What the model is, in a sentence."""

    def card(self) -> str:
        """The text of MODEL_CARD.md."""
        return model_card(
            type(self).__name__,
            summary=self.summary,
            labels=self.labels.vocabulary.to_list(),
            settings=self.config.to_dict(),
            metrics=self.metrics,
            n_parameters=self.n_parameters,
        )

    @classmethod
    def load(cls, directory: str | Path) -> Self:
        """Read a model folder; a missing, truncated, foreign or newer one is a `ModelError`."""
        stored = read_model(directory, cls.__name__)
        try:
            tagger = cls._from_stored(stored.config)
            tagger.load_state_dict(dict(stored.weights))
        except KeyError as error:
            raise ModelError(f"{directory}: config.json lacks {error}; copy the model again") from error
        except (TypeError, AttributeError, RuntimeError, TrellisworkError) as error:
            first = str(error).strip().splitlines()[-1].strip()
            if is_newer(stored.config):
                raise ModelError(f"{directory}: config.json is too new ({first}); {upgrade(stored.config)}") from error
            raise ModelError(f"{directory}: config.json and weights do not fit ({first}); copy it again") from error
        tagger.metrics = dict(stored.metrics)
        return tagger.eval()

    @classmethod
    def _from_stored(cls, config: Mapping[str, Any]) -> Self:
        settings = TaggerConfig.from_dict(config["settings"])
        vocabularies = {name: restore_vocabulary(items) for name, items in config["vocabularies"].items()}
        labels = Labels.from_stored(config["labels"], config["scheme"], config["data_scheme"])
        with torch.random.fork_rng(devices=[]):  # initial values are overwritten; leave the caller's seed alone
            return cls(settings, TokenFeatures(settings, vocabularies, config.get("pretrained")), labels)
