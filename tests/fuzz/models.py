"""A small model of every kind, saved without training where that can be, and one question to each."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tests.models.semantic import test_seq2sql as sql
from tests.models.semantic import test_seq2tree as trees
from tests.models.test_attention_network import LETTERS
from tests.models.test_events import DATA as EVENTS
from tests.models.test_recognizers import model_of
from tests.models.test_span_parser import TRAIN as BRACKETS
from tests.models.test_tokeniser import documents
from tests.models.test_transition_parser import TRAIN as ARCS
from trelliswork.data import Sentence, VectorSequence
from trelliswork.models import (
    AttributeTagger,
    Ensemble,
    FeatureTagger,
    LearningConfig,
    MultiTagger,
    Segmenter,
    Tagger,
    TaggerConfig,
    VectorTagger,
    VectorTaggerConfig,
)
from trelliswork.models.events.config import EventConfig, FrameConfig
from trelliswork.models.events.factor_events import FactorEvents
from trelliswork.models.events.frame_parser import FrameParser
from trelliswork.models.events.memory_events import MemoryEvents
from trelliswork.models.language.config import (
    MixtureConfig,
    NgramConfig,
    RecurrentConfig,
    TransformerConfig,
    VectorConfig,
    WindowConfig,
)
from trelliswork.models.language.limited import TransformerLanguageModel, WindowLanguageModel
from trelliswork.models.language.mixture import Mixture
from trelliswork.models.language.ngram import NgramLanguageModel
from trelliswork.models.language.recurrent import RecurrentLanguageModel
from trelliswork.models.language.vectors import WordVectorModel
from trelliswork.models.parsers.constituency.config import GrammarConfig, SpanConfig
from trelliswork.models.parsers.constituency.pcfg import TreebankGrammar
from trelliswork.models.parsers.constituency.span_cky import SpanParser
from trelliswork.models.parsers.dependency.biaffine import BiaffineParser
from trelliswork.models.parsers.dependency.config import ParserConfig, TransitionConfig
from trelliswork.models.parsers.dependency.transition import TransitionParser
from trelliswork.models.tokenisers import CharacterTokeniser, LearnedRules
from trelliswork.models.transducers.attention.network import AttentionNetwork
from trelliswork.models.transducers.config import AttentionConfig, EditConfig, PairNgramConfig
from trelliswork.models.transducers.edit import EditTransducer
from trelliswork.models.transducers.ensemble import TransducerEnsemble
from trelliswork.models.transducers.pair_ngram.model import PairNgram
from trelliswork.models.transducers.semantic.config import SqlConfig, TreeConfig
from trelliswork.models.transducers.semantic.seq2sql import Seq2SQL
from trelliswork.models.transducers.semantic.seq2tree import Seq2Tree

TAGGED = [
    Sentence(("Ann", "sings"), ("B-PER", "O"), (("N", "V"),), extra={"attributes": [["w=Ann"], ["w=sings"]]}),
    Sentence(("Bob", "Lee"), ("B-PER", "I-PER"), (("N", "N"),), extra={"attributes": [["w=Bob"], ["w=Lee"]]}),
]
PAIRS = [Sentence(tuple(x), target=tuple(y)) for x, y in (("ab", "AB"), ("ba", "BA"), ("bb", "B"), ("a", "AA"))]
WORDS: dict[str, Any] = dict(word_dim=3, affix_dim=2, hidden=4, prefix_lengths=(), suffix_lengths=(2,))
SMALL = TaggerConfig(**WORDS, column_dim=2, window=3, affix_min_count=1, segment_dim=3, max_length=2)
LSTM: dict[str, Any] = dict(**WORDS, encoder="lstm")
BARE: dict[str, Any] = dict(encoder="lstm", hidden=3, word_dim=3, prefix_lengths=(), suffix_lengths=())
EVENT: dict[str, Any] = dict(event_hidden=3, entity_dim=2, context=1)
FEW = LearningConfig(max_iterations=3)
TEXT = ["Ann sings", "Bob sings"]


def _edit(seed: int = 0) -> EditTransducer:
    return EditTransducer.from_data(PAIRS, EditConfig(symbol_dim=4, hidden=4, cell_dim=4), format=LETTERS, seed=seed)


def _queries(folder: Path) -> Seq2SQL:
    path = folder / "places.sqlite"
    with sqlite3.connect(path) as made:
        for table, columns in sql.SCHEMA.items():
            made.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
    return Seq2SQL.from_data(sql.PAIRS, SqlConfig(database=str(path), beam=2, **sql.SMALL))


MAKERS: dict[str, Callable[[Path], Any]] = {
    "Tagger": lambda _: Tagger.from_data(TAGGED, SMALL),
    "Tagger, LSTM": lambda _: Tagger.from_data(TAGGED, TaggerConfig(**{**SMALL.to_dict(), "encoder": "lstm"})),
    "Segmenter": lambda _: Segmenter.from_data(TAGGED, SMALL),
    "MultiTagger": lambda _: MultiTagger.from_data(TAGGED, ("pos", "ner"), SMALL),
    "VectorTagger": lambda _: VectorTagger.from_data(
        [VectorSequence(torch.ones(3, 2), ("a", "b", "a"))], VectorTaggerConfig(hidden=3)
    ),
    "FeatureTagger": lambda _: FeatureTagger.fit(TAGGED, FEW),
    "FeatureTagger, hidden units": lambda _: FeatureTagger.fit(
        TAGGED, LearningConfig(hidden_units=3, max_iterations=2)
    ),
    "AttributeTagger": lambda _: AttributeTagger.fit(TAGGED, FEW),
    "Ensemble": lambda _: Ensemble([Tagger.from_data(TAGGED, SMALL, seed=seed) for seed in range(2)]),
    "BiaffineParser": lambda _: BiaffineParser.from_data(ARCS, ParserConfig(**LSTM, arc_dim=3, label_dim=2)),
    "TransitionParser": lambda _: TransitionParser.from_data(ARCS, TransitionConfig(**LSTM, state_dim=4)),
    "SpanParser": lambda _: SpanParser.from_data(BRACKETS, SpanConfig(**LSTM, span_dim=4)),
    "TreebankGrammar": lambda _: TreebankGrammar.fit(BRACKETS, GrammarConfig(least_context=1)),
    "AttentionNetwork": lambda _: AttentionNetwork.from_data(PAIRS, AttentionConfig(dim=4, hidden=4), format=LETTERS),
    "EditTransducer": lambda _: _edit(),
    "NgramLanguageModel": lambda _: NgramLanguageModel.fit(TEXT, NgramConfig(order=2)),
    "RecurrentLanguageModel": lambda _: RecurrentLanguageModel.from_text(TEXT, RecurrentConfig(word_dim=3, hidden=4)),
    "WindowLanguageModel": lambda _: WindowLanguageModel.from_text(TEXT, WindowConfig(word_dim=3, hidden=4)),
    "TransformerLanguageModel": lambda _: TransformerLanguageModel.from_text(
        TEXT, TransformerConfig(word_dim=4, layers=1, heads=2)
    ),
    "Mixture": lambda _: Mixture.fit(
        [each.split() for each in TEXT],
        [NgramLanguageModel.fit(TEXT, NgramConfig(order=order)) for order in (1, 2)],
        MixtureConfig(),
    ),
    "CTCRecognizer": lambda _: model_of(),
    "WordVectorModel": lambda _: WordVectorModel.fit(["Ann sings"], VectorConfig(dim=3, buckets=9), least_count=1),
    "PairNgram": lambda _: PairNgram.fit(PAIRS, PairNgramConfig(order=2)),
    "TransducerEnsemble": lambda _: TransducerEnsemble([_edit(seed) for seed in range(2)]),
    "Seq2Tree": lambda _: Seq2Tree.from_data(trees.PAIRS, TreeConfig(**trees.SMALL)),
    "Seq2SQL": _queries,
    "CharacterTokeniser": lambda _: CharacterTokeniser.fit(documents(), FEW),
    "LearnedRules": lambda _: LearnedRules.fit([("Mr.", "Lee-Ann", "ca", "n't", "go", "."), ("Why", "?")] * 4),
    "MemoryEvents": lambda _: MemoryEvents.from_data(EVENTS, EventConfig(**BARE, **EVENT)),
    "FactorEvents": lambda _: FactorEvents.from_data(EVENTS, EventConfig(**BARE, **EVENT)),
    "FrameParser": lambda _: FrameParser.from_data(EVENTS, FrameConfig(**BARE, state_dim=4, attention=2)),
}

LETTERS_ASKED = [Sentence(("a", "b"))]
TWO_COLUMNS = [Sentence(("Ann", "left"), features=(("N", "V"),))]
QUESTIONS: dict[str, Any] = {
    "VectorTagger": [VectorSequence(torch.ones(2, 2))],
    "CTCRecognizer": [torch.ones(4, 3)],
    "AttributeTagger": [Sentence(("Ann", "left"), extra={"attributes": [["w=Ann"], ["w=left"]]})],
    "AttentionNetwork": LETTERS_ASKED,
    "EditTransducer": LETTERS_ASKED,
    "PairNgram": LETTERS_ASKED,
    "TransducerEnsemble": LETTERS_ASKED,
    "MemoryEvents": EVENTS[:1],
    "FactorEvents": EVENTS[:1],
    "FrameParser": EVENTS[:1],
    "Tagger": TWO_COLUMNS,
    "Tagger, LSTM": TWO_COLUMNS,
    "Segmenter": TWO_COLUMNS,
    "FeatureTagger": TWO_COLUMNS,
    "FeatureTagger, hidden units": TWO_COLUMNS,
    "Ensemble": TWO_COLUMNS,
}
ANY = [Sentence(("Ann", "sleeps"))]


def asked(kind: str, model: Any) -> list[Any]:
    """The answers of a model to its question."""
    if kind in ("CharacterTokeniser", "LearnedRules"):
        return [model.tokenise("Ann went. Why?")]
    answers: list[Any] = model.predict(QUESTIONS.get(kind, ANY), top_k=2, confidence=True)
    assert len(answers) == 1, "another number of answers than of questions"
    return answers
