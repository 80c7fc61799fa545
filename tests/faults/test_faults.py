"""Every command, killed, out of space, without permission and twice at once: a few times each; `make trust` many times.

TRELLISWORK_KILLS=100 kills as often as that does.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from tests.faults.checking import Trial, all_faults, kill_at_steps
from tests.faults.scenarios import OLD, SCENARIOS, Scenario
from tests.faults.teaching import killed_lessons

KILLS = int(os.environ.get("TRELLISWORK_KILLS", "2"))


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that other users may look into, as tmp_path is not."""
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_the_old_result_or_the_new_one(scenario: Scenario, folder: Path) -> None:
    trial = Trial.of(scenario, folder / "trial")
    all_faults(trial, KILLS, Random(0))
    assert trial.failures == []
    assert sum(trial.outcomes.values()) >= 2 * KILLS


def test_decisions_of_a_teacher_are_kept(tmp_path: Path) -> None:
    found = killed_lessons(tmp_path / "teach", 3 * KILLS, Random(0))
    assert found["decisions kept"] > 0


def test_a_command_that_writes_in_place_is_found(folder: Path) -> None:
    """The harness can fail: here is a command that truncates its result before it writes the new one."""

    def careless(place: Path) -> int:
        path = place / "old.conll"
        path.write_text("")
        os.fsync(os.open(path, os.O_RDONLY))
        path.write_text(OLD.upper())
        os.fsync(os.open(path, os.O_RDONLY))
        return 0

    def prepare(place: Path) -> None:
        place.mkdir(parents=True)
        (place / "old.conll").write_text(OLD)

    scenario = Scenario("careless", prepare, careless, lambda place: (place / "old.conll").read_text(), careless)
    trial = Trial.of(scenario, folder / "careless")
    kill_at_steps(trial, 10, Random(0))
    assert [each for each in trial.failures if "neither the old result nor the new one" in each]
    careful = Trial.of(replace(scenario, work=_careful, again=_careful), folder / "careful")
    kill_at_steps(careful, 10, Random(0))
    assert careful.failures == []


def _careful(place: Path) -> int:
    (place / "part").write_text(OLD.upper())
    os.replace(place / "part", place / "old.conll")
    return 0
