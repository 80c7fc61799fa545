"""Right and wrong answers, input by input: what reports and comparisons of models are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from trelliswork.metrics import Calibration, Confusion, Score, calibration

Part = tuple[int, int, str] | tuple[int, int, str, int]  # positions [start, end) and label; of an arc also the head


@dataclass(frozen=True)
class Example:
    """One input with the parts that were found, their probabilities if there are any, and the parts that are right.

    `joint` is what stands between the words.
    """

    words: Sequence[str]
    found: Sequence[Part]
    gold: Sequence[Part]
    confidences: Sequence[float] = ()
    joint: str = " "

    @cached_property
    def right(self) -> set[Part]:
        """The parts that were found and are right."""
        return set(self.found) & set(self.gold)

    @property
    def score(self) -> Score:
        """Numbers of parts that are right, predicted and gold."""
        return Score(len(self.right), len(self.found), len(self.gold))

    @property
    def n_errors(self) -> int:
        """Number of parts that were predicted wrongly or missed."""
        return len(self.found) + len(self.gold) - 2 * len(self.right)

    def text(self, part: Part) -> str:
        """Return the words of a part."""
        return self.joint.join(self.words[part[0] : part[1]])

    def label(self, part: Part) -> str:
        """Return the label of a part, of an arc with its head."""
        if len(part) == 3:
            return part[2]
        return f"{part[2]} of {self.words[part[3] - 1]}" if part[3] else part[2]


@dataclass(frozen=True)
class Examined:
    """All examples of a task; `parts` names what is found in them, and `metric` the F1 (or accuracy) of these."""

    metric: str
    parts: str
    examples: Sequence[Example]
    confusion: Confusion | None = None

    @property
    def scores(self) -> list[Score]:
        """The counts of each example."""
        return [each.score for each in self.examples]

    @property
    def overall(self) -> Score:
        """The counts of all examples."""
        return self.restricted(lambda example, part: True)

    def restricted(self, wanted: Callable[[Example, Part], bool]) -> Score:
        """Return the counts of some of the parts."""
        counts = [
            sum(wanted(example, part) for example in self.examples for part in kind(example))
            for kind in (lambda each: each.right, lambda each: each.found, lambda each: each.gold)
        ]
        return Score(*counts)

    def by_label(self) -> dict[str, Score]:
        """Return the counts of each label, the most frequent first."""
        right, predicted, gold = (
            Counter(part[2] for example in self.examples for part in kind(example))
            for kind in (lambda each: each.right, lambda each: each.found, lambda each: each.gold)
        )
        labels = sorted(gold | predicted, key=lambda label: (-gold[label], label))
        return {label: Score(right[label], predicted[label], gold[label]) for label in labels}

    def calibration(self) -> Calibration | None:
        """Return by how much the probabilities are off; None if there are none."""
        pairs = [
            (probability, part in example.right)
            for example in self.examples
            for part, probability in zip(example.found, example.confidences, strict=bool(example.confidences))
        ]
        return calibration(pairs) if pairs else None

    def worst(self, n: int) -> list[Example]:
        """Return the examples with the most mistakes, the shortest of them first."""
        wrong = [each for each in self.examples if each.n_errors]
        return sorted(wrong, key=lambda each: (-each.n_errors, len(each.words)))[:n]
