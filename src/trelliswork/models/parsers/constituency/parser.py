"""Base of all constituency parsers, however they find their trees: answers and scores."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trelliswork.data import Sentence
from trelliswork.data.brackets import tree_of
from trelliswork.errors import TrellisworkError
from trelliswork.metrics.brackets import NOT_COUNTED, BracketReport, Parsed, bracket_scores
from trelliswork.metrics.calibration import calibration
from trelliswork.models.base import Alternative, Answer, Model, PartProbability, Readable, Report, Scores
from trelliswork.models.batched import in_batches
from trelliswork.models.examined import Examined, Example
from trelliswork.models.parsers.constituency.bracket_explanation import BracketExplanation, BracketShares
from trelliswork.models.parsers.constituency.derivations import Bracket, brackets_of
from trelliswork.models.votes import Reason
from trelliswork.training.shares import answered

Pins = Sequence[tuple[int, int, str | None]]  # constituents that are known, end exclusive; a label of None is unknown
GivenPins = Pins | Mapping[int, tuple[int, str | None]]
BEST, LONGEST_BEST = 3, 100  # trees that explanations show, of sentences of at most this many words
BUDGET = 2048  # tokens that are answered at a time: what an encoder holds of them fits into the cache of a processor
_PIN = re.compile(r"(\d{1,9})(?::(.+))?")


@dataclass(frozen=True)
class ParsedTree:
    """A tree of one sentence, and how sure it is: of the tree, of each constituent, of each tag.

    `best` has the best trees as (tags, brackets, probability), if they were asked for.
    """

    tags: Sequence[str]
    brackets: Sequence[Bracket]
    probability: float | None = None
    sure: Sequence[float] = ()
    sure_tags: Sequence[float] = ()
    best: Sequence[tuple[Sequence[str], Sequence[Bracket], float]] = ()


class ConstituencyParser(Model):
    """Sentences to learn from have `brackets`, and parts of speech as `tags`; an answer is a `Tree`."""

    learns_from = "brackets"
    explains, supports_pins = True, True
    next_options = "--format pretty --confidence"

    @abstractmethod
    def parsed(
        self, batch: Sequence[Sentence], pins: Sequence[Pins] | None, top_k: int, sure: bool
    ) -> list[ParsedTree]:
        """Return the tree of each sentence of a batch, with the `top_k` best trees and, if `sure`, probabilities.

        Args:
            batch: Sentences, none of them empty.
            pins: Known constituents of each sentence.
            top_k: Number of best trees of each sentence.
            sure: True for probabilities of constituents and tags.

        Returns:
            A tree for each sentence.
        """

    chart_cost: float = 6e-9  # seconds for each triple of a span and a place to divide it at

    def cost(self, n: int, *, top_k: int = 0, choices: bool = False, explain: bool = False) -> float:
        """Return seconds; a chart over n words has n³ ways to divide a span."""
        more = choices + explain
        best = (7e-4 + 1e-5 * top_k) * n if top_k else 0.0
        spans = (1e-5 * more + 3e-3 * explain) * n**2
        return 2e-4 + 1.5e-4 * n + best + spans + self.chart_cost * (1 + 0.3 * top_k + 4 * more) * n**3

    def predict(
        self,
        inputs: Readable,
        *,
        top_k: int = 1,
        pins: Sequence[GivenPins] | None = None,
        confidence: bool = True,
    ) -> list[Answer]:
        """Return the tree of each sentence, with the probability of each constituent and tag.

        `pins` has for each sentence the constituents that are known: [(0, 2, "NP")] says that its first two words are
        an NP, and so does {0: (2, "NP")}; a label of None is unknown. Of raw text there is an answer for each sentence.

        Args:
            inputs: Raw text, a sentence or several.
            top_k: Number of alternatives of each answer.
            pins: Known constituents of each sentence.
            confidence: Add the probabilities of parts.

        Returns:
            An answer for each sentence.
        """
        sentences = self.sentences_of(inputs)
        known = None if pins is None else [listed(each) for each in pins]
        parses = self._parse(sentences, known, top_k, confidence)
        return [_answer(sentence, each) for sentence, each in zip(sentences, parses, strict=True)]

    def _parse(
        self, sentences: Sequence[Sentence], pins: Sequence[Pins] | None, top_k: int, sure: bool
    ) -> list[ParsedTree]:
        for sentence, known in zip(sentences, pins or (), strict=False):
            check_pins(sentence, known)
        return in_batches(
            self, sentences, pins, lambda batch, known: self.parsed(batch, known, top_k, sure),
            empty=lambda: ParsedTree((), (), 1.0), budget=BUDGET,
        )  # fmt: skip

    def explain(self, sentences: Readable) -> list[BracketExplanation]:
        """Explain the brackets of each tree: the other labels of each, what crosses it, and what decided."""
        return [self._explained(each) for each in self.sentences_of(sentences)]

    def _explained(self, sentence: Sentence) -> BracketExplanation:
        if not len(sentence):
            return BracketExplanation.of((), (), None)
        (parse,) = self._parse([sentence], None, BEST if len(sentence) <= LONGEST_BEST else 0, False)
        shares = self.shares(sentence)
        reasons = {} if shares is None else self.reasons(sentence, parse)
        best = [Alternative(tree_of(sentence.words, tags, brackets), p) for tags, brackets, p in parse.best]
        return BracketExplanation.of(sentence.words, parse.brackets, shares, reasons, best)

    @abstractmethod
    def reasons(self, sentence: Sentence, parse: ParsedTree) -> dict[tuple[int, int], Reason]:
        """Return the reasons for the brackets of a tree, by their spans."""

    @abstractmethod
    def shares(self, sentence: Sentence) -> BracketShares | None:
        """Return the probability of every labelled bracket of a sentence; None if it has none."""

    def pinned(self, text: str, n: int | None = None) -> tuple[int, str | None]:
        """Read `4:NP`, or `4`, of a word: the last word of a constituent that begins there, and its label."""
        match = _PIN.fullmatch(text)
        if match is None or int(match[1]) < 1 or (n is not None and int(match[1]) > n):
            words = "the sentence" if n is None else f"its {n} words"
            problem = "expected FIRST=LAST or FIRST=LAST:LABEL, the first and last word of a constituent"
            raise TrellisworkError(f"{problem}, such as 1=3:NP, within {words}; got {text!r}")
        if match[2] is not None and match[2] not in self.known_labels:
            known = ", ".join(self.known_labels)
            raise TrellisworkError(f"expected one of the labels {known}; got {match[2]!r}")
        return int(match[1]), match[2]

    @property
    @abstractmethod
    def known_labels(self) -> list[str]:
        """The labels of constituents that it can answer with, sorted."""

    def notes(self, train: Sequence[Sentence], dev: Sequence[Sentence]) -> list[str]:
        labels = {label for each in train for *_, label in brackets_of(each)}
        if labels - NOT_COUNTED:
            return self._unknown_labels(dev)
        problem = f"no constituent has a label that is counted, only {', '.join(sorted(labels)) or 'words'}"
        note = f"note: {train[0].file}: {problem}; label the brackets, as in (NP (DT the) (NN dog))"
        return [note, *self._unknown_labels(dev)]

    def readable_gold(self, gold: Sequence[Sentence], scheme: str | None = None) -> tuple[list[Sentence], list[str]]:
        return list(gold), self._unknown_labels(gold)

    def _unknown_labels(self, gold: Sequence[Sentence]) -> list[str]:
        """Return a note that some labels cannot be predicted, and where they first occur."""
        places: dict[str, str] = {}
        known = NOT_COUNTED.union(self.known_labels)
        for each in gold:
            for *_, label in brackets_of(each):
                if label not in known:
                    places.setdefault(label, f"{each.file}:{each.line}")
        if not places:
            return []
        shown = ", ".join(f"{label} ({place})" for label, place in list(places.items())[:5])
        more = f" and {len(places) - 5} more" if len(places) > 5 else ""
        problem = f"labels that training never saw count as mistakes, here with their first places: {shown}{more}"
        return [f"note: {problem}; add trees with them to the training data, or rename them"]

    def evaluate(self, gold: Sequence[Sentence]) -> Scores:
        """Compare labelled brackets with gold trees, as evalb counts them; tags are predicted, not read."""
        scores = _scored(gold, answered(lambda sentences: self._parse(sentences, None, 0, False), gold))
        shown = ("precision", "recall", "f1", "exact_match", "tagging_accuracy")
        return {"metric": "bracket f1", "score": scores.f1, **{name: getattr(scores, name) for name in shown}}

    def report(self, gold: Sequence[Sentence], *, threshold: float | None = None) -> Report:
        """Report on labelled brackets as evalb counts them, on each label, and on the calibration."""
        if threshold is not None:
            raise TrellisworkError("--threshold is for spans, and a parser finds one tree; leave it out")
        parses = self._parse(gold, None, 0, True)
        scores, examined = _scored(gold, parses), _examined(gold, parses)
        rows, record = [scores.table()], scores.to_dict()
        right = [(p, part in each.right) for each in examined.examples
                 for part, p in zip(each.found, each.confidences, strict=bool(each.confidences))]  # fmt: skip
        if right:
            error = calibration(right).expected_error
            record["calibration"] = {"of": "labelled brackets", "expected_error": error}
            rows.append(f"{'calibration error':<24}{100 * error:6.2f}   of the probabilities of labelled brackets")
        return Report("\n".join(rows), record, {"": examined})


def listed(known: GivenPins) -> Pins:
    """Return pins as a list, however they were given."""
    return [(start, *rest) for start, rest in known.items()] if isinstance(known, Mapping) else known


def check_pins(sentence: Sentence, known: Pins) -> None:
    """Refuse constituents that are not within the sentence."""
    for start, end, label in known:
        if not 0 <= start < end <= len(sentence):
            raise TrellisworkError(
                f"a pin must be a constituent (start, end, label) within 0..{len(sentence)}; got {(start, end, label)}"
            )


def _answer(sentence: Sentence, parse: ParsedTree) -> Answer:
    n = len(sentence)
    sure_tags = zip(range(n), parse.tags, parse.sure_tags, strict=True) if parse.sure_tags else ()
    spans = zip(parse.brackets, parse.sure, strict=True) if parse.sure else ()
    return Answer(
        tree_of(sentence.words, parse.tags, parse.brackets) if n else None,
        parse.probability,
        sentence.words,
        parts=[PartProbability(i, i + 1, tag, p) for i, tag, p in sure_tags],
        spans=[PartProbability(*bracket, p) for bracket, p in spans],
        alternatives=[Alternative(tree_of(sentence.words, tags, brackets), p) for tags, brackets, p in parse.best],
        offsets=sentence.offsets,
    )


def _scored(gold: Sequence[Sentence], parses: Sequence[ParsedTree]) -> BracketReport:
    wanted = [Parsed(each.tags or (), brackets_of(each)) for each in gold]
    return bracket_scores(wanted, [Parsed(each.tags, each.brackets) for each in parses])


def _examined(gold: Sequence[Sentence], parses: Sequence[ParsedTree]) -> Examined:
    examples = []
    for sentence, each in zip(gold, parses, strict=True):
        counted = dict.fromkeys(part for part in each.brackets if part[2] not in NOT_COUNTED)
        sure = dict(zip(each.brackets, each.sure, strict=bool(each.sure)))  # none if there is no probability
        right = dict.fromkeys(part for part in brackets_of(sentence) if part[2] not in NOT_COUNTED)
        confidences = [sure[part] for part in counted] if sure else []
        examples.append(Example(sentence.words, list(counted), list(right), confidences))
    return Examined("bracket f1", "constituents", examples)
