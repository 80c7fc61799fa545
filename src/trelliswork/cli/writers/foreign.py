"""Tags in a format that another package brings."""

from __future__ import annotations

from dataclasses import replace

from trelliswork.cli.writers.base import Writer
from trelliswork.data import FileFormat, Sentence
from trelliswork.errors import TrellisworkError
from trelliswork.models.base import Answer


class ForeignWriter(Writer):
    """Sentences with the tags of the answers, as the format writes them."""

    def __init__(self, name: str, format: FileFormat) -> None:
        self.name, self.format = name, format

    def write(self, sentence: Sentence, answer: Answer) -> str:
        if answer.parts or answer.alternatives or answer.columns or not isinstance(answer.value, list):
            raise TrellisworkError(
                f"the format {self.name} holds one tag for each word and no more; add --format jsonl"
            )
        return self.format.text(replace(sentence, tags=tuple(answer.value))) or ""
