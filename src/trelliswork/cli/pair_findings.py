"""What `check` finds out about a file of pairs of strings."""

from __future__ import annotations

import statistics
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from trelliswork.cli.findings import ENOUGH, Finding, why_odd
from trelliswork.data import Choices, PairFormat, Sentence, open_pairs
from trelliswork.data.files import name_of, numbered_lines
from trelliswork.data.pairs import PairColumns

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
        """How often each source symbol occurs."""
        return Counter(symbol for pair in self.pairs for symbol in pair.words)

    @property
    def targets(self) -> Counter[str]:
        """How often each target symbol occurs."""
        return Counter(symbol for pair in self.pairs for symbol in pair.target or ())

    @property
    def repeated(self) -> list[Finding]:
        """Pairs that came before."""
        seen: dict[tuple[tuple[str, ...], tuple[str, ...] | None], int] = {}
        found = []
        for pair in self.pairs:
            earlier = seen.setdefault((pair.words, pair.target), pair.line)
            if earlier != pair.line:
                found.append(Finding(pair.line, f"the same pair as line {earlier}"))
        return found

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
            symbol: reason for symbol in self.sources + self.targets if (reason := why_odd(symbol)) and symbol != " "
        }
        found = []
        for pair in self.pairs:
            for symbol in {*pair.words, *(pair.target or ())} & set(left):
                found.append(Finding(pair.line, f"{symbol!r}: {left.pop(symbol)}"))
        return found

    def description(self) -> list[str]:
        """What there is to say, line by line."""
        lengths = [[len(pair) for pair in self.pairs], [len(pair.target or ()) for pair in self.pairs]]
        several = f", {self.n_several:,} with several targets" if self.n_several else ""
        lines = [f"  {len(self.pairs):,} pairs of {len({pair.words for pair in self.pairs}):,} sources{several}"]
        for side, found, sizes in zip(("source", "target"), (self.sources, self.targets), lengths, strict=True):
            lines.append(f"  {side} symbols: {_shown(found)}; {min(sizes)} to {max(sizes)} in a {side}")
        lines += _listed("lines in both Unicode normal forms, or neither", self.mixed, self.file)
        lines += _listed("odd symbols", self.odd, self.file)
        lines += _listed("lengths unlike the others", self.unlike, self.file)
        return lines + _listed("repeated pairs", self.repeated, self.file)

    def compared(self, train: PairSurvey) -> list[str]:
        """What it shares with the training file, and what is new in it."""
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
    """Lines that are not in NFC, of a file that is not all in NFD either."""
    lines = [(number, text) for number, text in numbered_lines(file) if not text.isascii()]
    composed = [unicodedata.is_normalized("NFC", text) for _, text in lines]
    if all(composed) or all(unicodedata.is_normalized("NFD", text) for _, text in lines):
        return
    for (number, _), fits in zip(lines, composed, strict=True):
        if not fits:
            yield Finding(number, "not in NFC, as other lines are; --normalise NFC or NFD makes them alike")


def _ratio(pair: Sentence) -> float:
    return len(pair.target or ()) / max(len(pair), 1)


def _shown(counter: Counter[str]) -> str:
    most = ", ".join(f"{symbol!r} {n:,}" for symbol, n in counter.most_common(SHOWN))
    rare = sum(n == 1 for n in counter.values())
    return f"{len(counter)} ({most}{', ...' if len(counter) > SHOWN else ''}), {rare} of them seen once"


def _listed(title: str, findings: Sequence[Finding], file: str, shown: int = 3) -> list[str]:
    """A count, and the first findings with their places."""
    if not findings:
        return [f"  {title}: none"]
    lines = [f"  {title}: {len(findings):,}"]
    lines += [f"    {name_of(file)}:{finding.line}: {finding.text}" for finding in findings[:shown]]
    return lines + ([f"    ... and {len(findings) - shown:,} more"] if len(findings) > shown else [])


def survey_pairs(files: Sequence[str], choices: Choices, format: PairFormat) -> Iterator[str]:
    """What to print about each file; the first is the one to train on, and says how the others are cut."""
    first: PairSurvey | None = None
    for file in files:
        given = format if first is None else first.columns.pairs
        found = PairSurvey.of(file, _with(choices, given))
        lines = [f"{file}: {found.columns.describe()}", *found.description()]
        yield "\n".join([*lines, *(found.compared(first) if first else ())])
        first = first or found


def _with(choices: Choices, format: PairFormat) -> Choices:
    return Choices(choices.delimiter, choices.word_column, choices.tag_column, pairs=format)
