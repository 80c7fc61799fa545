"""The example learns what it says: chains find brackets, segments find windows, a softmax neither."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from examples import structured_attention as example
from tests.docs.documents import ROOT


def test_the_answer_is_the_most_frequent_letter_inside() -> None:
    task = example.brackets(50, torch.Generator().manual_seed(0))
    for row, answer in zip(task.values.argmax(-1).tolist(), task.answers.tolist(), strict=True):
        inside, letters = False, []
        for token in row:
            inside = token == example.OPEN or (inside and token != example.CLOSE)
            letters += [token] if inside and token < example.N_LETTERS else []
        assert letters.count(answer) == max(map(letters.count, range(example.N_LETTERS)))


def test_structures_learn_what_a_softmax_cannot() -> None:
    generator = torch.Generator().manual_seed(0)

    def right(name: str, train: example.Task, test: example.Task) -> float:
        return example.accuracy(example.ATTENTIONS[name], train, test, n_steps=100)

    train, test = example.brackets(300, generator), example.brackets(300, generator)
    assert right("chain", train, test) > right("softmax", train, test) + 0.25
    train, test = example.windows(300, generator), example.windows(300, generator)
    assert right("segments", train, test) > right("softmax", train, test) + 0.08


def test_it_prints_a_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["structured_attention", "--quick"])
    monkeypatch.setattr(
        example, "table", lambda *sizes: {(a, t): 0.5 for a in example.ATTENTIONS for t in example.TASKS}
    )
    example.main()
    heading, *rows = capsys.readouterr().out.splitlines()[1:]
    assert heading.split() == ["attention", "brackets", "windows"]
    assert [row.split() for row in rows] == [[name, "50.0", "50.0"] for name in example.ATTENTIONS]


def test_it_says_how_it_is_used() -> None:
    command = [sys.executable, "-m", "examples.structured_attention", "--help"]
    assert "--quick" in subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
