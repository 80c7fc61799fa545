"""What `trelliswork predict` does once the model is there: from a file of columns to the same file with tags."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trelliswork.cli.answering import Question, answers
from trelliswork.cli.inputs import choices_of, kind_of, open_new
from trelliswork.cli.writing_answers import Inputs, writer_for
from trelliswork.data import Choices, atomic_write
from trelliswork.data.kept_lines import KeptLines


def tag_file(tagger: Any, source: Path, target: Path) -> None:
    """Tag a file and write it back whole."""
    kept = KeptLines()
    kind = kind_of(str(source), None, tagger)
    inputs = Inputs(str(source), kind, choices_of(tagger, Choices(), kind), kept)
    inputs.format, sentences = open_new(inputs.file, inputs.kind, inputs.choices, kept.keep)
    with atomic_write(target) as file:
        writer = writer_for(None, inputs, tagger, 0, file)
        for found in answers(tagger, sentences, Question()):
            file.write(writer.write(*found))
        file.write(writer.end())
