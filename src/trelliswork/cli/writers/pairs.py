"""Answers of transducers as TSV: the source, the target and its probability; a line for each of the best targets."""

from __future__ import annotations

from collections.abc import Sequence

from trelliswork.cli.writers.base import Writer
from trelliswork.data import Sentence
from trelliswork.errors import TrellisworkError
from trelliswork.models.base import Alternative, Answer


class PairWriter(Writer):
    """A line for each source; with alternatives one for each of them. A lexicon has no probabilities."""

    def __init__(self, *, probabilities: bool = True) -> None:
        self.probabilities = probabilities

    def write(self, sentence: Sentence, answer: Answer) -> str:
        if not isinstance(answer.value, str):
            raise TrellisworkError(
                "--format tsv is for models of pairs of strings; leave it out, or add --format conll"
            )
        source = (sentence.text or "".join(sentence.words)).strip()
        found: Sequence[Answer | Alternative] = answer.alternatives or [answer]
        shown = ((each.value, each.probability if self.probabilities else None) for each in found)
        return "".join(_line(source, target, probability) for target, probability in shown)


def _line(source: str, target: str, probability: float | None) -> str:
    known = "" if probability is None else f"\t{probability:.6f}"
    return f"{source}\t{target}{known}\n"
