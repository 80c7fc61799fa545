"""The answers of several tasks about one sentence as text: a column, a key or a line for each task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from trelliswork.cli.answers import Answer
from trelliswork.cli.writers import Writer, confidence_columns, conll_writer, json_extras
from trelliswork.data import json_text
from trelliswork.data.columns import columns_text

TasksWriter = Callable[[Sequence["Answer"]], str]


def conll_tasks_writer(tasks: Sequence[str], delimiter: str) -> TasksWriter:
    """The word, then for each task its tag and, if asked for, the probabilities of tag and span.

    With several analyses the tasks come one after another, each with blocks of its own.
    """
    writers = [conll_writer(delimiter, title=f"{task}, ") for task in tasks]

    def write(answers: Sequence[Answer]) -> str:
        if answers[0].analyses is not None:
            return "".join(writer(answer) for writer, answer in zip(writers, answers, strict=True))
        columns: list[Sequence[str]] = [answers[0].sentence.words]
        for answer in answers:
            columns.append(answer.tags)
            if answer.confidences is not None:
                columns += confidence_columns(answer.confidences)
        return columns_text(columns, answers[0].sentence, delimiter)

    return write


def jsonl_tasks_writer(tasks: Sequence[str]) -> TasksWriter:
    """The sentence as such a model learns from it, and under `tasks` what was asked for about each."""

    def write(answers: Sequence[Answer]) -> str:
        columns = [tuple(answer.tags) for answer in answers]
        sentence = replace(answers[0].sentence, features=tuple(columns[:-1]), tags=columns[-1])
        extra: dict[str, Any] = {
            task: {"tags": answer.tags, **json_extras(answer)} for task, answer in zip(tasks, answers, strict=True)
        }
        return json_text(sentence, tasks=extra)

    return write


def pretty_tasks_writer(tasks: Sequence[str], writers: Sequence[Writer]) -> TasksWriter:
    """A line for each task, as for a tagger of that task alone."""
    width = max(map(len, tasks))

    def write(answers: Sequence[Answer]) -> str:
        lines = zip(tasks, writers, answers, strict=True)
        return "".join(f"{task:{width}}  {writer(answer)}" for task, writer, answer in lines)

    return write
