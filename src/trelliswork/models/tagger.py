"""A tagger: the window network of [S3] (or the neighbour scores of [S1]) under a linear-chain CRF.

>>> tagger = Tagger.from_data(train_sentences)                         # doctest: +SKIP
>>> train(tagger, train_sentences, dev_sentences, out="chunker")       # doctest: +SKIP
>>> Tagger.load("chunker").tag([Sentence(("Ann", "sings", "."))])      # doctest: +SKIP
[['B-NP', 'B-VP', 'O']]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from trelliswork.data import Sentence, token_budget_batches
from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.models.card import model_card
from trelliswork.models.config import TaggerConfig
from trelliswork.models.evaluation import evaluate_tags
from trelliswork.models.explanation import Analysis, Confidences, analyses_of, confidences_of, tags_of_best
from trelliswork.models.features import TokenFeatures, restore_vocabulary
from trelliswork.models.labels import Labels, tags_of_gold
from trelliswork.models.storage import StoredModel, check_output, read_model, write_model
from trelliswork.nn.crf import CRF
from trelliswork.nn.encoders import WindowEncoder
from trelliswork.nn.scorers import ContextScorer, LinearScorer

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

    from trelliswork.distributions import LinearChain

TAGGING_BUDGET = 4096  # tokens, padding included, that are tagged at a time

Pins = Mapping[int, str]  # token, counted from 0 -> its tag
Result = TypeVar("Result")


class EncodedSentence(NamedTuple):
    """A sentence as indices: what the network reads and, if known, what it should answer."""

    features: Int[Tensor, "n f"]
    labels: Int[Tensor, " n"] | None

    def __len__(self) -> int:
        return self.features.shape[0]


class Tagger(nn.Module):
    """Features, window encoder, scorer and CRF; trains with `trelliswork.training.train`."""

    def __init__(self, config: TaggerConfig, features: TokenFeatures, labels: Labels):
        super().__init__()
        self.config, self.features, self.labels = config, features, labels
        self.metrics: dict[str, Any] = {}
        self.encoder = WindowEncoder(
            features.sizes,
            features.dims,
            window=config.window,
            hidden=config.hidden,
            dropout=config.dropout,
            unknown_dropout=config.unknown_dropout,
            initialization=config.initialization,
        )
        scorer = LinearScorer if config.scorer == "linear" else ContextScorer
        n_labels = len(labels.vocabulary)
        self.scorer = scorer(config.hidden, n_labels, initialization=config.initialization)
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
        seed: int = 0,
    ) -> Tagger:
        """A new tagger whose vocabularies and labels come from tagged sentences.

        `scheme` is that of the tags (IOB1, IOB2, IOBES, plain), inferred when None. The initial weights depend on
        `seed` alone.
        """
        if not train:
            raise TrellisworkError("expected tagged sentences to build a tagger from, got none; check the data")
        config = config or TaggerConfig()
        labels = Labels.from_sentences(train, scheme=scheme, label_scheme=config.label_scheme)
        features = TokenFeatures.from_sentences(train, config)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return cls(config, features, labels)

    @property
    def n_parameters(self) -> int:
        """Number of trained values."""
        return sum(parameter.numel() for parameter in self.parameters())

    # Learning

    def encode(self, sentences: Sequence[Sentence], *, with_tags: bool = False) -> list[EncodedSentence]:
        """Sentences as indices, to be reused from epoch to epoch."""
        constrained = self.config.constrained
        return [
            EncodedSentence(
                self.features.encode(sentence),
                torch.tensor(self.labels.indices(sentence, constrained=constrained)) if with_tags else None,
            )
            for sentence in sentences
        ]

    def forward(self, features: Int[Tensor, "batch n f"], mask: Bool[Tensor, "batch n"]) -> Float[Tensor, "batch n c"]:
        """Scores of each label at each token."""
        return self.scorer(self.encoder(features, mask), mask)

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
        device = next(self.parameters()).device
        lengths = torch.tensor([len(sentence) for sentence in encoded])
        features = pad_sequence([sentence.features for sentence in encoded], batch_first=True)
        mask = torch.arange(features.shape[1]) < lengths[:, None]
        return self(features.to(device), mask.to(device)), mask.to(device)

    # Answers

    def distribution(self, sentences: Sequence[Sentence], pins: Sequence[Pins] | None = None) -> LinearChain:
        """p(labels | words, pins) of a batch of sentences; values are indices into `labels.vocabulary`.

        `pins` holds, for each sentence, tags that are known: `{0: "B-NP"}` says that the first token begins an NP.
        """
        with self._evaluating():
            emissions, mask = self._emissions(self.encode(sentences))
            chain = self.crf.distribution(emissions, mask)
            return (
                chain if pins is None or not any(pins) else chain.constrain(self._allowed(sentences, pins, emissions))
            )

    def _allowed(
        self, sentences: Sequence[Sentence], pins: Sequence[Pins], emissions: Float[Tensor, "batch n c"]
    ) -> Bool[Tensor, "batch n c"]:
        """True for each label that the pins leave."""
        allowed = torch.ones(emissions.shape, dtype=torch.bool)
        for row, (sentence, known) in enumerate(zip(sentences, pins, strict=True)):
            for i, tag in known.items():
                if not 0 <= i < len(sentence):
                    raise TrellisworkError(f"a pin must be on token 0..{len(sentence) - 1}; got {i} ({tag!r})")
                allowed[row, i] = False
                allowed[row, i, self.labels.meaning(tag)] = True
        return allowed.to(emissions.device)

    def tag(self, sentences: Sequence[Sentence], pins: Sequence[Pins] | None = None) -> list[list[str]]:
        """The best tags of each sentence, in the scheme of the training data; `pins` as in `distribution`.

        >>> tagger.tag([Sentence(("Ann", "sings"))])       # doctest: +SKIP
        [['B-NP', 'B-VP']]
        """

        def decode(batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> list[list[str]]:
            if pins is not None:
                return tags_of_best(self.distribution(batch, pins), self.labels, batch)
            emissions, mask = self._emissions(self.encode(batch))
            return [self.labels.tags(labels) for labels in self.crf.decode(emissions, mask)]

        return self._in_batches(sentences, pins, decode, empty=list)

    def analyses(
        self, sentences: Sequence[Sentence], top_k: int = 3, pins: Sequence[Pins] | None = None
    ) -> list[list[Analysis]]:
        """The `top_k` most probable tag sequences of each sentence, best first, with exact probabilities."""
        if top_k < 1:
            raise TrellisworkError(f"top_k must be at least 1; got {top_k}")
        return self._in_batches(
            sentences,
            pins,
            lambda batch, pins: analyses_of(self.distribution(batch, pins), self.labels, batch, top_k),
            empty=lambda: [Analysis([], 1.0)],
        )

    def confidences(self, sentences: Sequence[Sentence], pins: Sequence[Pins] | None = None) -> list[Confidences]:
        """The best tags with the exact probability of each token's tag and of each predicted span."""
        return self._in_batches(
            sentences,
            pins,
            lambda batch, pins: confidences_of(self.distribution(batch, pins), self.labels, batch),
            empty=lambda: Confidences([], [], []),
        )

    def evaluate(self, sentences: Sequence[Sentence]) -> dict[str, Any]:
        """Scores on gold data (see `evaluate_tags`); tags never seen in training count as mistakes."""
        gold = [tags_of_gold(sentence) for sentence in sentences]
        return evaluate_tags(gold, self.tag(sentences), self.labels.data_scheme)

    def _in_batches(
        self,
        sentences: Sequence[Sentence],
        pins: Sequence[Pins] | None,
        answer: Callable[[Sequence[Sentence], Sequence[Pins] | None], list[Result]],
        *,
        empty: Callable[[], Result],
    ) -> list[Result]:
        """Apply `answer` to batches of like length; results in the order given, `empty()` for no words."""
        if pins is not None and len(pins) != len(sentences):
            raise TrellisworkError(f"expected pins for {len(sentences)} sentences; got {len(pins)}; use {{}} for none")
        results = [empty() for _ in sentences]
        filled = [i for i, sentence in enumerate(sentences) if len(sentence)]
        lengths = [len(sentences[i]) for i in filled]
        with self._evaluating():
            for batch in token_budget_batches(lengths, TAGGING_BUDGET, shuffle=False):
                chosen = [filled[i] for i in batch]
                pinned = None if pins is None else [pins[i] for i in chosen]
                for i, result in zip(chosen, answer([sentences[i] for i in chosen], pinned), strict=True):
                    results[i] = result
        return results

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
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
            summary=f"A window network under a linear-chain CRF, for {self.labels.data_scheme} tags.",
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
