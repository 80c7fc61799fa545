"""A recognizer by connectionist temporal classification: p(string | recording), summed over all alignments.

    >>> model = tw.load("reader")                                                       # doctest: +SKIP
    >>> answer = model.predict(["ann-0.wav"], top_k=2)[0]                               # doctest: +SKIP
    >>> answer.value, answer.probability, answer.seconds[0]                             # doctest: +SKIP
    ('3 1 4', 0.93, (0.02, 0.18))

Graves, Fernández, Gomez and Schmidhuber (2006), Connectionist temporal classification: labelling unsegmented sequence
data with recurrent neural networks.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from trelliswork import distributions
from trelliswork.data import Sentence, Vocabulary, token_budget_batches
from trelliswork.data.media import Media, MediaKind, read_media
from trelliswork.data.recordings import RECORDINGS, Recording, RecordingFormat
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.logs import count, tell
from trelliswork.metrics.calibration import calibration
from trelliswork.metrics.strings import edit_distances
from trelliswork.models.base import Alternative, Answer, Description, Inputs, PartProbability, Report, Scores
from trelliswork.models.networks.stored_network import StoredNetwork
from trelliswork.models.recipe import Material, Note, Options
from trelliswork.models.recognizers.config import DecodingSettings, RecognizerConfig
from trelliswork.models.recognizers.features import frames_of
from trelliswork.models.recognizers.language import Fusion, fitted, scorer_of
from trelliswork.models.recognizers.network import FrameNetwork, distorted, masked_out
from trelliswork.models.storage import StoredConfig
from trelliswork.nn.ctc import CTC
from trelliswork.runtime.arrays import Float
from trelliswork.structures.ctc.beam import ModelOptions, NgramScorer
from trelliswork.structures.ctc.strings import label_posteriors
from trelliswork.training.shares import answered

Recordings = Sequence[Recording]
BLANK = 0
BUDGET = 1 << 14  # frames, padding included, that the network reads at a time
AT_ONCE = 256  # recordings whose frames are in memory together
RULE = "CTC needs one frame for each symbol and one more between equal neighbours"
MOST_SHOWN = 5  # symbols that are listed
SURE = 0.5  # no other string can be more probable than one that has at least this share


@dataclass(frozen=True, slots=True)
class EncodedRecording:
    """The frames of a recording, and the numbers of the symbols of its transcript."""

    frames: Tensor
    target: Tensor

    def __len__(self) -> int:
        return len(self.frames)


class Read(NamedTuple):
    """The strings of a recording as numbers of symbols with log probabilities, best first; the scores of its frames."""

    best: list[tuple[list[int], float]]
    log_probs: Tensor
    n_frames: int


class CTCRecognizer(StoredNetwork):
    """Convolutions, BiLSTM layers and CTC over symbols; trains with `trelliswork train --model ctc`.

    Args:
        config: Settings.
        format: How transcripts are cut, and what recordings are like.
        symbols: Symbols by number; the blank comes before them.
    """

    CONFIG = RecognizerConfig
    reads, learns_from, search = RECORDINGS, RECORDINGS, "beam"
    next_options: ClassVar[str] = "--top-k 3"
    format: RecordingFormat

    def __init__(self, config: RecognizerConfig, format: RecordingFormat, symbols: Vocabulary) -> None:
        super().__init__()
        self.config, self.format, self.symbols = config, format, symbols
        planes, height = {
            "vectors": (format.dim, 1), "image": (1, config.height),
            "sound": (3 if config.deltas else 1, config.filters),
        }[format.media]  # fmt: skip
        self.network = FrameNetwork(config, planes, height, len(symbols) + 1)
        self.loss_layer = CTC(BLANK, "sum", zero_infinity=True)
        self.decoding, self.fusion = DecodingSettings(), Fusion()
        self.scorer: NgramScorer | None = None
        self._held: dict[str, Tensor] = {}  # frames of the dev recordings while it learns

    @classmethod
    def from_material(cls, material: Material, config: RecognizerConfig, options: Options, seed: int) -> Self:
        """Return a new model, as the command line asks for it.

        Args:
            material: Recordings to learn from, and their format.
            config: Settings.
            options: Options of the command; not read here.
            seed: Seed of the first weights.
        """
        return cls.from_data(material.train, config, format=material.choices.pairs, seed=seed)

    @classmethod
    def from_data(
        cls, train: Inputs, config: RecognizerConfig | None = None, *, format: RecordingFormat, seed: int = 0
    ) -> Self:
        """Return a new model of the symbols of some transcripts, which looks at frames as these recordings have them.

        Args:
            train: Recordings with transcripts.
            config: Settings.
            format: How transcripts are cut, and what recordings are like.
            seed: Seed of the first weights.
        """
        symbols = Vocabulary(sorted({symbol for each in train for symbol in each.target or ()}))
        if not len(symbols):
            raise TrellisworkError("expected recordings with transcripts to learn from, got none; check the manifest")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = cls(config or cls.CONFIG(), format, symbols)
        if format.media == "vectors":
            rows = np.concatenate([model._frames(each).numpy() for each in islice(train, AT_ONCE)])
            model.network.mean.copy_(torch.from_numpy(rows.mean(0)))
            model.network.deviation.copy_(torch.from_numpy(np.maximum(rows.std(0), 1e-4)))
        return model

    @classmethod
    def learnable(cls, material: Material, config: RecognizerConfig, file: str, note: Note) -> Inputs:
        """Return the recordings with their frames; transcripts that need more frames than there are are an error, or
        are left out if the settings want that."""
        format = material.choices.pairs
        if config.lm is not None:
            scorer_of(config.lm, Vocabulary(sorted({s for each in material.train for s in each.target or ()})))
        kept: Inputs = []
        impossible: list[str] = []
        train: Inputs = material.train
        for each in train:
            frames = torch.from_numpy(frames_of(read_media(each.words[0]), config, format))
            n = -(-len(frames) // config.stride)  # of the output
            if n >= frames_needed(each.target or ()):
                kept.append(replace(each, frames=frames))
            else:
                got = f"{each.text}: {count(len(each.target or ()), 'symbol')}, {count(n, 'frame')}"
                impossible.append(f"{each.file}:{each.line} ({got})")
        if impossible and not config.skip_impossible:
            problem = f"expected transcripts that fit, got {len(impossible):,} of {len(material.train):,} that do not"
            fix = "correct them, lower --stride, or leave them out with --skip-impossible"
            raise DataError(file, f"{problem}, the first in {impossible[0]}: {RULE}; {fix}")
        if impossible:
            note(f"note: {count(len(impossible), 'recording')} left out, the first in {impossible[0]}: {RULE}")
        return kept

    # Learning

    def begin_training(self, train: Sequence[Sentence], dev: Inputs, epoch: int, note: Note) -> None:
        super().begin_training(train, dev, epoch, note)
        self._held = {each.words[0]: self._frames(each) for each in dev}

    def end_training(self) -> None:
        super().end_training()
        self._held = {}

    def encode(self, recordings: Inputs, *, with_tags: bool = False) -> list[EncodedRecording]:
        """Return frames and numbers of symbols, to be reused from epoch to epoch."""
        return [
            EncodedRecording(self._frames(each), torch.tensor(self._numbers(each) if with_tags else []).long())
            for each in recordings
        ]

    def _numbers(self, recording: Recording) -> list[int]:
        """Return the numbers of the symbols of a transcript, which the model must know."""
        if recording.target is None:
            problem = "expected a file, a tab and its transcript, got a file alone; add its transcript"
            raise DataError(recording.file or "recording", problem, line=recording.line)
        if strange := [symbol for symbol in recording.target if symbol not in self.symbols]:
            problem = f"expected symbols of the training transcripts, got {strange[0]!r}; correct the transcript"
            raise DataError(recording.file or "recording", problem, line=recording.line)
        return [1 + i for i in self.symbols.indices(recording.target)]

    def _frames(self, recording: Recording) -> Tensor:
        if recording.frames is not None:
            return torch.as_tensor(recording.frames)
        (path,) = recording.words
        if path in self._held:
            return self._held[path]
        media = read_media(path)
        self._note_channels(media, path)
        return torch.from_numpy(frames_of(media, self.config, self.format))

    def _note_channels(self, media: Media, path: str) -> None:
        if media.channels > 1 and not getattr(self, "_noted", False):
            self._noted = True
            tell(f"note: {path} has {media.channels} channels, and their mean is read; so it is in all further files")

    def loss(self, batch: Inputs) -> Float[Tensor, ""]:
        """Return -log p(transcript | recording), summed over the batch."""  # [S4.650, 658]
        encoded = [
            each if isinstance(each, EncodedRecording) else self.encode([each], with_tags=True)[0] for each in batch
        ]
        frames, lengths = self._padded([each.frames for each in encoded])
        if self.training:
            frames, lengths = self._distorted(frames, lengths)
        log_probs = self.network(frames, lengths)
        targets = pad_sequence([each.target for each in encoded], batch_first=True)
        sizes = torch.tensor([len(each.target) for each in encoded])
        return self.loss_layer(log_probs.transpose(0, 1), targets, self.network.output_lengths(lengths).cpu(), sizes)

    def _padded(self, frames: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        padded, lengths = pad_sequence(list(frames), batch_first=True), torch.tensor(list(map(len, frames)))
        device = self.network.output.weight.device
        return padded.to(device), lengths.to(device)

    def _distorted(self, frames: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        if self.format.media == "image":
            return distorted(frames, lengths, self.config)
        return masked_out(frames, lengths, self.network.mean, self.config), lengths

    def calibrate(self, sentences: Inputs) -> bool:
        """Fit the weight of the language model, if the settings name one, to held-out recordings."""
        if self.config.lm is None or not sentences:
            return False
        rows = [each.log_probs for each in self.read(sentences)]
        numbers = [[1 + self.symbols.index(s) if s in self.symbols else -1 for s in each.target] for each in sentences]
        self.fusion = fitted(rows, numbers, scorer_of(self.config.lm, self.symbols), self.config.beam)
        tell(f"{self.config.lm}: weight {self.fusion.weight:g}, bonus {self.fusion.bonus:g} a symbol, fitted on dev")
        return True

    # Answers

    def decoded_by(self, decoding: DecodingSettings, beam: int = 0) -> Self:
        """Return the same model with another way to find strings, and another beam unless that is 0."""
        if decoding.lm is None and (decoding.lm_weight is not None or decoding.lm_bonus is not None):
            raise TrellisworkError("--lm-weight and --lm-bonus are about a language model, got none; add --lm DIR")
        if decoding.lm is not None and (decoding.align or decoding.search == "greedy"):
            raise TrellisworkError("--lm takes part in the beam; leave out --align and --search greedy")
        model = copy.copy(self)
        model.decoding = decoding
        model.scorer = None if decoding.lm is None else scorer_of(decoding.lm, self.symbols)
        given = {"weight": decoding.lm_weight, "bonus": decoding.lm_bonus}
        model.fusion = self.fusion._replace(**{name: each for name, each in given.items() if each is not None})
        model.config = replace(self.config, beam=beam) if beam else self.config
        return model

    def cost(self, n: int, *, top_k: int = 0, choices: bool = False, explain: bool = False) -> float:
        """Return seconds; a recording is taken to have a thousand frames."""
        return n * (0.3 + 1e-3 * top_k)

    def _as_sentences(self, given: Inputs) -> list[Sentence]:
        several = [given] if isinstance(given, str | Path | Sentence | np.ndarray | Tensor) else list(given)
        return [each if isinstance(each, Sentence) else self._recording(each) for each in several]

    def _recording(self, given: Inputs) -> Recording:
        """Return a recording of a path, or of an array [frames, dim] of vectors or [columns, rows] of ink."""
        if isinstance(given, np.ndarray | Tensor):
            values = np.asarray(given, np.float32)
            kind: MediaKind = "vectors" if self.format.media == "vectors" else "image"
            if values.ndim != 2 or self.format.media == "sound":
                raise TrellisworkError(f"expected a path or vectors [frames, dim], got {values.shape}; give a path")
            media = Media(kind, values)
            self.format.check(media, "training")
            frames = torch.from_numpy(frames_of(media, self.config, self.format))
            return Recording(("array",), text="array", frames=frames)
        path = str(given)
        self.format.check(read_media(path), "training")
        return Recording((path,), text=path, file=path)

    def predict(self, inputs: Inputs, *, top_k: int = 1, pins: object = None, confidence: bool = True) -> list[Answer]:
        """Return the transcript of each recording, with exact probabilities.

        Args:
            inputs: Paths of recordings, arrays [frames, dim], or what a manifest has.
            top_k: Number of transcripts of each answer.
            pins: Nothing: a transcript has no places that could be pinned.
            confidence: Add each symbol with its frames and its probability given all other symbols.
        """
        if pins is not None:
            raise TrellisworkError("expected no pins, got some; a recognizer has none")
        recordings: Inputs = self.sentences_of(inputs)
        read = self.read(recordings, max(top_k, 1))
        return [self._answer(row, top_k, confidence) for row in read]

    def read(self, recordings: Recordings, top_k: int = 1) -> Iterator[Read]:
        """Yield the strings of each recording; frames are in memory for some recordings at a time."""
        rows = iter(recordings)
        while group := list(islice(rows, AT_ONCE)):
            every = [self._frames(each) for each in group]
            read: dict[int, Read] = {}
            with self.evaluating():
                for batch in token_budget_batches([len(each) for each in every], BUDGET, shuffle=False):
                    frames, lengths = self._padded([every[i] for i in batch])
                    log_probs = self.network(frames, lengths).cpu()
                    sizes = self.network.output_lengths(lengths).tolist()
                    for i, row, size in zip(batch, log_probs, sizes, strict=True):
                        read[i] = self._read_one(row[:size], len(every[i]), group[i], top_k)
            yield from (read[i] for i in range(len(group)))

    def _read_one(self, log_probs: Tensor, n_frames: int, recording: Recording, top_k: int) -> Read:
        strings = distributions.CTC(log_probs, blank=BLANK, backend="kernel")
        if self.decoding.align:
            best = [self._numbers(recording)]
        elif self.decoding.search == "greedy":
            best = [strings.best_path()]
        else:
            models: ModelOptions = {} if self.scorer is None else {
                "scorer": self.scorer, "scorer_weight": self.fusion.weight, "label_bonus": self.fusion.bonus,
            }  # fmt: skip
            best = [each.labels for each in strings.beam_search(max(self.config.beam, top_k), k=top_k, **models)]
        many = distributions.CTC(log_probs.expand(len(best), -1, -1), blank=BLANK, backend="kernel")
        scored = zip(best, many.log_prob(best).tolist(), strict=True)
        ranked = list(scored) if self.scorer is not None else sorted(scored, key=lambda each: -each[1])
        return Read(ranked, log_probs, n_frames)

    def _answer(self, read: Read, top_k: int, confidence: bool) -> Answer:
        shares = [float(np.exp(min(log_p, 0.0))) for _, log_p in read.best]
        best = [Alternative(self._text(labels), p) for (labels, _), p in zip(read.best, shares, strict=True)]
        parts = self._parts(read) if confidence else []
        step = self.config.step_ms / 1000 if self.format.media == "sound" else 0.0
        seconds = [(round(each.start * step, 6), round(each.end * step, 6)) for each in parts] if step else []
        return Answer(
            best[0].value, best[0].probability, parts=parts, alternatives=best if top_k else (), seconds=seconds,
            search="aligned" if self.decoding.align else self.decoding.search,
            certain=self.decoding.align or (self.scorer is None and shares[0] >= SURE),
        )  # fmt: skip

    def _parts(self, read: Read) -> list[PartProbability]:
        """Return the symbols of the best string with the frames of the best alignment, and with their posteriors."""
        labels, log_p = read.best[0]
        if not labels or log_p == -np.inf:
            return []
        (spans,) = distributions.CTC(read.log_probs[None], blank=BLANK, backend="kernel").align([labels]).spans
        shares = label_posteriors(read.log_probs.double().numpy(), labels, BLANK)
        stride, n = self.config.stride, read.n_frames
        return [
            PartProbability(
                span.start * stride, min(span.end * stride, n), self.format.spelled(self.symbols[label - 1]), float(p)
            )
            for span, label, p in zip(spans, labels, shares, strict=True)
        ]

    def _text(self, labels: Sequence[int]) -> str:
        return self.format.join_target([self.symbols[label - 1] for label in labels])

    # Scores

    def evaluate(self, gold: Inputs) -> Scores:
        """Return error rates of symbols and words, the share of transcripts that are right, and the calibration."""
        best = answered(self._best, gold)
        for each in gold:
            if each.target is None:
                self._numbers(each)
        symbols = [tuple(self.symbols[label - 1] for label in labels) for labels, _ in best]
        right = [list(each.target) == list(found) for each, found in zip(gold, symbols, strict=True)]
        n_symbols = sum(len(each.target) for each in gold)
        errors = sum(edit_distances([(found, each.target) for found, each in zip(symbols, gold, strict=True)]))
        words = [(self._words(found), self._words(each.target)) for found, each in zip(symbols, gold, strict=True)]
        shares = [float(np.exp(min(log_p, 0.0))) for _, log_p in best]
        rate = errors / max(n_symbols, 1)
        sure = calibration(zip(shares, right, strict=True)).expected_error
        return {
            "metric": "symbol accuracy", "score": 1 - rate, "symbol_error_rate": rate,
            "word_error_rate": sum(edit_distances(words)) / max(sum(len(known) for _, known in words), 1),
            "exact_match": sum(right) / max(len(right), 1),
            "calibration": {"of": "transcripts", "expected_error": sure},
        }  # fmt: skip

    def _best(self, recordings: Recordings) -> list[tuple[list[int], float]]:
        return [each.best[0] for each in self.read(recordings)]

    def _words(self, symbols: Sequence[str]) -> list[str]:
        return self.format.join_target(symbols).split()

    def report(self, gold: Sequence[Sentence], *, threshold: float | None = None) -> Report:
        """Return error rates and the calibration error, in per cent."""
        if threshold is not None:
            raise TrellisworkError("--threshold is for spans, and a recognizer writes one string; leave it out")
        scores = self.evaluate(gold)
        names = ("symbol_error_rate", "word_error_rate", "exact_match")
        lines = [f"{name.replace('_', ' '):<24}{100 * scores[name]:6.2f}" for name in names]
        error = scores["calibration"]["expected_error"]
        lines.append(f"{'calibration error':<24}{100 * error:6.2f}   of the probabilities of transcripts")
        return Report("\n".join(lines), scores)

    def readable_gold(self, gold: Sequence[Sentence], scheme: str | None = None) -> tuple[list[Sentence], list[str]]:
        return list(gold), self._strange(gold)

    def notes(self, train: Sequence[Sentence], dev: Sequence[Sentence]) -> list[str]:
        return self._strange(dev)

    def _strange(self, gold: Sequence[Sentence]) -> list[str]:
        strange = sorted({symbol for each in gold for symbol in each.target or () if symbol not in self.symbols})
        if not strange:
            return []
        more = f" and {len(strange) - MOST_SHOWN} more" if len(strange) > MOST_SHOWN else ""
        shown = ", ".join(map(repr, strange[:MOST_SHOWN])) + more
        n = count(len(strange), "symbol")
        return [f"note: {n} of the transcripts never seen in training, which count as errors: {shown}"]

    # What it is

    def describe(self, top: int = 20) -> Description:
        symbols, settings = self.symbols.to_list(), self.config.to_dict()
        reads = {"vectors": f"vectors of {self.format.dim} numbers", "image": f"images, {self.config.height} high",
                 "sound": f"sound, {self.format.rate:,} samples a second"}[self.format.media]  # fmt: skip
        labels = {
            "reads": reads,
            "symbols": f"{len(symbols):,}: {' '.join(symbols[:40])}{' ...' * (len(symbols) > 40)}",
        }
        return Description("convolutions and BiLSTMs under CTC", labels, {"symbols": symbols}, settings,
                           [("network", settings)])  # fmt: skip

    # Disk

    def stored_config(self) -> dict[str, object]:
        return {
            "settings": self.config.to_dict(), "format": asdict(self.format), "symbols": self.symbols.to_list(),
            "fusion": self.fusion._asdict(),
        }  # fmt: skip

    @classmethod
    def from_stored(cls, config: StoredConfig) -> Self:
        settings = cls.CONFIG.from_dict(config["settings"])
        model = cls(settings, RecordingFormat(**config["format"]), Vocabulary(config["symbols"]))
        model.fusion = Fusion(**config.get("fusion", {}))
        return model


def frames_needed(symbols: Sequence[str]) -> int:
    """Return the fewest frames that can spell some symbols.

    >>> frames_needed("book")
    5
    """
    return len(symbols) + sum(a == b for a, b in pairwise(symbols))
