"""A model that replaces another: what a killed process began is finished by the next one that reads the folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from trelliswork.data import Sentence
from trelliswork.models import FeatureTagger, LearningConfig, load
from trelliswork.models.storage import NEW, is_newer
from trelliswork.writing import exchange

FEW = LearningConfig(max_iterations=2)


def tagger(*tags: str) -> FeatureTagger:
    return FeatureTagger.fit([Sentence(("a", "b"), tags)] * 2, FEW)


class Killed(BaseException):
    """In the place of kill -9; no `except Exception` holds it up."""


@pytest.mark.parametrize("step", range(6))
def test_the_next_reader_finishes_the_replacement(step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, left, own = tmp_path / "m", [step], os.replace
    tagger("X", "Y").save(folder)
    (folder / "notes.txt").write_text("mine")

    def replace(*arguments: Any) -> None:
        if left[0] == 0:
            raise Killed
        left[0] -= 1
        own(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", replace)
        try:
            tagger("P", "Q").save(folder)
        except Killed:
            assert (folder / NEW).is_dir()
    found: Any = load(folder)
    assert found.labels.vocabulary.to_list() == ["P", "Q"] and not (folder / NEW).exists()
    assert (folder / "notes.txt").read_text() == "mine"
    assert found.predict([Sentence(("a", "b"))])[0].value == ["P", "Q"]


def test_a_folder_that_is_half_there_counts_for_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    tagger("X", "Y").save(folder)
    (folder / NEW).mkdir()
    (folder / NEW / "weights.safetensors").write_bytes(b"old")
    found: Any = load(folder)
    assert found.labels.vocabulary.to_list() == ["X", "Y"]
    tagger("P", "Q").save(folder)
    found = load(folder)
    assert found.labels.vocabulary.to_list() == ["P", "Q"] and not (folder / NEW).exists()


def test_names_are_exchanged_at_once(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    if not exchange(tmp_path / "a", tmp_path / "b"):
        pytest.skip("the system cannot exchange names")
    assert [(tmp_path / name / "file").read_text() for name in "ab"] == ["b", "a"]
    assert not exchange(tmp_path / "a", tmp_path / "none")


def test_a_version_of_thousands_of_digits_is_a_version() -> None:
    assert is_newer({"library_version": "9" * 5000})
