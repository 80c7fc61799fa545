"""The search: what it tries, ends early, keeps and goes on with."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from trelliswork.errors import OutputError, TrellisworkError
from trelliswork.training import Numbers, OneOf, SearchConfig, search
from trelliswork.training.result import SearchResult, TrialRow
from trelliswork.training.trials import JOURNAL, Attempt

pytest.importorskip("optuna", reason="the extra [tune] is not installed")

SPACE = {
    "lr": Numbers(1e-4, 1.0, log=True),
    "layers": Numbers(1, 4, whole=True),
    "rate": Numbers(0.0, 0.5, step=0.1),
    "encoder": OneOf(("lstm", "gru")),
    "lengths": OneOf(((), (2, 3))),
}


def near_a_tenth(attempt: Attempt) -> float:
    """Highest for a rate of 0.1 and two layers."""
    settings = attempt.settings
    return -abs(math.log10(settings["lr"]) + 1) - abs(settings["layers"] - 2)


def test_settings_lie_in_the_space() -> None:
    seen: list[dict[str, Any]] = []

    def run(attempt: Attempt) -> float:
        seen.append(attempt.settings)
        return near_a_tenth(attempt)

    result = search(run, SPACE, SearchConfig(trials=12))
    assert [row.settings["lengths"] for row in result.rows] == [each["lengths"] for each in seen]
    for settings in seen:
        assert 1e-4 <= settings["lr"] <= 1 and settings["encoder"] in ("lstm", "gru")
        assert settings["layers"] in (1, 2, 3, 4) and settings["rate"] in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
        assert settings["lengths"] in ((), (2, 3))
    assert {settings["lengths"] for settings in seen} == {(), (2, 3)}


def test_the_search_finds_more_than_chance_does() -> None:
    found = [
        search(near_a_tenth, {name: SPACE[name] for name in ("lr", "layers")}, SearchConfig(trials=40, seed=seed)).best
        for seed in range(3)
    ]
    assert all(row is not None and row.score is not None and row.score > -0.1 for row in found)


def test_the_first_trial_has_the_settings_that_are_given() -> None:
    first = {"lr": 0.002, "layers": 9, "rate": 0.3, "encoder": "gru", "lengths": (2, 3)}
    (row,) = search(near_a_tenth, SPACE, SearchConfig(trials=1, first=first)).rows
    assert {**row.settings, "layers": 9} == first
    assert row.settings["layers"] in (1, 2, 3, 4)  # 9 is outside


def test_bad_trials_are_ended_early() -> None:
    def run(attempt: Attempt) -> float:
        level = 0.1 if attempt.number == 6 else 0.8
        for step in range(1, 6):
            attempt.report(step, level + step / 100)
        return level + 0.05

    result = search(run, SPACE, SearchConfig(trials=8))
    ended = result.row(6)
    assert (ended.state, ended.steps) == ("pruned", 3) and ended.score == pytest.approx(0.13)
    assert [row.number for row in result.rows if row.state != "finished"] == [6]


class Killed(BaseException):
    """Ends a search without any of its own endings."""


@pytest.mark.parametrize("end", [Killed, KeyboardInterrupt])
def test_a_search_goes_on_as_if_it_had_not_been_stopped(tmp_path: Path, end: type[BaseException]) -> None:
    def run(attempt: Attempt) -> float:
        for step in range(1, 5):
            attempt.report(step, near_a_tenth(attempt) - 1 / step)
            if attempt.number == 10 and step == 2 and not attempt.resumed and stopping:
                raise end
        return near_a_tenth(attempt)

    stopping = False
    whole = search(run, SPACE, SearchConfig(trials=14, seed=3))
    stopping = True
    if end is KeyboardInterrupt:
        stopped = search(run, SPACE, SearchConfig(trials=14, seed=3), out=tmp_path)
        assert stopped.interrupted and stopped.rows[-1].state == "stopped"
    else:
        with pytest.raises(Killed):
            search(run, SPACE, SearchConfig(trials=14, seed=3), out=tmp_path)
    with (tmp_path / JOURNAL).open("a") as file:
        file.write('{"op_code": 4, "torn')  # what a power cut leaves
    again = search(run, SPACE, SearchConfig(trials=14, seed=3), out=tmp_path, resume=True)
    assert [plain(row) for row in again.rows] == [plain(row) for row in whole.rows]


def plain(row: TrialRow) -> tuple[Any, ...]:
    return row.number, row.state, row.score, row.steps, row.settings


def test_what_is_resumed_must_be_the_same_search(tmp_path: Path) -> None:
    search(near_a_tenth, SPACE, SearchConfig(trials=1), out=tmp_path, purpose={"model": "window"})
    with pytest.raises(OutputError, match="holds a search already; add --resume"):
        search(near_a_tenth, SPACE, SearchConfig(trials=2), out=tmp_path)
    with pytest.raises(TrellisworkError, match="model was 'window' and is 'crf'; give the same again"):
        search(near_a_tenth, SPACE, SearchConfig(trials=2), out=tmp_path, resume=True, purpose={"model": "crf"})
    with pytest.raises(TrellisworkError, match="space was"):
        search(near_a_tenth, {"lr": SPACE["lr"]}, out=tmp_path, resume=True, purpose={"model": "window"})
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / JOURNAL).write_text("notes\n")
    with pytest.raises(OutputError, match="expected the journal of a search"):
        search(near_a_tenth, SPACE, out=tmp_path / "other", resume=True)


def test_a_trial_that_fails_is_told_and_the_search_goes_on() -> None:
    def run(attempt: Attempt) -> float:
        if attempt.number == 1:
            raise TrellisworkError("the loss is nan")
        return 0.5

    result = search(run, SPACE, SearchConfig(trials=3))
    assert [row.state for row in result.rows] == ["finished", "failed", "finished"]
    assert result.row(1).problem == "the loss is nan"


def test_a_search_whose_trials_all_fail_ends(tmp_path: Path) -> None:
    def fails(attempt: Attempt) -> float:
        raise TrellisworkError("the loss is nan")

    def fills_the_disk(attempt: Attempt) -> float:
        raise OutputError("no space")

    with pytest.raises(TrellisworkError, match="every one of 3 trials failed, the last with: the loss is nan"):
        search(fails, SPACE, SearchConfig(trials=9))
    with pytest.raises(OutputError, match="no space"):
        search(fills_the_disk, SPACE, SearchConfig(trials=9))


@pytest.mark.parametrize("score", [None, math.nan])
def test_what_is_no_score_is_a_mistake_of_the_caller(score: Any) -> None:
    with pytest.raises(TrellisworkError, match="expected a score from run, a finite number, got"):
        search(lambda _: score, SPACE)


def test_ctrl_c_between_trials_keeps_them() -> None:
    def interrupt(result: SearchResult, row: TrialRow) -> None:
        if row.number == 1:
            raise KeyboardInterrupt

    result = search(near_a_tenth, SPACE, SearchConfig(first={"lr": 0.1}), on_trial=interrupt)
    assert result.interrupted and [row.state for row in result.rows] == ["finished", "finished"]


def test_nothing_to_search_is_refused() -> None:
    for trials, space in ((0, SPACE), (3, {})):
        with pytest.raises(TrellisworkError, match="expected trials and settings to choose"):
            search(near_a_tenth, space, SearchConfig(trials=trials))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Numbers(2, 1), "expected low below high"),
        (lambda: Numbers(0, 1, log=True), "expected low above 0 where log = true"),
        (lambda: Numbers(1, 2, log=True, step=0.5), "no log with it"),
        (lambda: OneOf(()), "expected values to choose from, got none"),
    ],
)
def test_impossible_ranges_are_one_sentence(make: Any, sentence: str) -> None:
    with pytest.raises(TrellisworkError, match=sentence):
        make()


def test_the_earliest_of_equal_trials_is_the_best() -> None:
    rows = [TrialRow(i, "finished", score, {}) for i, score in enumerate((0.5, 0.7, 0.7))]
    result = SearchResult([*rows, TrialRow(3, "pruned", 0.9, {})])
    assert result.best is rows[1] and [row.number for row in result.ranked] == [1, 2, 0]
    assert SearchResult().best is None
