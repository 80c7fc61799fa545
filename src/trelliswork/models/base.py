"""The protocol of all models, whatever they predict: `predict`, `evaluate`, `save` and `describe`.

    >>> model = tw.load("ner")                                            # doctest: +SKIP
    >>> answer = model.predict("Ann lives in Paris.", top_k=3)[0]        # doctest: +SKIP
    >>> answer.value, answer.probability                                  # doctest: +SKIP
    (['B-PER', 'O', 'O', 'B-LOC', 'O'], 0.91)

A new kind of model inherits from `Model` and has an entry in `models.catalogue`; see `docs/extending.md`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from trelliswork.data import Sentence
from trelliswork.data.choices import CONLLU_NAMES
from trelliswork.draw import Drawing, alignment, dependencies, segments, tree
from trelliswork.draw.notebook import Piece, Rich, Table, framed
from trelliswork.draw.svg import percent
from trelliswork.errors import TrellisworkError
from trelliswork.models.examined import Examined
from trelliswork.models.expected_counts import Counting, ExpectedCount, expected_counts
from trelliswork.structures.grammar.tree import Tree
from trelliswork.text import RuleTokeniser, Tokeniser, sentences_in
from trelliswork.training.exclusive import COLUMNS, LEMMAS, TOKENISER

if TYPE_CHECKING:
    from trelliswork.models.lemmatiser import Lemmatiser
    from trelliswork.models.part_choices import PartChoices
    from trelliswork.models.taggers.column_taggers import ColumnTaggers
    from trelliswork.models.votes import Explanation

Scores = dict[str, Any]  # `score` is the number that counts, `metric` its name; metrics.json has further ones
Rows = Mapping[str, Any]
Readable = str | Sentence | Sequence[str] | Sequence[Sentence | Sequence[str]]  # raw text, a sentence or several
Inputs = Any  # what a model reads, as its own `predict` says: `Readable`, attributes, vectors, strings
Known = Any  # parts of the answers that are known, as its own `predict` says


@dataclass(frozen=True)
class PartProbability:
    """A part of an answer, such as a token with its tag or a span: positions [start, end), label and probability.

    Of an arc, `head` is the number of the head, words counted from 1 and 0 being the root; `probability` is that of the
    head together with the label, and `head_probability` that of the head, whatever the label.
    """

    start: int
    end: int
    label: str
    probability: float
    head: int | None = None
    head_probability: float | None = None

    def record(self) -> dict[str, Any]:
        """Return plain values."""
        of_arc = {} if self.head is None else {"head": self.head, "head_probability": self.head_probability}
        return {"start": self.start, "end": self.end, "label": self.label, "probability": self.probability, **of_arc}


Arc = tuple[int, str]  # head, words counted from 1 and 0 being the root, and label
HEAD, DEPREL = "HEAD", "DEPREL"  # columns of CoNLL-U


def arc_columns(arcs: Sequence[Arc]) -> dict[str, list[str]]:
    """Return the arcs of a dependency tree as columns of CoNLL-U.

    >>> arc_columns([(2, "nsubj"), (0, "root")])
    {'HEAD': ['2', '0'], 'DEPREL': ['nsubj', 'root']}
    """
    return {HEAD: [str(head) for head, _ in arcs], DEPREL: [label for _, label in arcs]}


@dataclass(frozen=True)
class Alternative:
    """Another value that the model could have answered with, and its probability."""

    value: Any
    probability: float

    def record(self) -> dict[str, object]:
        """Return plain values; a tree is written in brackets."""
        return {
            "value": str(self.value) if isinstance(self.value, Tree) else self.value,
            "probability": self.probability,
        }

    def __str__(self) -> str:
        """Return the probability and the value, in one line."""
        return f"{100 * self.probability:7.3g}%  {_written(self.value)}"


@dataclass(frozen=True)
class Answer(Rich):
    """The prediction of a model for one input.

    `value` is the prediction: a list of tags, a list of (head, label), a bracketed tree, or a label; of a model of
    several tasks a dict by task. `columns` has what it says of each word by the name of the CoNLL-U column (HEAD,
    DEPREL, UPOS), if it is more than tags. `probability` is
    exact; it is None for a value that was chosen part by part, with a threshold. `certain` is False if a search was
    given up before it could rule out that another value is more probable. `parts` are the smallest parts of the
    value (tokens) and `spans` the larger ones, each with its exact probability. `alternatives` are the best values,
    the best first. `tasks` has the answer of each task, if there are several. `offsets` are the places (start, end) of
    the inputs in raw text, in code points. `search` says how the value was found, where it may not be the best: greedy,
    beam, or AD3, which may be certified. `unknown` are symbols that a transducer has never seen in a source. `lemmas`
    are those of the words, if the model knows lemmas; `seconds` are the times of parts in a recording.
    """

    value: Any
    probability: float | None
    inputs: Sequence[str] = ()
    parts: Sequence[PartProbability] = ()
    spans: Sequence[PartProbability] = ()
    alternatives: Sequence[Alternative] = ()
    tasks: Mapping[str, Answer] = field(default_factory=dict)
    offsets: Sequence[tuple[int, int]] = ()
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    search: str = "exact"
    certain: bool = True
    unknown: Sequence[str] = ()
    lemmas: Sequence[str] = ()
    seconds: Sequence[tuple[float, float]] = ()

    @property
    def has_arcs(self) -> bool:
        """True if it is a dependency tree."""
        return HEAD in self.columns

    @property
    def has_brackets(self) -> bool:
        """True if it is a constituency tree."""
        return isinstance(self.value, Tree)

    @property
    def is_string(self) -> bool:
        """True if it is what a transducer writes; its parts are the symbols, where the source has them."""
        return isinstance(self.value, str)

    @property
    def analyses(self) -> list[Answer]:
        """The alternatives as answers of their own; the best alone has parts."""
        return [
            replace(
                self, value=each.value, probability=each.probability, alternatives=(),
                parts=self.parts if each.value == self.value else (),
                spans=self.spans if each.value == self.value else (),
                columns={**self.columns, **arc_columns(each.value)} if self.has_arcs else {},
            )
            for each in self.alternatives
        ]  # fmt: skip

    @property
    def span_offsets(self) -> list[tuple[int, int]]:
        """The places of the spans in raw text; nothing if it was not raw text."""
        return [(self.offsets[each.start][0], self.offsets[each.end - 1][1]) for each in self.spans if self.offsets]

    def draw(self) -> Drawing:
        """Draw the tree, the alignment, the spans, or the parts; for notebooks, or `draw().save(file)`."""
        if self.tasks:
            raise TrellisworkError(f"expected one task to draw; choose one of {', '.join(self.tasks)} from .tasks")
        if self.has_arcs:
            heads, labels = zip(*self.value, strict=True) if self.value else ((), ())
            return dependencies(self.inputs, heads, labels, [part.probability for part in self.parts] or None)
        if self.has_brackets:
            return tree(self.value)
        if self.is_string and self.parts and self.inputs:
            shares = [
                [part.probability * (part.start <= i < part.end) for part in self.parts]
                for i in range(len(self.inputs))
            ]
            return alignment(shares, [part.label for part in self.parts], columns=list(self.inputs))
        shown = self.spans or self.parts
        spans = [(part.start, part.end, part.label) for part in shown]
        return segments(list(self.inputs), spans, [part.probability for part in shown])

    def _shown(self) -> Sequence[Piece]:
        """Return, for notebooks, the picture and the alternatives with their probabilities."""
        if self.tasks:
            return [piece for name, answer in self.tasks.items() for piece in (name, *answer._shown())]
        sure = "chosen part by part" if self.probability is None else percent(self.probability)
        alternatives = [(each.probability, each.value) for each in self.alternatives]
        rows = [(percent(probability), _written(value)) for probability, value in alternatives] or [
            (sure, _written(self.value))
        ]
        return [
            *([self.draw()] if self.inputs else []),
            Table(rows),
            *([] if self.search == "exact" else [self.search]),
        ]


def _written(value: object) -> str:
    """Return a value in one line: tags, arcs, a tree or a string."""
    if not isinstance(value, list | tuple):
        return str(value)
    return " ".join(each if isinstance(each, str) else ":".join(map(str, each)) for each in value)


@dataclass(frozen=True)
class Report(Rich):
    """The scores of a model on gold data: for people, as plain values for JSON, and input by input for each task."""

    text: str
    record: Scores
    examined: Mapping[str, Examined] = field(default_factory=dict)

    def _shown(self) -> Sequence[Piece]:
        return [f"{self.text}\n"]


@dataclass(frozen=True)
class Description:
    """A model in words and numbers: `kind` in short, labels by title, its own sections of rows, what it has learned.

    `record` holds further entries for JSON; `transitions` are (score, before, after), the strongest first.
    """

    kind: str
    labels: Rows
    record: Rows
    settings: Rows
    sections: Sequence[tuple[str, Rows]] = ()
    transitions: Sequence[tuple[float, str, str]] = ()


class Model:
    """The base of all models. `reads` says what inputs are: words, attributes or vectors."""

    reads: ClassVar[str] = "words"
    learns_from: ClassVar[str] = "tags"  # or heads, brackets, events, pairs, tokens of a text; and is judged by them
    supports_pins: ClassVar[bool] = False  # whether parts of its answers can be known beforehand
    pins_chains: ClassVar[bool] = False  # whether several labels of the same words can be pinned
    counts_parts: ClassVar[bool] = False  # whether it has `expected_counts`
    explains: ClassVar[bool] = False  # whether it has `explain`: what speaks for its answers, or what else they may be
    supports_ensembling: ClassVar[bool] = False  # whether several of them can be an `Ensemble`
    graph: ClassVar[str] = ""  # what its ONNX graph is made of, if it can be exported: chain, segments or vectors
    next_options: ClassVar[str] = "--confidence"  # of the predict command that is suggested after training
    search: ClassVar[str] = "exact"  # or "beam": among which values the best are the best
    metrics: Scores
    format: Any = None  # how a model of pairs cuts texts into symbols, a `PairFormat`
    # These are kept in the model folder.
    tokeniser: Tokeniser | None = None  # finds the words of raw text; None is `RuleTokeniser`
    column_taggers: ColumnTaggers | None = None  # predict the columns that new text lacks
    lemmatiser: Lemmatiser | None = None  # finds lemmas by words and predicted tags

    def kept_models(self) -> dict[str, object]:
        """Return the models that are kept in its folder."""
        return {TOKENISER: self.tokeniser, COLUMNS: self.column_taggers, LEMMAS: self.lemmatiser}

    def with_columns(self, sentences: Sequence[Sentence]) -> list[Sentence]:
        """Return the sentences with all columns that it reads, as far as it can predict them."""
        return list(sentences) if self.column_taggers is None else self.column_taggers.with_columns(sentences)

    def sentences_of(self, given: Readable) -> list[Sentence]:
        """Return the sentences of raw text, of one sentence, of one as a list of words, or of a list of such."""
        return self.with_columns(self._as_sentences(given))

    def _as_sentences(self, given: Readable) -> list[Sentence]:
        if isinstance(given, str):
            return sentences_in(given, self.tokeniser or RuleTokeniser())
        if isinstance(given, Sentence):
            return [given]
        rows = list(given)
        words = [row for row in rows if isinstance(row, str)]
        if words and len(words) < len(rows):
            raise TrellisworkError("expected words or sentences, got a mixture; give a list of one kind")
        if words:
            return [Sentence(tuple(words))]
        return [row if isinstance(row, Sentence) else Sentence(tuple(row)) for row in rows]

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """Number of trained values."""

    @abstractmethod
    def predict(self, inputs: Inputs, *, top_k: int = 1, pins: Known = None, confidence: bool = True) -> list[Answer]:
        """Return an answer for each input with its `top_k` best values; `pins` are parts of the answers that are known.

        Without `confidence` and with `top_k=0` the value alone is wanted, which may take less time.

        Args:
            inputs: what the model reads (see `reads`).
            top_k: how many alternatives to return, the best first; 0 for none.
            pins: for each input the parts of its answer that are known.
            confidence: whether parts and spans have their probabilities.

        Returns:
            An answer for each input, in order.
        """

    def cost(self, n: int, *, top_k: int = 0, choices: bool = False, explain: bool = False) -> float:
        """Return about how many seconds one core takes to answer an input of `n` words (or symbols).

        It is an upper estimate for ordinary settings, good to a factor of a few: the server refuses or divides what
        would take too long, and serves what is cheap first. `choices` and `explain` are asked for in addition.

        Args:
            n: words (or symbols) of the input.
            top_k: alternatives that are asked for.
            choices: whether the choices of every part are asked for.
            explain: whether an explanation is asked for.

        Returns:
            Seconds.
        """
        seconds = 1e-3 + n * (2e-4 + 2e-5 * top_k + 1e-4 * choices)
        return 20 * seconds if explain else seconds

    def evaluating(self) -> AbstractContextManager[object]:
        """Return a context in which answers are given and nothing is learned."""
        return nullcontext()

    @abstractmethod
    def evaluate(self, gold: Inputs) -> Scores:
        """Return scores on inputs whose right answers are known."""

    @abstractmethod
    def describe(self, top: int = 20) -> Description:
        """Describe the model, with the `top` strongest of its weights."""

    @abstractmethod
    def save(self, directory: str | Path, *, extra: Mapping[str, str] | None = None) -> None:
        """Write the model folder."""

    def _repr_html_(self) -> str:
        return framed(type(self).__name__, self._shown())

    def _shown(self) -> Sequence[Piece]:
        """Return, for notebooks, what `describe` says of it."""
        about = self.describe(0)
        rows = [("kind", about.kind), ("size", self.size), *about.labels.items()]
        return [Table(rows), *(Table([*section.items()], (title, "")) for title, section in about.sections)]

    @property
    def n_columns(self) -> int:
        """Number of columns that it reads in addition to the words."""
        return 0

    @property
    def column_names(self) -> list[str]:
        """Names of the columns next to the words in the training data; empty if they have none."""
        stored = (self.metrics.get("data") or {}).get("format") or {}
        names = stored.get("names") or (CONLLU_NAMES if stored.get("conllu") else ())
        return [names[i - 1] if names else f"column {i}" for i in stored.get("feature_columns") or ()]

    @property
    def scheme(self) -> str:
        """Scheme in which its tags spell spans; plain if they do not."""
        return "plain"

    @property
    def known_labels(self) -> list[str]:
        """The labels that a part of its answers may have: tags, labels of arcs, of constituents or of frames.

        Empty if its parts have no labels of a fixed set, or if it has several tasks, whose `heads` say theirs.
        """
        return []

    @property
    def size(self) -> str:
        """Its size in a few words."""
        return f"{self.n_parameters:,} parameters"

    def report(self, gold: Sequence[Sentence], *, threshold: float | None = None) -> Report:
        """Return all that there is to say about its answers on gold data; `threshold` as for `predict`."""
        scores = self.evaluate(gold)
        value = f"{100 * scores['score']:6.2f}"
        return Report(f"{scores['metric']:<24}{value}", dict(scores))

    def knows(self, word: str) -> bool | None:
        """Return whether it has learned something about this very word; None if it cannot say."""
        return None

    def pinned(self, text: str, n: int | None = None) -> object:
        """Read what a pin says of a word, as `predict` takes it in `pins`; `n` is the length of its sentence, if known.

        What it cannot say is an error: what was expected, and got.
        """
        raise TrellisworkError(f"expected a model whose answers can be pinned, got a {type(self).__name__}")

    def choices(
        self, inputs: Inputs, *, pins: Known = None, most: int | None = None
    ) -> Sequence[Sequence[PartChoices]]:
        """Return for each input the `PartChoices`: what each part of its answer may be, with exact probabilities.

        Args:
            inputs: what the model reads.
            pins: for each input the parts of its answer that are known.
            most: how many choices to list for each part; None for all.

        Returns:
            For each input the choices of its parts.
        """
        raise TrellisworkError(f"expected a model that knows the choices of parts, got a {type(self).__name__}")

    def expected_counts(
        self, inputs: Inputs, labels: Sequence[str] | None = None, *, pins: Known = None
    ) -> list[list[ExpectedCount]]:
        """Count the spans (or plain tags, or arcs) of each label in each input: mean and variance under p(y | x).

        Both are exact, and None stands for all labels. Counts of several inputs are added up by `total_counts`.

        Args:
            inputs: what the model reads.
            labels: the labels to count; None for all.
            pins: for each input the parts of its answer that are known.

        Returns:
            For each input a count of each label.
        """
        return expected_counts(self, inputs, labels, pins)

    def counting(self, batch: Sequence[Sentence], pins: Known) -> Counting:
        """Return the distribution over the answers to a batch, with the costs that count parts."""
        raise TrellisworkError(
            "expected a model with an exact distribution over its answers, such as a CRF; "
            f"got a {type(self).__name__}, which has none that parts are counted by"
        )

    def explain(self, sentences: Inputs) -> Sequence[Explanation]:
        """Explain the answer to each input: what decided its parts, and what else they may be.

        An explanation prints as text, shows as HTML, is plain values as `record(most)`, and has `words`, `title`,
        `lead` and `legend`.
        """
        raise TrellisworkError(f"expected a model with explanations, got a {type(self).__name__}")

    def readable_gold(self, gold: Sequence[Sentence], scheme: str | None = None) -> tuple[list[Sentence], list[str]]:
        """Return gold data as the model reads it, and notes about changes; answers it cannot give are an error."""
        return list(gold), []

    def notes(self, train: Sequence[Sentence], dev: Sequence[Sentence]) -> list[str]:
        """Return what is worth knowing about the data that it learns from."""
        return []

    @property
    def heads(self) -> Mapping[str, Model]:
        """The model of each task by name; one of a single task stands alone, under the empty name."""
        return {"": self}

    @property
    def exported(self) -> Mapping[str, Model]:
        """The models that `export` writes, by the names of their folders; one alone needs no name."""
        return {"": self}
