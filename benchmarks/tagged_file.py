"""What `trelliswork predict` does once the model is there: from a file of columns to the same file with tags."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trelliswork.cli.answering import Job, Question, input_of, write_answers
from trelliswork.data import Choices, atomic_write


def tag_file(tagger: Any, source: Path, target: Path) -> None:
    """Tag a file and write it back whole."""
    job = Job(Question(), Choices())
    with atomic_write(target) as file:
        write_answers(tagger, input_of(tagger, str(source), job.layout, None), job, file)
