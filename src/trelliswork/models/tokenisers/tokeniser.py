"""A trained tokeniser: a CRF says of each visible character whether a token or a sentence ends with it.

    >>> tokeniser = CharacterTokeniser.fit(read_documents("train.conllu"))          # doctest: +SKIP
    >>> tokeniser.tokenise("Mr. Smith didn't come. Why?")                           # doctest: +SKIP

The classes are those of Straka, Hajič and Straková (2016), "UDPipe: Trainable Pipeline for Processing CoNLL-U Files";
here they are scored together, by a linear-chain CRF over neighbouring characters and written words. What it knows of a
language is all in the training text, so it cuts Chinese or Japanese into words as well.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np

from trelliswork.data.attributes import AttributeRows, KeyIndex
from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.models.base import Description
from trelliswork.models.export_folder import model_card
from trelliswork.models.storage import StoredModel, read_model, write_model
from trelliswork.models.taggers.features.crf.model import FeatureCRF
from trelliswork.models.taggers.features.kernels.decoding import best_labels
from trelliswork.models.taggers.features.learners.base import Corpus, Progress
from trelliswork.models.taggers.features.learners.config import LearningConfig
from trelliswork.models.taggers.features.learners.learning import learn, parameters_of
from trelliswork.models.taggers.features.stored import crf_arrays, crf_of_arrays
from trelliswork.models.tokenisers.base import TokeniserModel
from trelliswork.models.tokenisers.character_kernels import (
    N_ATTRIBUTES,
    Characters,
    Weights,
    attribute_keys,
    count_visible,
    lay_out,
    score_characters,
)
from trelliswork.models.tokenisers.config import TokeniserConfig
from trelliswork.models.tokenisers.learned_rules import MultiwordTable
from trelliswork.runtime.arrays import Array
from trelliswork.text import Document, Token

# Coarse kinds of characters; what is outside the text is 0 like white space, and so are controls.
SPACE = 0
_KINDS = {"Lu": 1, "Ll": 2, "Lt": 1, "Lm": 3, "Lo": 3, "Nd": 4, "Nl": 4, "No": 4, "Mn": 5, "Mc": 5, "Me": 5}
_MARKS = {".": 6, "!": 7, "?": 7, ",": 8, ";": 9, ":": 9, "'": 10, "’": 10, '"': 11, "-": 12, "/": 13, "@": 13}
_OTHERS = {"Ps": 14, "Pi": 14, "Pe": 15, "Pf": 15, "Pd": 12, "Po": 16, "Pc": 12, "Sc": 17, "So": 18}
_SCRIPTS = (("HIRAGANA", 20), ("KATAKANA", 21), ("CJK", 22), ("THAI", 23), ("LAO", 23), ("KHMER", 23), ("MYANMAR", 23))
_REST = 19
_UNKNOWN = -1
# Of every code point that was ever met: its kind, and the first code point of its lower case.
_kinds = np.full(0x110000, _UNKNOWN, np.int8)
_lower = np.zeros(0x110000, np.int32)


def kind_of(character: str) -> int:
    """Return the coarse kind of a character."""
    if character.isspace():
        return SPACE
    if character in _MARKS:
        return _MARKS[character]
    category = unicodedata.category(character)
    if category == "Lo":
        name = unicodedata.name(character, "")
        return next((kind for script, kind in _SCRIPTS if name.startswith(script)), _KINDS["Lo"])
    return _KINDS.get(category, _OTHERS.get(category, _REST))


@dataclass(frozen=True)
class Paragraphs:
    """The visible characters of a text, paragraph by paragraph; a blank line ends one."""

    places: Array  # [m] of each visible character, in the text
    before_space: Array  # [m] whether white space or the end follows
    lengths: Array  # [paragraphs] in visible characters
    characters: Characters

    @classmethod
    def of(cls, text: str) -> Paragraphs:
        codes = np.frombuffer(text.encode("utf-32-le", errors="surrogatepass"), np.int32)
        for code in np.unique(codes[_kinds[codes] == _UNKNOWN]).tolist():
            _kinds[code], _lower[code] = kind_of(chr(code)), ord(chr(code).lower()[0])
        kinds = _kinds[codes]
        m, n_paragraphs = count_visible(codes, kinds)
        places, before_space = np.empty(m, np.int64), np.empty(m, np.bool_)
        characters = Characters.empty(m, n_paragraphs)
        lengths = np.empty(n_paragraphs, np.int64)
        lay_out(codes, kinds, _lower, characters, places, before_space, lengths)
        return cls(places, before_space, lengths, characters)

    def __len__(self) -> int:
        """Return the number of visible characters."""
        return len(self.places)

    def keys(self) -> Array:
        """Return the keys of the attributes of each visible character [m * N_ATTRIBUTES]."""
        keys = np.empty((len(self), N_ATTRIBUTES), np.uint64)
        attribute_keys(self.characters, self.lengths, keys)
        return keys.reshape(-1)


LABELS = ("inside", "token", "sentence")  # what ends with a character
INSIDE, TOKEN, SENTENCE = range(3)
DEFAULTS = TokeniserConfig().learning()


class CharacterTokeniser(TokeniserModel):
    """Tokens and sentences of raw text, learned from documents whose tokens are known.

    Args:
        crf: A feature CRF over visible characters.
        multiword: Words that one token stands for.
        config: Settings of learning.
        spaces_inside: Whether a token may have white space inside.
    """

    KIND = "CharacterTokeniser"

    def __init__(
        self, crf: FeatureCRF, multiword: MultiwordTable, config: LearningConfig, *, spaces_inside: bool = False
    ) -> None:
        self.crf, self.multiword, self.config = crf, multiword, config
        self.spaces_inside = spaces_inside  # whether a token may have white space in it
        self.metrics = {}

    @classmethod
    def fit(
        cls,
        documents: Sequence[Document],
        config: LearningConfig = DEFAULTS,
        *,
        on_progress: Callable[[Progress], bool] | None = None,
    ) -> Self:
        """Learn from documents; `on_progress` sees every iteration and stops training when it returns True.

        Args:
            documents: Texts whose tokens are known.
            config: Settings of learning.
            on_progress: Called after every iteration; training stops when it returns True. None to look at none.

        Returns:
            The tokeniser.
        """
        gold = np.concatenate([np.empty(0, np.int64), *map(_gold, documents)])
        if not len(gold):
            raise TrellisworkError("expected text with known tokens to learn from, got none; check the data")
        laid = [Paragraphs.of(document.text) for document in documents]
        rows, index = _attributes(laid, config.cutoff)
        parameters = parameters_of(Corpus(rows, gold), len(index), len(LABELS), replace(config, cutoff=0))
        crf = FeatureCRF(LABELS, index, parameters, np.zeros(len(parameters)))
        for progress in learn(rows, gold, parameters, config):
            crf = replace(crf, weights=progress.weights)
            if on_progress is not None and on_progress(progress):
                break
        before_space = np.concatenate([each.before_space for each in laid])
        tokens = (token for document in documents for sentence in document.sentences for token in sentence)
        spaces_inside = bool((gold[before_space] == INSIDE).any())
        return cls(crf.compact()[0], MultiwordTable.of(tokens), config, spaces_inside=spaces_inside)

    # Answers

    def tokenise(self, text: str) -> list[list[Token]]:
        """Return the sentences of a text; a blank line always ends one."""
        laid = Paragraphs.of(text)
        labels = np.empty(len(laid), np.int64)
        starts = np.concatenate([[0], np.cumsum(laid.lengths)])
        parameters = self.crf.parameters
        ends = parameters.bounds.start, parameters.bounds.end
        best_labels(starts, self.scores(laid), parameters.transitions(self.crf.weights), *ends, labels)
        return list(self._sentences(text, laid.places, labels))

    def scores(self, laid: Paragraphs) -> Array:
        """Return scores [visible characters, labels]; -inf where a label is impossible."""
        index, parameters = self.crf.index, self.crf.parameters
        assert isinstance(index, KeyIndex), "made by fit"
        weights = Weights(index.table, index.numbers, parameters.offsets, parameters.labels, self.crf.weights)
        scores = np.empty((len(laid), len(LABELS)))
        score_characters(laid.characters, laid.lengths, weights, scores)
        if not self.spaces_inside:
            scores[laid.before_space, INSIDE] = -np.inf
        scores[np.cumsum(laid.lengths) - 1, :SENTENCE] = -np.inf
        return scores

    def _sentences(self, text: str, places: Array, labels: Array) -> Iterator[list[Token]]:
        ends = np.flatnonzero(labels != INSIDE)
        firsts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
        bounds = zip(places[firsts].tolist(), (places[ends] + 1).tolist(), labels[ends].tolist(), strict=True)
        sentence: list[Token] = []
        words: dict[str, tuple[str, ...]] = {}
        for start, end, label in bounds:
            form = text[start:end]
            if form not in words:
                words[form] = self.multiword.words(form)
            sentence.append(Token(form, start, end, words[form]))
            if label == SENTENCE:
                yield sentence
                sentence = []

    # What it is

    @property
    def n_parameters(self) -> int:
        return len(self.crf.weights)

    def describe(self, top: int = 20) -> Description:
        sizes = {
            "attributes": len(self.crf.index),
            "multi-word tokens": len(self.multiword.whole),
            "white space in tokens": "yes" if self.spaces_inside else "no",
        }
        labels = {"labels": list(LABELS)}
        return Description("a tokeniser of characters", labels, labels, asdict(self.config), [("characters", sizes)])

    # Disk

    def save(self, directory: str | Path, *, extra: Mapping[str, str] | None = None) -> None:
        """Write the model folder."""
        config = {
            "settings": asdict(self.config),
            "n_attributes": len(self.crf.index),
            "n_keys": N_ATTRIBUTES,
            "spaces_inside": self.spaces_inside,
            "multiword": self.multiword.to_json(),
        }
        write_model(
            directory,
            StoredModel(self.KIND, config, crf_arrays(self.crf), self.metrics, model_card(self), dict(extra or {})),
        )

    @classmethod
    def load(cls, directory: str | Path, *, features: object = None) -> Self:
        """Read a model folder; what is missing or does not fit is a `ModelError`."""
        stored = read_model(directory, cls.KIND)
        try:
            config = LearningConfig(**stored.config["settings"])
            if stored.config["n_keys"] != N_ATTRIBUTES:
                raise ValueError(f"{N_ATTRIBUTES} attributes expected, {stored.config['n_keys']} found")
            crf = crf_of_arrays(dict(stored.weights), LABELS, stored.config["n_attributes"], config)
            multiword = MultiwordTable.from_json(stored.config["multiword"])
            tokeniser = cls(crf, multiword, config, spaces_inside=bool(stored.config["spaces_inside"]))
        except (KeyError, TypeError, ValueError, AttributeError, TrellisworkError) as error:
            raise ModelError(f"{directory}: config.json and weights do not fit ({error}); copy it again") from error
        tokeniser.metrics = dict(stored.metrics)
        return tokeniser


def _attributes(laid: Sequence[Paragraphs], cutoff: int) -> tuple[AttributeRows, KeyIndex]:
    """Return the attributes that at least `cutoff` characters have."""
    index = KeyIndex()
    ids = [index.add(each.keys()) for each in laid]
    often = sum((np.bincount(each, minlength=len(index)) for each in ids), np.zeros(len(index), np.int64)) >= cutoff
    numbers = np.where(often, np.cumsum(often) - 1, -1).astype(np.int32)
    kept = [numbers[each] for each in ids]
    counts = np.concatenate([(each.reshape(-1, N_ATTRIBUTES) >= 0).sum(1) for each in kept])
    entries = np.concatenate([each[each >= 0] for each in kept])
    lengths = np.concatenate([each.lengths for each in laid])
    return AttributeRows(lengths, np.concatenate([[0], np.cumsum(counts)]), entries), KeyIndex.of(index.keys()[often])


def _gold(document: Document) -> Array:
    """Return the label of each visible character."""
    labels = np.full(len(document.text), INSIDE, np.int64)
    for sentence in document.sentences:
        for token in sentence:
            labels[token.end - 1] = TOKEN
        labels[sentence[-1].end - 1] = SENTENCE
    return labels[[not character.isspace() for character in document.text]]
