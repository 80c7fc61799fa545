"""Base of language models that are networks: texts as streams, scores of tokens, storage, and how they are trained.

A network reads units one after the other and predicts the next one. A text is read as parallel streams whose state is
carried from batch to batch (`context` text), or sentence by sentence. Before the first unit of a sentence a network
reads the end of another one, so that </s> is the one border that it knows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from trelliswork.data import Choices, Sentence, token_budget_batches
from trelliswork.data.settings import options_of, settings_given
from trelliswork.errors import TrellisworkError
from trelliswork.logs import count
from trelliswork.models.base import Description
from trelliswork.models.language.base import LanguageModel
from trelliswork.models.language.config import NetworkText, TextFiles
from trelliswork.models.language.corpus import UNKNOWN, TextReading, corpus_of, learned_reading
from trelliswork.models.networks.recipe import NetworkRecipe
from trelliswork.models.networks.stored_network import StoredNetwork
from trelliswork.models.recipe import Material, Note, Options
from trelliswork.models.storage import StoredConfig
from trelliswork.nn.encoders.forward import State
from trelliswork.nn.output_layers import OutputLayer
from trelliswork.runtime.arrays import Array, Float, Int
from trelliswork.training.config import TrainingConfig

OUTPUT, EMBEDDING = "output.weight", "embedding.weight"  # names of weights, which may be the same
IGNORED = -1  # the target of a place without a unit
SCORED = 4096  # units that are read together where nothing is learned
ROWS = 512  # whose scores of all units are in memory at once
STREAMS, LEAST_STREAM, WARM_UP = 32, 1000, 200  # of a text that is scored: at most, least units, units read again
OfPiece = Callable[[Tensor, Tensor], Tensor]
KEPT_STATES = 256  # of prefixes that may be continued


@dataclass(frozen=True)
class TextBatch:
    """Units that are read and those that follow them; the `first` of a text, and the sentences that it begins in."""

    inputs: Int[Tensor, "n batch"]
    targets: Int[Tensor, "n batch"]
    first: bool = True
    sentences: tuple[Sentence, ...] = ()

    def __len__(self) -> int:
        return int((self.targets != IGNORED).sum())


Batch = Sequence[Sentence] | Sequence[Tensor] | Sequence[TextBatch]


class NeuralLanguageModel(LanguageModel, StoredNetwork):
    """A network that predicts the next unit. A subclass says how it reads, and from which state on.

    Args:
        config: Settings.
        format: How text is cut into units.
        names: Units by number, without the end of a sentence, whose number comes after theirs.
    """

    CONFIG: ClassVar[type[NetworkText]]
    config: NetworkText
    STRUCTURE: ClassVar[str]  # what it is, in a few words
    output: OutputLayer
    unit_counts: Tensor

    def __init__(self, config: NetworkText, format: TextReading, names: Sequence[str]) -> None:
        super().__init__()
        self.config, self.format, self.names = config, format, list(names)
        self.tokeniser = format.tokeniser
        self.register_buffer("unit_counts", torch.zeros(len(self.names), dtype=torch.long))
        self._number = {name: i for i, name in enumerate(self.names)}
        self._end, self._unknown = len(self.names), self._number.get(UNKNOWN, len(self.names) - 1)
        self._carried: State | None = None
        self._states: dict[tuple[int, ...], tuple[Tensor, State]] = {}

    # What a subclass says

    @abstractmethod
    def first_state(self, batch: int) -> State:
        """Return the state before anything was read; the batch is the second dimension of all that it has."""

    @abstractmethod
    def read(self, inputs: Int[Tensor, "n batch"], state: State) -> tuple[Float[Tensor, "n batch d"], State]:
        """Return a vector after each unit, which the next one is predicted by, and the state after the last."""

    @property
    def carries(self) -> bool:
        """True if a sentence is read after those before it."""
        return self.config.context == "text"

    # Making

    @classmethod
    def from_text(
        cls,
        text: Iterable[Sentence | str],
        config: NetworkText | None = None,
        *,
        format: TextReading | None = None,
        seed: int = 0,
    ) -> Self:
        """Return a new model of the units of a text, not trained.

        Args:
            text: Sentences; words of a string have white space between them.
            config: Settings, by default those of the class.
            format: Way to cut sentences into units.
            seed: Seed of the first weights.
        """
        config, format = config or cls.CONFIG(), format or TextReading(pretokenised=True)
        corpus = corpus_of((format.cut(_sentence(each)) for each in text), config.least_count)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = cls(config, format, corpus.names)
        model.unit_counts.copy_(torch.from_numpy(corpus.counts))
        return model

    @classmethod
    def from_material(cls, material: Material, config: NetworkText, options: Options, seed: int) -> Self:
        """Return a new model, as the command line asks for it.

        Args:
            material: Sentences to learn from, and how they are cut into units.
            config: Settings of the network.
            options: Options of the command; not read here.
            seed: Seed of the first weights.

        Returns:
            The model, not trained.
        """
        return cls.from_text(material.train, config, format=material.choices.pairs, seed=seed)

    @property
    def counts(self) -> Array:  # type: ignore[override]
        """Return the count of each unit in training."""
        counts: Array = self.unit_counts.numpy(force=True)
        return counts

    def notes(self, train: Sequence[Sentence], dev: Sequence[Sentence]) -> list[str]:
        if int(self.unit_counts[self._unknown]):
            return []
        problem = f"note: no unit of the text is {UNKNOWN}, so what it is like is not learned"
        return [f"{problem} (--least-count 2 makes those seen once unknown)"]

    # Learning

    def encode(self, sentences: Sequence[Sentence], *, with_tags: bool = False) -> list[Tensor]:
        """Return the numbers of the units of each sentence and of its end."""
        return [torch.tensor(self.numbers(self.format.cut(each))) for each in sentences]

    def numbers(self, units: Sequence[str]) -> list[int]:
        """Return the numbers of units and of the end."""
        return [*(self._number.get(unit, self._unknown) for unit in units), self._end]

    def in_order(self, sentences: Sequence[Sentence], training: TrainingConfig) -> list[TextBatch] | None:
        """Return the text as batches of parallel streams, cut into pieces that gradients go back through."""
        if not self.carries:
            return None
        encoded = self.encode(sentences)
        text, steps = torch.cat(encoded), self.config.steps
        n_streams = max(1, min(training.batch_tokens // steps, -(-len(text) // steps)))
        length = -(-len(text) // n_streams)
        padded = torch.nn.functional.pad(text, (1, n_streams * length - len(text)), value=self._end)
        targets = padded[1:].view(n_streams, length).T.clone()
        targets[(torch.arange(n_streams) * length + torch.arange(length)[:, None]) >= len(text)] = IGNORED
        inputs = padded[:-1].view(n_streams, length).T.contiguous()
        ends = np.array([*accumulate(map(len, encoded))])
        batches = []
        for start in range(0, length, steps):
            places = np.minimum(start + length * np.arange(n_streams), len(text) - 1)
            at = tuple(sentences[i] for i in np.searchsorted(ends, places, side="right").tolist())
            piece = slice(start, start + steps)
            batches.append(TextBatch(inputs[piece], targets[piece], start == 0, at))
        return batches

    def carried(self) -> dict[str, Tensor]:
        """Return the state that the next batch begins with."""
        return {str(i): tensor for i, tensor in enumerate(self._carried or ())}

    def carry(self, tensors: Mapping[str, Tensor]) -> None:
        """Put back what `carried` returned."""
        self._carried = tuple(tensors[str(i)] for i in range(len(tensors))) or None

    def loss(self, batch: Batch) -> Float[Tensor, ""]:
        """Return -log p of all units, summed over the batch: of one piece of a text, or of sentences."""
        pieces = [each for each in batch if isinstance(each, TextBatch)]
        if not pieces:
            return self._piece_loss(self._padded(self._rows(batch)))[0]
        (piece,) = pieces
        loss, state = self._piece_loss(piece, None if piece.first else self._carried)
        # A checkpoint keeps no bf16; float32 holds the same numbers.
        self._carried = tuple(each.detach().float() if each.is_floating_point() else each for each in state)
        return loss

    def _rows(self, batch: Batch) -> list[Tensor]:
        return [
            each if isinstance(each, Tensor) else self.encode([each])[0]
            for each in batch
            if not isinstance(each, TextBatch)
        ]

    def _piece_loss(self, piece: TextBatch, state: State | None = None) -> tuple[Float[Tensor, ""], State]:
        """Return the summed loss of a piece that is read from a state, and the state after it."""
        inputs, targets = piece.inputs.to(self.device), piece.targets.to(self.device)
        hidden, state = self.read(inputs, self.first_state(inputs.shape[1]) if state is None else state)
        return self._output_loss(hidden, targets), state

    def _output_loss(self, hidden: Float[Tensor, "n batch d"], targets: Int[Tensor, "n batch"]) -> Float[Tensor, ""]:
        valid = targets != IGNORED
        if bool(valid.all()):
            return self.output.total_loss(hidden.flatten(0, 1), targets.flatten())
        return self.output.total_loss(hidden[valid], targets[valid])

    def _padded(self, rows: Sequence[Tensor]) -> TextBatch:
        targets = pad_sequence(list(rows), padding_value=IGNORED)
        inputs = torch.cat([targets.new_full((1, len(rows)), self._end), targets[:-1].clamp(min=0)])
        return TextBatch(inputs, targets)

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return self.unit_counts.device

    def begin_training(self, train: object, dev: object, epoch: int, note: Note) -> None:
        """Forget the states of prefixes, which change with the weights."""
        self._states.clear()

    def begin_epoch(self, epoch: int, n_epochs: int) -> None:
        self._states.clear()

    def end_training(self) -> None:
        self._states.clear()
        self._carried = None

    # Answers

    def log_probs(self, sentences: Sequence[Sequence[str]]) -> list[Array]:
        rows = [torch.tensor(self.numbers(units)) for units in sentences]
        logs: list[Array] = [np.zeros(0)] * len(rows)
        for batch in token_budget_batches(list(map(len, rows)), SCORED, shuffle=False):
            scores = self._read_all(self._padded([rows[i] for i in batch]), self._target_log_probs).T
            for i, row in zip(batch, scores, strict=True):
                logs[i] = row[: len(rows[i])].numpy(force=True)
        return logs

    def text_log_probs(self, sentences: Sequence[Sequence[str]]) -> list[Array]:
        """Return log p of the units of a text; with `context` text, each sentence is read after those before it.

        A long text is read as parallel streams, each of which begins with units of the one before.
        """
        if not self.carries or not sentences:
            return self.log_probs(sentences)
        rows = [self.numbers(units) for units in sentences]
        text = torch.tensor(list(chain.from_iterable(rows)))
        flat = self.stream_log_probs(text, streams_for(len(text)))
        return [flat[low:high] for low, high in pairwise([0, *accumulate(map(len, rows))])]

    def stream_log_probs(self, text: Int[Tensor, " n"], n_streams: int) -> Array:
        """Return log p of each unit of a text that is read in `n_streams` streams, a single one being exact."""
        return self._over_streams(text, n_streams, self._target_log_probs).numpy(force=True)

    def hidden_states(self, text: Int[Tensor, " n"], n_streams: int = 1) -> Float[Tensor, "n d"]:
        """Return the vector that each unit of a text is predicted by."""
        return self._over_streams(text, n_streams, lambda hidden, targets: hidden)

    def _over_streams(self, text: Int[Tensor, " n"], n_streams: int, of_piece: OfPiece) -> Tensor:
        """Return what a function gives for each unit of a text, in the order of the text."""
        again = WARM_UP if n_streams > 1 else 0
        own = max(1, -(-(len(text) - again) // n_streams))  # units that a stream scores; the first also `again` others
        padded = torch.nn.functional.pad(text, (1, n_streams * own + again - len(text)), value=self._end)
        starts = torch.arange(n_streams) * own + torch.arange(own + again)[:, None]
        values = self._read_all(TextBatch(padded[starts], padded[starts + 1]), of_piece)
        return torch.cat([values[:again, 0], values[again:].transpose(0, 1).flatten(0, 1)])[: len(text)]

    def _read_all(self, piece: TextBatch, of_piece: OfPiece) -> Tensor:
        """Read a piece some steps at a time, and return what a function of vectors and targets gives for all steps."""
        parts, batch = [], piece.inputs.shape[1]
        with self.evaluating():
            state = self.first_state(batch)
            for at in torch.arange(len(piece.inputs)).split(max(1, SCORED // batch)):
                hidden, state = self.read(piece.inputs[at].to(self.device), state)
                parts.append(of_piece(hidden, piece.targets[at].to(self.device).clamp(min=0)))
        return torch.cat(parts)

    def _target_log_probs(self, hidden: Float[Tensor, "n b d"], targets: Int[Tensor, "n b"]) -> Float[Tensor, "n b"]:
        every = zip(hidden.flatten(0, 1).split(ROWS), targets.flatten().split(ROWS), strict=True)
        logs = [self.output.log_probs(vectors).gather(1, own[:, None]) for vectors, own in every]
        return torch.cat(logs).view(targets.shape)

    def next_log_probs(self, prefix: Sequence[str]) -> Array:
        with self.evaluating():
            hidden, _ = self._after((self._end, *self.numbers(prefix)[:-1]))
            logs: Array = self.output.log_probs(hidden).double().numpy(force=True)
        return logs

    def _after(self, units: tuple[int, ...]) -> tuple[Float[Tensor, " d"], State]:
        """Return the vector and the state after some units; those before the last one have often been read."""
        if units not in self._states:
            before = self._states.get(units[:-1])
            rest, state = (units, self.first_state(1)) if before is None else (units[-1:], before[1])
            for part in torch.tensor(rest, device=self.device).split(SCORED):
                hidden, state = self.read(part[:, None], state)
            if len(self._states) >= KEPT_STATES:
                self._states.pop(next(iter(self._states)))
            self._states[units] = hidden[-1, 0], state
        return self._states[units]

    def cost(self, n: int, *, top_k: int = 0, choices: bool = False, explain: bool = False) -> float:
        """Return seconds: each unit costs a product with every weight."""
        return 1e-3 + 1e-10 * self.n_parameters * (n + 1)

    # What it is

    @property
    def size(self) -> str:
        units = count(len(self.names), self.format.units.removesuffix("s"))
        return f"{self.n_parameters:,} parameters, {units}"

    def describe(self, top: int = 20) -> Description:
        settings = self.config.to_dict()
        common = {name: f"{n:,}" for name, n in zip(self.names[:top], self.counts.tolist(), strict=False)}
        sections = [("network", settings), *([(f"most frequent {self.format.units}", common)] if top else [])]
        labels = {self.format.units: f"{len(self.names):,}"}
        return Description(f"{self.STRUCTURE} over {self.format.units}", labels, {}, settings, sections)

    # Disk

    def stored_config(self) -> dict[str, object]:
        return {"settings": self.config.to_dict(), "reading": self.format.stored(), "names": self.names}

    @classmethod
    def from_stored(cls, config: StoredConfig) -> Self:
        names = config["names"]
        if not names or not all(isinstance(name, str) for name in names):
            raise ValueError("units that are not texts")
        return cls(cls.CONFIG.from_dict(config["settings"]), TextReading.from_stored(config["reading"]), names)

    def stored_weights(self) -> dict[str, Tensor]:
        """Return the weights by name; those of an output layer that shares the embeddings are left out."""
        weights = super().stored_weights()
        tied = weights[OUTPUT].data_ptr() == weights[EMBEDDING].data_ptr()
        return {name: value for name, value in weights.items() if name != OUTPUT or not tied}

    def restore_weights(self, weights: Mapping[str, Tensor]) -> None:
        shared = {} if OUTPUT in weights else {OUTPUT: weights[EMBEDDING]}
        super().restore_weights({**weights, **shared})

    @classmethod
    def load(cls, directory: str | Path, *, features: object = None) -> Self:
        model = super().load(directory, features=features)
        model.format = replace(model.format, tokeniser=model.tokeniser)
        return model


def streams_for(n: int) -> int:
    """Return the number of streams that n units of a text are scored in."""
    return max(1, min(STREAMS, n // LEAST_STREAM))


def _sentence(given: Sentence | str) -> Sentence:
    return Sentence(tuple(given.split()), text=given) if isinstance(given, str) else given


class LanguageNetworkRecipe(NetworkRecipe):
    """`trelliswork train` with a language model that is a network: its text is read into memory."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.files = TextFiles(**settings_given(options, TextFiles))

    def layout(self, choices: Choices) -> Choices:
        reading = TextReading(self.network.units, self.files.pretokenised, None, choices.tokeniser)
        return replace(choices, pairs=reading)

    def settings(self) -> dict[str, object]:
        return super().settings() | options_of(self.files)

    def read(self, material: Material, note: Note) -> Material:
        files: Sequence[str] = material.train  # type: ignore[assignment]
        reading = learned_reading(files, material.choices.pairs, self.network.merges)
        train = [sentence for file in files for sentence in reading.sentences(file)]
        if not any(map(len, train)):
            raise TrellisworkError(f"{files[0]}: expected text to learn from, got none; the file is empty")
        sizes = {"train_sentences": len(train), "train_tokens": sum(len(reading.cut(each)) for each in train)}
        note(f"train: {count(len(train), 'sentence')}, {sizes['train_tokens']:,} {reading.units}")
        if not material.dev:
            note("dev: none; the weights of the last epoch are kept (--dev FILE keeps those of the best)")
        choices = replace(material.choices, pairs=reading)
        return material._replace(train=train, choices=choices, about={**material.about, **sizes})
