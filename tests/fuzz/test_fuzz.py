"""Mutated inputs for every reader: a right kind of answer or a sentence; thousands here, many more by `make trust`."""

from __future__ import annotations

import os
import time
from pathlib import Path
from random import Random

import pytest
from numba.core import event

from tests.fuzz.harness import MEMORY, Target, fuzz, keep, outcome_of, regressions
from tests.fuzz.mutations import mutated
from tests.fuzz.targets import all_targets
from trelliswork.errors import DataError
from trelliswork.models.catalogue import own_homes

INPUTS = int(os.environ.get("TRELLISWORK_FUZZ_INPUTS", "5200"))


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Target]:
    return {each.name: each for each in all_targets(tmp_path_factory.mktemp("fuzz"))}


def test_every_kind_of_model_is_fuzzed(targets: dict[str, Target]) -> None:
    made = {name.removeprefix("model-").partition("-")[0] for name in targets if name.startswith("model-")}
    assert made == {kind for kind, place in own_homes().items() if place.startswith("trelliswork.")}


def test_valid_inputs_are_answered(targets: dict[str, Target]) -> None:
    for target in targets.values():
        assert target.seeds, target.name
        for content in target.seeds:
            assert outcome_of(target, content) == "answer", target.name


def test_inputs_that_once_failed(targets: dict[str, Target]) -> None:
    for target, path in regressions(targets):
        try:
            outcome_of(target, path.read_bytes())
        except Exception as error:
            error.add_note(f"{path}")
            raise


def test_mutated_inputs(targets: dict[str, Target], tmp_path: Path) -> None:
    found = fuzz(list(targets.values()), INPUTS)
    kept = keep(found.failures, tmp_path)
    assert not found.failures, (
        "\n".join(f"{each['target']}: {each['problem']}" for each in found.failures) + f"\n{kept}"
    )
    outcomes = found.to_dict()["targets"]
    assert found.n_inputs == INPUTS and set(outcomes) == set(targets)
    assert all(row["sentence"] for row in outcomes.values()), "mutations that nobody refuses are too mild"


# The harness can fail


def careless(content: bytes) -> float:
    """A reader of `name=number` lines that trusts its input."""
    return sum(float(line.split(b"=")[1]) for line in content.splitlines() if line)


def careful(content: bytes) -> float:
    try:
        return careless(content)
    except (ValueError, IndexError) as error:
        raise DataError("numbers", "expected name=number on each line, got something else") from error


def greedy(content: bytes) -> int:
    return len(bytearray(10 * MEMORY))


def endless(content: bytes) -> None:
    while True:
        pass


SEED = (b"a=1\nb=2.5\n",)


def test_a_reader_that_raises_something_else_is_found(tmp_path: Path) -> None:
    found = fuzz([Target("careless", SEED, careless)], 200)
    assert {each["problem"].partition(":")[0] for each in found.failures} >= {"ValueError", "IndexError"}
    paths = keep(found.failures, tmp_path)
    assert paths and all(path.read_bytes() for path in paths)
    assert fuzz([Target("careful", SEED, careful)], 200).failures == []


def test_a_reader_that_takes_memory_or_time_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    found = fuzz([Target("greedy", SEED, greedy)], 1)
    assert found.failures[0]["problem"].startswith("MemoryError")
    monkeypatch.setattr("tests.fuzz.harness.SECONDS", 0.3)
    with pytest.raises(AssertionError, match="not done"):
        outcome_of(Target("endless", SEED, endless), b"")


def test_the_time_of_compiling_a_kernel_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def compiling(content: bytes) -> None:
        with event.trigger_event("numba:compile"), event.trigger_event("numba:compile"):
            time.sleep(0.5)
        if content == b"endless":
            endless(content)

    monkeypatch.setattr("tests.fuzz.harness.SECONDS", 0.3)
    assert outcome_of(Target("compiling", SEED, compiling), b"") == "answer"
    with pytest.raises(AssertionError, match="not done"):
        outcome_of(Target("compiling", SEED, compiling), b"endless")


def test_a_wrong_kind_of_answer_is_found() -> None:
    def garbage(content: bytes) -> None:
        assert careful(content) == 3.5, "not a number"

    found = fuzz([Target("garbage", SEED, garbage)], 100)
    assert any(each["problem"].startswith("AssertionError: not a number") for each in found.failures)


def test_mutations_depend_on_the_seed_alone() -> None:
    first, second = ([mutated(SEED[0], Random(seed), SEED) for seed in range(50)] for _ in range(2))
    assert first == second and len(set(first)) > 30
