"""Answers of transducers as TSV: the source, the target and its probability; a line for each of the best targets."""

from __future__ import annotations

from collections.abc import Sequence

from trelliswork.cli.writers.base import Writer
from trelliswork.data import Sentence
from trelliswork.errors import TrellisworkError
from trelliswork.models.base import Alternative, Answer


class PairWriter(Writer):
    """A line for each source; with alternatives one for each of them."""

    def write(self, sentence: Sentence, answer: Answer) -> str:
        if not isinstance(answer.value, str):
            raise TrellisworkError(
                "--format tsv is for models of pairs of strings; leave it out, or add --format conll"
            )
        source = sentence.text or "".join(sentence.words)
        found: Sequence[Answer | Alternative] = answer.alternatives or [answer]
        return "".join(_line(source, each.value, each.probability) for each in found)


def _line(source: str, target: str, probability: float | None) -> str:
    known = "" if probability is None else f"\t{probability:.6f}"
    return f"{source}\t{target}{known}\n"
