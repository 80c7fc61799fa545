"""Findings of `check` about a tagged file."""

from __future__ import annotations

import statistics
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from trelliswork.data import Choices, PairFormat, Sentence, open_pairs
from trelliswork.data.pairs import PairColumns
from trelliswork.data.treebank import NOTHING, is_projective, survey_treebank
from trelliswork.errors import DataError
from trelliswork.reading import name_of, numbered_lines
from trelliswork.tags.schemes import infer_scheme, spans_of, violations

LONGEST_WORD = 60  # letters; longer "words" are mostly addresses or damage
ENOUGH = 20  # sentences, to say that one is unlike the rest

JOINERS = "\u200c\u200d"  # spelling in Persian, in Indic scripts and between emoji; damage in ASCII words
_ODD = {"Cc", "Cf", "Co", "Cn", "Cs", "Zs", "Zl", "Zp"}  # control, format, private, unassigned, spaces


@dataclass(frozen=True)
class Finding:
    """Something worth a look, and where."""

    line: int
    text: str
    file: str = ""  # where a corpus is several files


@dataclass(frozen=True)
class Survey:
    """A tagged file, read whole, and the questions one asks of it."""

    file: str
    sentences: Sequence[Sentence]
    scheme: str

    @classmethod
    def of(cls, file: str, sentences: Sequence[Sentence], scheme: str | None) -> Survey:
        """Survey sentences; the scheme is inferred when None.

        Args:
            file: Name of the file.
            sentences: Its sentences.
            scheme: Scheme of its tags; None to infer it.

        Returns:
            The survey.
        """
        return cls(file, sentences, scheme or infer_scheme(sentence.tags or () for sentence in sentences))

    @cached_property
    def words(self) -> Counter[str]:
        """Counts of the words."""
        return Counter(word for sentence in self.sentences for word in sentence.words)

    @cached_property
    def tags(self) -> Counter[str]:
        """Counts of the tags."""
        return Counter(tag for sentence in self.sentences for tag in sentence.tags or ())

    @cached_property
    def spans(self) -> Counter[str]:
        """Counts of the spans by type; none for plain tags."""
        spans_by_sentence = (spans_of(sentence.tags or (), self.scheme) for sentence in self.sentences)
        return Counter(label for spans in spans_by_sentence for _, _, label in spans)

    @property
    def longest(self) -> Sentence:
        """The longest sentence, the first of them."""
        return max(self.sentences, key=len)

    @cached_property
    def violations(self) -> list[Finding]:
        """Tags that break the scheme."""
        return [
            Finding(sentence.line_of(i), reason, sentence.file)
            for sentence in self.sentences
            for i, reason in violations(sentence.tags or (), self.scheme)
        ]

    @cached_property
    def long_sentences(self) -> list[Finding]:
        """Sentences far longer than the rest: beyond six times the spread of the middle half."""
        lengths = [len(sentence) for sentence in self.sentences]
        if len(lengths) < ENOUGH:
            return []
        low, middle, high = statistics.quantiles(lengths, n=4)
        limit = max(high + 6 * (high - low), 3 * middle)
        return [
            Finding(
                sentence.line,
                f"{len(sentence)} tokens, half of the sentences have {middle:.0f} or fewer",
                sentence.file,
            )
            for sentence in self.sentences
            if len(sentence) > limit
        ]

    @cached_property
    def odd_words(self) -> list[Finding]:
        """Words with white space or invisible characters in them, or far too long."""
        odd = {word: reason for word in self.words if (reason := oddity_of(word))}
        return list(self._first_uses(odd)) if odd else []

    def _first_uses(self, odd: dict[str, str]) -> Iterator[Finding]:
        left = dict(odd)
        for sentence in self.sentences:
            for i, word in enumerate(sentence.words):
                if word in left:
                    yield Finding(sentence.line_of(i), f"{word!r}: {left.pop(word)}", sentence.file)

    @cached_property
    def rare_tags(self) -> list[str]:
        """Tags seen once: often misspelt."""
        return sorted(tag for tag, n in self.tags.items() if n == 1)

    @cached_property
    def duplicates(self) -> list[Finding]:
        """Sentences that came before, word for word; with other tags is worse."""
        seen: dict[tuple[str, ...], Sentence] = {}
        findings = []
        for sentence in self.sentences:
            earlier = seen.setdefault(sentence.words, sentence)
            if earlier is not sentence:
                how = "the same sentence as" if earlier.tags == sentence.tags else "the same words, other tags than"
                where = f"line {earlier.line}" + ("" if earlier.file == sentence.file else f" of {earlier.file}")
                findings.append(Finding(sentence.line, f"{how} {where}", sentence.file))
        return findings


def oddity_of(word: str) -> str:
    """Describe the problem with a word; empty if there is none.

    >>> oddity_of("fine"), oddity_of("zero\\u200bwidth")
    ('', 'holds U+200B ZERO WIDTH SPACE')
    """
    if len(word) > LONGEST_WORD:
        return f"{len(word)} characters long"
    if word.isascii() and word.isprintable() and " " not in word:
        return ""
    others = word.translate(dict.fromkeys(map(ord, JOINERS)))
    for character in word if others.isascii() else others:
        if character == "\ufffd" or unicodedata.category(character) in _ODD:
            name = unicodedata.name(character, "a control character")
            return f"holds U+{ord(character):04X} {name}"
    return ""


@dataclass(frozen=True)
class Overlap:
    """Comparison of a file with the training file: what both have, and what is new."""

    n_sentences: int
    n_same: int
    unseen_tokens: float
    unseen_types: float
    new_tags: list[str]


def overlap(train: Survey, other: Survey) -> Overlap:
    """Compare a dev or test file with the training file."""
    known = {sentence.words for sentence in train.sentences}
    unseen = {word: n for word, n in other.words.items() if word not in train.words}
    return Overlap(
        len(other.sentences),
        sum(sentence.words in known for sentence in other.sentences),
        sum(unseen.values()) / max(other.words.total(), 1),
        len(unseen) / max(len(other.words), 1),
        sorted(set(other.tags) - set(train.tags)),
    )


# What `check` finds out about the trees of a CoNLL-U file.


@dataclass
class TreeSurvey:
    """Counts of trees and labels, and what is wrong, with its lines."""

    n_trees: int = 0
    n_crossing: int = 0
    deepest: int = 0
    deepest_line: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    broken: list[Finding] = field(default_factory=list)
    unlabelled: list[Finding] = field(default_factory=list)

    @classmethod
    def of(cls, file: str) -> TreeSurvey | None:
        """Return a treebank, read whole; None if no word has a head."""
        survey, any_head = cls(), False
        for each in survey_treebank(file):
            if isinstance(each, DataError):
                any_head |= "is not annotated" not in each.problem
                survey.broken.append(Finding(each.line or 0, each.problem))
            else:
                any_head = True
                survey._add(each)
        return survey if any_head else None

    def _add(self, sentence: Sentence) -> None:
        heads = sentence.heads or ()
        self.n_trees += 1
        self.n_crossing += not is_projective(heads)
        self.labels.update(sentence.tags or ())
        depth = deepest(heads)
        if depth > self.deepest:
            self.deepest, self.deepest_line = depth, sentence.line
        for i, label in enumerate(sentence.tags or ()):
            if label == NOTHING:
                self.unlabelled.append(Finding(sentence.line_of(i), f"{sentence.words[i]!r} has no label"))

    @property
    def rare(self) -> list[str]:
        """Labels seen once: often misspelt."""
        return sorted(label for label, n in self.labels.items() if n == 1)


def deepest(heads: Sequence[int]) -> int:
    """Count the arcs that lead to the word farthest from the root.

    >>> deepest((2, 0, 2))
    2
    """
    depths = [0] + [-1] * len(heads)
    for start in range(1, len(heads) + 1):
        way = [start]
        while depths[heads[way[-1] - 1]] < 0:
            way.append(heads[way[-1] - 1])
        first = depths[heads[way[-1] - 1]]
        for n, word in enumerate(reversed(way), 1):
            depths[word] = first + n
    return max(depths)


# What `check` finds out about a file of pairs of strings.

SHOWN = 10
UNLIKE = 6.0  # times longer than in the middle pair: a target of that length is worth a look


@dataclass
class PairSurvey:
    """A file of pairs, read whole."""

    file: str
    columns: PairColumns
    pairs: Sequence[Sentence]
    mixed: list[Finding] = field(default_factory=list)

    @classmethod
    def of(cls, file: str, choices: Choices) -> PairSurvey:
        """Read a file; one that cannot be read is an error with its line."""
        columns, pairs = open_pairs(file, choices)
        return cls(file, columns, pairs, list(mixed_forms(file)))

    @property
    def sources(self) -> Counter[str]:
        """Counts of the source symbols."""
        return Counter(symbol for pair in self.pairs for symbol in pair.words)

    @property
    def targets(self) -> Counter[str]:
        """Counts of the target symbols."""
        return Counter(symbol for pair in self.pairs for symbol in pair.target or ())

    @property
    def repeated(self) -> list[Finding]:
        """Pairs that came before."""
        seen: dict[tuple[tuple[str, ...], tuple[str, ...] | None], int] = {}
        findings = []
        for pair in self.pairs:
            earlier = seen.setdefault((pair.words, pair.target), pair.line)
            if earlier != pair.line:
                findings.append(Finding(pair.line, f"the same pair as line {earlier}"))
        return findings

    @property
    def n_several(self) -> int:
        """Sources with several targets."""
        targets: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
        for pair in self.pairs:
            targets.setdefault(pair.words, set()).add(pair.target or ())
        return sum(len(each) > 1 for each in targets.values())

    @property
    def unlike(self) -> list[Finding]:
        """Pairs with far more or far fewer target symbols for a source symbol than the others."""
        if len(self.pairs) < ENOUGH:
            return []
        middle = statistics.median(_ratio(pair) for pair in self.pairs)
        return [
            Finding(pair.line, f"{len(pair)} source and {len(pair.target or ())} target symbols")
            for pair in self.pairs
            if not middle / UNLIKE <= _ratio(pair) <= middle * UNLIKE
        ]

    @property
    def odd(self) -> list[Finding]:
        """Symbols that cannot be seen, where they first are."""
        left = {
            symbol: reason for symbol in self.sources + self.targets if (reason := oddity_of(symbol)) and symbol != " "
        }
        findings = []
        for pair in self.pairs:
            for symbol in {*pair.words, *(pair.target or ())} & set(left):
                findings.append(Finding(pair.line, f"{symbol!r}: {left.pop(symbol)}"))
        return findings

    def description(self) -> list[str]:
        """Return the description, line by line."""
        lengths = [[len(pair) for pair in self.pairs], [len(pair.target or ()) for pair in self.pairs]]
        several = f", {self.n_several:,} with several targets" if self.n_several else ""
        lines = [f"  {len(self.pairs):,} pairs of {len({pair.words for pair in self.pairs}):,} sources{several}"]
        for side, symbols, sizes in zip(("source", "target"), (self.sources, self.targets), lengths, strict=True):
            lines.append(f"  {side} symbols: {_shown(symbols)}; {min(sizes)} to {max(sizes)} in a {side}")
        lines += _finding_lines("lines in both Unicode normal forms, or neither", self.mixed, self.file)
        lines += _finding_lines("odd symbols", self.odd, self.file)
        lines += _finding_lines("lengths unlike the others", self.unlike, self.file)
        return lines + _finding_lines("repeated pairs", self.repeated, self.file)

    def compared(self, train: PairSurvey) -> list[str]:
        """Return the comparison with the training file, line by line: what both have, and what is new."""
        pairs = {(pair.words, pair.target) for pair in train.pairs}
        sources = {words for words, _ in pairs}
        n_pairs = sum((pair.words, pair.target) in pairs for pair in self.pairs)
        n_sources = sum(pair.words in sources for pair in self.pairs)
        lines = [f"  against {train.file}", f"    pairs in both      {n_pairs:,} of {len(self.pairs):,}"]
        lines.append(f"    sources in both    {n_sources:,} of {len(self.pairs):,}")
        for side, here, there in (
            ("source", self.sources, train.sources),
            ("target", self.targets, train.targets),
        ):
            new = sorted(set(here) - set(there))
            lines.append(f"    new {side} symbols {', '.join(map(repr, new[:SHOWN])) or 'none'}")
        return lines


def mixed_forms(file: str) -> Iterator[Finding]:
    """Yield lines that are not in NFC, of a file that is not all in NFD either."""
    lines = [(number, text) for number, text in numbered_lines(file) if not text.isascii()]
    composed = [unicodedata.is_normalized("NFC", text) for _, text in lines]
    if all(composed) or all(unicodedata.is_normalized("NFD", text) for _, text in lines):
        return
    for (number, _), fits in zip(lines, composed, strict=True):
        if not fits:
            yield Finding(number, "not in NFC, as other lines are; --normalise NFC or NFD makes them equal")


def _ratio(pair: Sentence) -> float:
    return len(pair.target or ()) / max(len(pair), 1)


def _shown(counter: Counter[str]) -> str:
    most = ", ".join(f"{symbol!r} {n:,}" for symbol, n in counter.most_common(SHOWN))
    rare = sum(n == 1 for n in counter.values())
    return f"{len(counter)} ({most}{', ...' if len(counter) > SHOWN else ''}), {rare} of them seen once"


def _finding_lines(title: str, findings: Sequence[Finding], file: str, shown: int = 3) -> list[str]:
    """Return a count, and the first findings with their places."""
    if not findings:
        return [f"  {title}: none"]
    lines = [f"  {title}: {len(findings):,}"]
    lines += [f"    {name_of(file)}:{finding.line}: {finding.text}" for finding in findings[:shown]]
    return lines + ([f"    ... and {len(findings) - shown:,} more"] if len(findings) > shown else [])


def survey_pairs(files: Sequence[str], choices: Choices, format: PairFormat) -> Iterator[str]:
    """Yield a description of each file; the first is the one to train on, and decides how the others are cut.

    Args:
        files: Names of the files, the one to train on first.
        choices: Columns that the user has named.
        format: How texts are cut into symbols.

    Returns:
        An iterator over descriptions.
    """
    first: PairSurvey | None = None
    for file in files:
        given = format if first is None else first.columns.pairs
        survey = PairSurvey.of(file, _with(choices, given))
        lines = [f"{file}: {survey.columns.describe()}", *survey.description()]
        yield "\n".join([*lines, *(survey.compared(first) if first else ())])
        first = first or survey


def _with(choices: Choices, format: PairFormat) -> Choices:
    return Choices(choices.delimiter, choices.word_column, choices.tag_column, pairs=format)
