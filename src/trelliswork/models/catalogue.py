"""The catalogue of models: one entry for each name, read by loading, --help, `train`, `tune` and the pages of settings.

    >>> entry_of("biaffine").kind, entry_of("biaffine").learns_from
    ('BiaffineParser', 'heads')

An entry names its class, its recipe and its settings as "package.module:Name". They are imported when a model is made
or its settings are shown, so that features need no torch and a model loads without the settings of all others.
Packages add entries under the entry point `trelliswork.models`. docs/results/ has the figures of the values here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from trelliswork.errors import TrellisworkError
from trelliswork.lazy import named
from trelliswork.logs import tell
from trelliswork.plugins import plugins_of

if TYPE_CHECKING:
    from trelliswork.data.settings import About, Settings
    from trelliswork.models.recipe import Recipe

VECTORS = "trelliswork.models.networks.config:VectorFile"
ENCODINGS = "trelliswork.models.networks.config:KeptEncodings"
PAIRS = "trelliswork.models.transducers.config:PairFiles"
TRAINING = ("trelliswork.training.config:TrainingConfig", "trelliswork.models.networks.config:Machine")
NETWORK_RECIPE = "trelliswork.models.networks.recipe:NetworkRecipe"


Values = Mapping[str, Any]  # of settings or options by name; the dataclasses of settings check them


@dataclass(frozen=True)
class Entry:
    """A model that is trained by name.

    Attributes:
        name: what `--model` calls it.
        phrase: what `--help` says of it.
        title: the group that it is listed in, by `--help` and by the pages of settings; one of those that there are,
            as a rule, since the tests choose the options of a training by it.
        home: its class.
        settings: its dataclass of settings, the section `[model]` of a TOML file.
        learns_from: what its files hold: tags, heads, brackets, events, pairs, text, plain text or recordings.
        recipe: how it is made from options and files.
        data: dataclasses of further settings in the section `[data]`.
        sources: dataclasses of further settings in the section `[model]`, before its own.
        training: dataclasses of the section `[training]`; none for a model that is not a network.
        values: settings that differ from their defaults.
        learning: settings of the training that differ from their defaults.
        without: options of its dataclasses that it does not have.
    """

    name: str
    phrase: str
    title: str
    home: str
    settings: str
    learns_from: str = "tags"
    recipe: str = NETWORK_RECIPE
    data: tuple[str, ...] = (VECTORS, ENCODINGS)
    sources: tuple[str, ...] = ()
    training: tuple[str, ...] = TRAINING
    values: Values = field(default_factory=dict)
    learning: Values = field(default_factory=dict)
    without: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The name of its class, which folders of models have."""
        return self.home.rpartition(":")[2]

    @property
    def is_network(self) -> bool:
        """True if it is trained in epochs."""
        return bool(self.training)

    @cached_property
    def sections(self) -> dict[str, tuple[type[Settings], ...]]:
        """The dataclasses of settings of each section of a TOML file."""
        homes = {"data": self.data, "model": (*self.sources, self.settings), "training": self.training}
        return {section: tuple(map(named, each)) for section, each in homes.items()}

    @property
    def configs(self) -> tuple[type[Settings], ...]:
        """All dataclasses of settings, in the order in which `--help` lists them."""
        return (*self.sections["training"], *self.sections["data"], *self.sections["model"])

    @cached_property
    def options(self) -> dict[str, About]:
        """The settings that are options, by their names."""
        settings_in = named("trelliswork.data.settings:settings_in")
        all_settings = [about for config in self.configs for _, about in settings_in(config) if about.option]
        return {about.option: about for about in all_settings if about.option not in self.without}

    def uses(self, option: str, options: Values) -> bool:
        """Return whether the model reads an option, given others that may have chosen other parts of a network."""
        if option not in self.options:
            return False
        values = {**self.values, "kind": self.kind}
        if self.is_network:
            values = {**vars(self.sections["model"][-1]()), **values}
            if self.name == options.get("model"):
                values |= {each: options[each] for each in values if options.get(each) is not None}
        allowed = self.options[option].goes_with
        return all(values[each] in allowed[each] for each in allowed if each in values)


_RECURRENT = dict(word_dim=100, characters="cnn", hidden=200, dropout=0.5, hidden_dropout=0.4)
_DEEP = dict(encoder="deep", layers=2, hidden=300, transitions="network", pretrain_epochs=3, hidden_dropout=0.2)
_LONGER = dict(epochs=20, patience=10)  # rates fall until the last epoch, and the last ones are often the best


def _tagger(
    name: str,
    phrase: str,
    values: Values,
    kind: str = "tagger:Tagger",
    learning: Values = _LONGER,
) -> Entry:
    folder = "trelliswork.models.taggers.networks"
    return Entry(
        name, phrase, "Neural taggers", f"{folder}.{kind}", f"{folder}.config:TaggerConfig",
        recipe=f"{folder}.recipe:TaggerRecipe", data=(VECTORS, ENCODINGS, f"{folder}.config:TrainedNetwork"),
        values=values, learning=learning,
    )  # fmt: skip


_SEGMENTER, _SEVERAL = "segmenter:Segmenter", "multi_tagger:MultiTagger"
_TAGGERS = (
    _tagger("window", "feed-forward network over a window of words with a CRF on top", {"dropout": 0.4}),
    _tagger("bilstm-crf", "BiLSTM encoder with character CNN and a CRF on top", {"encoder": "lstm", **_RECURRENT}),
    _tagger("bigru-crf", "BiGRU encoder with character CNN and a CRF on top", {"encoder": "gru", **_RECURRENT}),
    _tagger("bilstm-memm", "BiLSTM encoder with locally normalised transitions (MEMM)",
            {"encoder": "lstm", "normalization": "local", **_RECURRENT}),
    _tagger("grsemicrf", "gated recursive semi-Markov CRF over word embeddings",
            {"encoder": "none", "segments": "pyramid", "word_dim": 100, "dropout": 0.4}, _SEGMENTER),
    _tagger("bilstm-grsemicrf", "gated recursive semi-Markov CRF over a BiLSTM encoder",
            {"encoder": "lstm", "segments": "pyramid", **_RECURRENT, "dropout": 0.4}, _SEGMENTER),
    _tagger("bilstm-semicrf", "semi-Markov CRF over BiLSTM states at segment boundaries",
            {"encoder": "lstm", "segments": "endpoints", **_RECURRENT}, _SEGMENTER),
    _tagger("sentence", "convolution over the whole sentence with max pooling and a CRF on top",
            {"encoder": "sentence", "dropout": 0.4}),
    _tagger("dilated-crf", "iterated dilated convolutions with a CRF on top",
            {**_RECURRENT, "encoder": "dilated", "layers": 3, "hidden_dropout": 0.3}),
    _tagger("transformer-crf", "transformer encoder with a CRF on top",
            {**_RECURRENT, "encoder": "transformer", "hidden": 256, "layers": 2, "dropout": 0.3, "hidden_dropout": 0.2},
            learning={**_LONGER, "lr": 1e-3, "warmup": 0.1}),
    _tagger("neural-crf", "neural CRF with deep emission and transition scores, pre-trained", _DEEP),
    _tagger("neural-hucrf", "neural CRF with hidden units, pre-trained", {**_DEEP, "scorer": "hidden-units"}),
    _tagger("multi-task", "several tasks on one BiLSTM encoder, each with a CRF on top",
            {"encoder": "lstm", **_RECURRENT}, _SEVERAL),
)  # fmt: skip

_PARSER = dict(
    encoder="lstm", word_dim=100, characters="cnn", character_hidden=64, hidden=300, layers=2, dropout=0.33,
    hidden_dropout=0.33, unknown_dropout=0.2, prefix_lengths=(), suffix_lengths=(3,), affix_dim=32,
)  # fmt: skip
_SPANS = {
    **_PARSER, "characters": "lstm", "character_dim": 32, "character_hidden": 100, "min_count": 2, "hidden": 250,
    "hidden_dropout": 0.4, "span_dropout": 0.4, "tag_weight": 0.5, "decoding": "expected",
}  # fmt: skip
_DEPENDENCY, _CONSTITUENCY = "Dependency parsers", "Constituency parsers"
_PARSERS = (
    Entry(
        "biaffine", "graph-based dependency parser with biaffine scorers and exact tree likelihood", _DEPENDENCY,
        "trelliswork.models.parsers.dependency.biaffine:BiaffineParser",
        "trelliswork.models.parsers.dependency.config:ParserConfig", "heads",
        values=_PARSER, learning=dict(epochs=25, patience=10),
    ),
    Entry(
        "transition", "transition-based dependency parser, the fastest one", _DEPENDENCY,
        "trelliswork.models.parsers.dependency.transition:TransitionParser",
        "trelliswork.models.parsers.dependency.config:TransitionConfig", "heads",
        values={**_PARSER, "hidden": 150, "state_dim": 128}, learning=dict(epochs=20, patience=10),
    ),
    Entry(
        "span-cky", "span-based constituency parser with exact CKY", _CONSTITUENCY,
        "trelliswork.models.parsers.constituency.span_cky:SpanParser",
        "trelliswork.models.parsers.constituency.config:SpanConfig", "brackets", values=_SPANS,
        learning=dict(epochs=30, patience=10, batch_tokens=350, average="ema", ema_decay=0.998),
    ),
    Entry(
        "pcfg", "treebank grammar, trained by counting in seconds", _CONSTITUENCY,
        "trelliswork.models.parsers.constituency.pcfg:TreebankGrammar",
        "trelliswork.models.parsers.constituency.config:GrammarConfig", "brackets",
        recipe="trelliswork.models.recipe:CountingRecipe", data=(), training=(),
    ),
)  # fmt: skip

_EVENT_NETWORK = dict(encoder="lstm", hidden=60, word_dim=40, dropout=0.3, hidden_dropout=0.2)
_EVENT_LEARNING = dict(epochs=12, lr=3e-3, batch_tokens=300)
_EVENTS = (
    Entry(
        "joint-events", "entities, triggers and arguments, decoded left to right with memories", "Events and frames",
        "trelliswork.models.events.memory_events:MemoryEvents", "trelliswork.models.events.config:EventConfig",
        "events", values=_EVENT_NETWORK, learning=_EVENT_LEARNING,
    ),
    Entry(
        "event-factors", "entities, triggers and arguments, decoded jointly in a factor graph (AD3)",
        "Events and frames", "trelliswork.models.events.factor_events:FactorEvents",
        "trelliswork.models.events.config:EventConfig", "events", values=_EVENT_NETWORK, learning=_EVENT_LEARNING,
    ),
    Entry(
        "sling", "transition-based semantic frame parser (SLING)", "Events and frames",
        "trelliswork.models.events.frame_parser:FrameParser", "trelliswork.models.events.config:FrameConfig",
        "events", values=_EVENT_NETWORK, learning=_EVENT_LEARNING | dict(batch_tokens=600),
    ),
)  # fmt: skip

_ATTENTION = "trelliswork.models.transducers.attention"
_SEMANTIC = "trelliswork.models.transducers.semantic"
_STRINGS = {"epochs": 60, "patience": 10, "batch_tokens": 2000, "clip": 1.0}
# Few pairs, many of one length and one form: sorted by length, all pairs of a batch would be alike.
_QUESTIONS = {"epochs": 40, "patience": 20, "batch_tokens": 400, "bucket": 100, "lr": 3e-3}
_TRANSDUCERS = (
    Entry(
        "edit", "neural edit transducer, likelihood summed over all alignments", "Transducers",
        "trelliswork.models.transducers.edit:EditTransducer",
        "trelliswork.models.transducers.config:EditConfig", "pairs", data=(PAIRS,),
        learning=dict(epochs=30, patience=10, batch_tokens=1000, lr=3e-3, average="ema", ema_decay=0.995),
    ),
    Entry(
        "seq2seq", "recurrent encoder-decoder with attention", "Transducers",
        f"{_ATTENTION}.network:AttentionNetwork", "trelliswork.models.transducers.config:AttentionConfig",
        "pairs", data=(PAIRS, ENCODINGS),
        learning={**_STRINGS, "lr": 2e-3},
    ),
    Entry(
        "transformer", "transformer encoder-decoder", "Transducers",
        f"{_ATTENTION}.network:AttentionNetwork", "trelliswork.models.transducers.config:AttentionConfig",
        "pairs", data=(PAIRS, ENCODINGS),
        values={"encoder": "transformer", "decoder": "transformer", "layers": 3},
        learning={**_STRINGS, "lr": 7e-4, "warmup": 0.1},
    ),
    Entry(
        "pair-ngram", "joint n-gram model, exact and trained in seconds", "Transducers",
        "trelliswork.models.transducers.pair_ngram.model:PairNgram",
        "trelliswork.models.transducers.config:PairNgramConfig", "pairs",
        recipe="trelliswork.models.transducers.pair_ngram.recipe:PairNgramRecipe", data=(PAIRS,), training=(),
    ),
    Entry(
        "seq2tree", "logical forms from a hierarchical tree decoder (Seq2Tree)", "Semantic parsers",
        f"{_SEMANTIC}.seq2tree:Seq2Tree", f"{_SEMANTIC}.config:TreeConfig", "pairs", data=(PAIRS, VECTORS),
        learning=_QUESTIONS,
    ),
    Entry(
        "seq2sql", "SQL that always parses, decoded with the help of the database", "Semantic parsers",
        f"{_SEMANTIC}.seq2sql:Seq2SQL", f"{_SEMANTIC}.config:SqlConfig", "pairs", data=(PAIRS, VECTORS),
        learning=_QUESTIONS,
    ),
)  # fmt: skip


def _over_features(name: str, phrase: str) -> Entry:
    folder = "trelliswork.models.taggers.features"
    hidden = name == "hucrf"
    return Entry(
        name, phrase, "Feature-based taggers", f"{folder}.tagger:FeatureTagger",
        f"{folder}.learners.config:LearningConfig", recipe=f"{folder}.recipe:FeatureRecipe",
        data=(f"{folder}.learners.config:UntaggedFile",), sources=(f"{folder}.learners.config:AttributeSources",),
        training=(), values={"model": "crf" if hidden else name},
        without=() if hidden else ("hidden_units", "pretrain"),
    )  # fmt: skip


_FEATURES = (
    _over_features("crf", "linear-chain CRF over sparse features"),
    _over_features("hucrf", "hidden-unit CRF"),
    _over_features("memm", "maximum-entropy Markov model"),
    _over_features("logistic", "logistic regression, each tag independently"),
    _over_features("hmm", "hidden Markov model, trained by counting in seconds, less accurate"),
    _over_features("naive-bayes", "naive Bayes, trained by counting"),
)
_TOKENISER = Entry(
    "tokeniser", "tokeniser and sentence splitter, trained on CoNLL-U or any tokens (--raw)", "Tokenisers",
    "trelliswork.models.tokenisers.tokeniser:CharacterTokeniser",
    "trelliswork.models.tokenisers.config:TokeniserConfig", "text",
    recipe="trelliswork.models.tokenisers.recipe:TokeniserRecipe",
    data=("trelliswork.models.tokenisers.config:RawFiles",), training=(),
)  # fmt: skip
_TEXT = "trelliswork.models.language.config:TextFiles"
_NGRAM = Entry(
    "ngram", "n-gram language model of plain text, counted in seconds", "Language models",
    "trelliswork.models.language.ngram:NgramLanguageModel", "trelliswork.models.language.config:NgramConfig",
    "plain text", recipe="trelliswork.models.language.recipe:NgramRecipe",
    data=(_TEXT,), sources=("trelliswork.models.language.config:TextConfig",), training=(),
)  # fmt: skip


def _text_network(name: str, phrase: str, home: str, config: str, **learning: Any) -> Entry:
    folder = "trelliswork.models.language"
    return Entry(
        name, phrase, _NGRAM.title, f"{folder}.{home}", f"{folder}.config:{config}", "plain text",
        recipe=f"{folder}.network:LanguageNetworkRecipe", data=(_TEXT,),
        learning={"epochs": 15, "batch_tokens": 700, "clip": 1.0, **learning},
    )  # fmt: skip


_LANGUAGE = (
    _NGRAM,
    _text_network("rnn-lm", "recurrent language model of plain text: LSTM, GRU or Elman network",
                  "recurrent:RecurrentLanguageModel", "RecurrentConfig"),
    _text_network("nnlm", "feed-forward language model of plain text, over a window of words",
                  "limited:WindowLanguageModel", "WindowConfig"),
    _text_network("transformer-lm", "causal transformer over plain text, with a memory (Transformer-XL)",
                  "limited:TransformerLanguageModel", "TransformerConfig", lr=5e-4, warmup=0.05),
    Entry(
        "lm-mixture", "mixture of language models and a cache, weights fitted to a text", _NGRAM.title,
        "trelliswork.models.language.mixture:Mixture", "trelliswork.models.language.config:MixtureConfig",
        "plain text", recipe="trelliswork.models.language.mixture:MixtureRecipe", data=(_TEXT,), training=(),
    ),
)  # fmt: skip
_RECOGNIZERS = (
    Entry(
        "ctc", "convolutions and BiLSTMs under CTC: strings from vectors, images and sound", "Recognizers",
        "trelliswork.models.recognizers.ctc:CTCRecognizer", "trelliswork.models.recognizers.config:RecognizerConfig",
        "recordings", data=("trelliswork.models.recognizers.config:RecordingFiles",),
        learning=dict(epochs=40, patience=10, batch_tokens=4000, lr=2e-3, warmup=0.05, clip=1.0),
    ),
)  # fmt: skip

_VECTORS = Entry(
    "vectors", "word vectors of plain text, with character n-grams for unseen words", "Word vectors",
    "trelliswork.models.language.vectors:WordVectorModel", "trelliswork.models.language.config:VectorConfig",
    "plain text", recipe="trelliswork.models.language.vector_recipe:VectorRecipe",
    data=("trelliswork.models.language.config:TextFiles",),
    sources=("trelliswork.models.language.config:TextConfig",), training=(), values={"least_count": 5},
    without=("units", "merges"),
)  # fmt: skip

_GROUPS = (_TAGGERS, _PARSERS, _EVENTS, _TRANSDUCERS, _FEATURES, (_TOKENISER,), _LANGUAGE, (_VECTORS,), _RECOGNIZERS)
ENTRIES = {each.name: each for group in _GROUPS for each in group}  # of this library, and what a program adds
CLASSES = {  # kinds of folders that no name makes
    "AttributeTagger": "trelliswork.models.taggers.features.attribute_tagger:AttributeTagger",
    "Ensemble": "trelliswork.models.taggers.ensemble:Ensemble",
    "LearnedRules": "trelliswork.models.tokenisers.learned_rules:LearnedRules",
    "TransducerEnsemble": "trelliswork.models.transducers.ensemble:TransducerEnsemble",
    "VectorTagger": "trelliswork.models.taggers.networks.vector_tagger:VectorTagger",
}
NETWORK = "bilstm-crf"  # the most accurate tagger with vectors, see docs/results/accuracy.md
TOKENISER = "tokeniser"
SHARED = ("seed",)  # settings of training that every model has


def entries() -> dict[str, Entry]:
    """Return every entry by name: those of this library first, then those of other packages."""
    return ENTRIES | {name: entry for name, entry in _of_packages().items() if name not in ENTRIES}


@cache
def _of_packages() -> dict[str, Entry]:
    """Import the entries of installed packages; one that cannot be imported is reported and left out."""
    of_packages = {}
    for name, plugin in plugins_of("models").items():
        try:
            of_packages[name] = replace(plugin.load(), name=name)
        except TrellisworkError as error:
            tell(str(error), level=logging.WARNING)
    return of_packages


def own_homes() -> dict[str, str]:
    """Return the class of each kind of model of this library, as the folders of models name it."""
    return {each.kind: each.home for each in ENTRIES.values()} | CLASSES


def home_of(kind: str) -> str:
    """Return the class of a kind, or nothing; for a kind that is not of this library, packages are imported."""
    own = own_homes().get(kind)
    return own or next((each.home for each in _of_packages().values() if each.kind == kind), "")


def entry_of(name: str) -> Entry:
    """Return the entry of a model; an unknown name is a `KeyError`."""
    return ENTRIES[name] if name in ENTRIES else entries()[name]


def by_title(all_entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    """Return entries by the titles of their groups, in order."""
    titles: dict[str, list[Entry]] = {}
    for each in all_entries:
        titles.setdefault(each.title, []).append(each)
    return titles


def nearest_model(name: str, others: Sequence[str]) -> str:
    """Return the one of other models that is most like a model: for the same data, else the first of them.

    >>> nearest_model("crf", ["window", "bilstm-crf", "biaffine"]), nearest_model("biaffine", ["window", "transition"])
    ('bilstm-crf', 'transition')
    """
    title = entry_of(name).title
    alike = [each for each in others if entry_of(each).title == title]
    return next(iter(alike), NETWORK if NETWORK in others and title.endswith("taggers") else others[0])


def models_with(option: str, options: Values) -> list[str]:
    """Return the names of the models that use an option, given the other options."""
    return [name for name, entry in entries().items() if entry.uses(option, options)]


def recipe_of(options: Values) -> Recipe:
    """Return what makes the model that the options name."""
    recipe: Recipe = named(entry_of(options["model"]).recipe)(options)
    return recipe
