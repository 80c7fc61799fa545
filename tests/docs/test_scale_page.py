"""docs/scale.md: its figures are those of docs/results/scale.json, and its plan follows from them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from benchmarks.scale import MARKS, PAGE, RESULTS, enlarged, figures, linked, with_figures
from benchmarks.scale_plan import annotation_lines, slice_lines, training_lines

SPEED = {"seconds": {1: 100.0, 2: 50.0}, "memory": {1: [300], 2: [200, 200]}, "speed_up": 2.0, "target": 1.7}
FOUND: dict[str, Any] = {
    "machine": "a machine",
    "speed": [
        {**SPEED, "task": "features", "tokens": 10**8, "command": "train /data/a.txt", "most": 1.8,
         "scores": {1: 0.9, 2: 0.9}},
        {**SPEED, "task": "annotation", "tokens": 10**7, "command": "predict"},
        {**SPEED, "task": "bilstm-crf", "tokens": 10**6, "command": "train", "scores": {1: 0.9, 2: 0.9}},
    ],
    "memory": [
        {"kind": "few, scratch", "processes": 1, "tokens": (10**6, 2 * 10**6), "mb": [300, 310], "weights": [9, 10],
         "seconds": [1.0, 2.0], "reading": [3.0, 5.0]},
        {"kind": "many, scratch", "processes": 1, "tokens": (10**6, 2 * 10**6), "mb": [400, 410],
         "weights": [10, 10**6 + 10], "seconds": [1.0, 2.0], "reading": [3.0, 5.0]},
    ],
}  # fmt: skip


def test_the_plan_follows_from_the_figures() -> None:
    wanted = "- scratch, 1 process: 310 MB + 10 bytes x 98 million tokens + 100 bytes x 10 million weights = 2.3 GB"
    assert slice_lines(FOUND) == [wanted]
    training, annotation = "\n".join(training_lines(FOUND)), "\n".join(annotation_lines(FOUND))
    assert "100 passes / 1,000,000 tokens a second = 278 core-hours" in training
    assert "10^10 tokens / 500,000 a second = 5.6 hours before the first pass" in training
    assert "10^12 tokens / 100,000 tokens a second and core = 2,778 core-hours" in annotation
    assert "2,778 core-hours x 0.05 dollars = 139 dollars" in annotation


def test_the_page_has_the_figures() -> None:
    page = with_figures(f"before\n{MARKS[0]}\nearlier\n{MARKS[1]}\nafter\n", FOUND)
    assert page.startswith("before\n") and page.endswith("\nafter\n") and "earlier" not in page
    assert "| features | 100.0 | 50.0 | 2.00 | 1.80 | 1.7 | 300 | 200, 200 |" in page and "`train a.txt`" in page


def test_the_figures_are_those_of_the_results() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert all(mark in page for mark in MARKS)
    results = RESULTS / "scale.json"
    if results.is_file():
        assert linked(figures(json.loads(results.read_text(encoding="utf-8")))) in page


def test_copies_have_new_words(tmp_path: Any) -> None:
    (tmp_path / "a").write_text("Ann NNP B-X\nsings VBZ O\n\nStop VB O\n\n")
    lines = enlarged(tmp_path / "a", tmp_path / "b", 300).read_text().split("\n")
    words = {line.split()[0] for line in lines if line}
    assert sum(map(bool, lines)) == pytest.approx(300, abs=2) and len(words) > 20
    assert lines[:3] == ["Ann NNP B-X", "sings VBZ O", ""]
