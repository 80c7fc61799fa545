"""Faults one after another: after each, the old result or the new one, whole; and what one does next succeeds.

`python -m tests.faults.checking --kills 100` is the full form.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from signal import SIGKILL, SIGTERM
from typing import Any

from tests.faults import killing
from tests.faults.scenarios import SCENARIOS, Scenario, fresh
from tests.faults.teaching import killed_lessons


@dataclass
class Trial:
    """A scenario with its folders: what was there before, and what a user has before and after it."""

    scenario: Scenario
    folder: Path
    old: Hashable = None
    new: Hashable = None
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, scenario: Scenario, folder: Path) -> Trial:
        """Prepared, and run once undisturbed."""
        trial = cls(scenario, folder)
        scenario.prepare(trial.before)
        trial.old = scenario.result(trial.before)
        place, begin = trial.fresh(), time.monotonic()
        status = killing.ended(killing.forked(lambda: scenario.work(place), trial.said))
        assert status == 0, trial.said.read_text()
        trial.seconds = time.monotonic() - begin
        trial.new = scenario.result(place)
        assert trial.new != trial.old, "the old result cannot be told from the new one"
        return trial

    @property
    def before(self) -> Path:
        return self.folder / "before"

    @property
    def said(self) -> Path:
        return self.folder / "said"

    def fresh(self) -> Path:
        return fresh(self.scenario, self.before, self.folder / "place")

    def judge(self, what: str, place: Path, *, finish: bool = True) -> None:
        """After a fault: the old result or the new one; then the command again gives the new one."""
        try:
            found = self.scenario.result(place)
            assert found in (self.old, self.new), "neither the old result nor the new one"
            self.outcomes[f"{what}: {'new' if found == self.new else 'old'}"] += 1
            assert "Traceback" not in self.said.read_text(), self.said.read_text()[-2000:]
            if finish:
                again = killing.ended(killing.forked(lambda: self.scenario.again(place), self.said))
                assert again == 0, f"the command again: status {again}: {self.said.read_text()[-1000:]}"
                assert self.scenario.result(place) == self.new, "another result than that of an undisturbed run"
        except Exception as error:
            self.failures.append(f"{self.scenario.name}, {what}: {type(error).__name__}: {error}")


def kill_at_moments(trial: Trial, n: int, source: Random, with_signal: int = SIGKILL) -> None:
    """At random moments, some of them after the end."""
    what = "kill -9 at a moment" if with_signal == SIGKILL else "SIGTERM at a moment"
    for _ in range(n):
        place, moment = trial.fresh(), source.uniform(0, 1.1 * trial.seconds)
        killing.killed_after(partial(trial.scenario.work, place), moment, trial.said, with_signal)
        trial.judge(what, place)


def kill_at_steps(trial: Trial, most: int, source: Random) -> None:
    """Before changes to the file system: all of them, or a sample."""
    place = trial.fresh()
    steps = list(range(killing.n_steps(partial(trial.scenario.work, place), trial.said)))
    for n in steps if len(steps) <= most else sorted(source.sample(steps, most)):
        place = trial.fresh()
        killing.killed_before_step(partial(trial.scenario.work, place), n, trial.said)
        trial.judge("kill -9 before a change of files", place)


def full_disk(trial: Trial, sizes: tuple[int, ...]) -> None:
    """No file may grow beyond a size: a sentence and the old result, or the new one if all files are small."""
    for most in sizes:
        place = trial.fresh()
        status = killing.with_small_files(partial(trial.scenario.work, place), most)
        what = "full disk"
        if status not in (0, 2):
            trial.failures.append(f"{trial.scenario.name}, {what} at {most} bytes: status {status}")
        trial.judge(what, place)


def small_disk(trial: Trial, rooms: tuple[int, ...]) -> None:
    """On a disk with little room: a sentence and the old result, or the new one; when there is room, the new one."""
    for room in rooms:
        place = trial.folder / "place"
        with killing.small_disk(place, trial.before, room) as make_room:
            if make_room is None:
                trial.outcomes["tmpfs of little room: not tried, nothing may be mounted here"] += 1
                return
            status = killing.ended(killing.forked(partial(trial.scenario.work, place), trial.said))
            if status not in (0, 2):
                said = trial.said.read_text()[-500:]
                trial.failures.append(f"{trial.scenario.name}, tmpfs with {room} bytes left: status {status}: {said}")
            trial.judge("tmpfs of little room", place, finish=False)
            make_room()
            trial.judge("room was made", place)


def clock_jumps(trial: Trial) -> None:
    """The clock goes back by days at each look, and the files are from the future."""
    place = trial.fresh()
    for path in place.rglob("*"):
        os.utime(path, (4e9, 4e9))

    def work() -> int:
        own, looks = time.time, [0]

        def jumping() -> float:
            looks[0] += 1
            return own() + (86_400.0 if looks[0] % 2 else -86_400.0)

        time.time = jumping
        return trial.scenario.work(place)

    status = killing.ended(killing.forked(work, trial.said))
    if status != 0:
        trial.failures.append(f"{trial.scenario.name}, clock jumps: status {status}: {trial.said.read_text()[-500:]}")
    trial.judge("clock jumps", place, finish=False)


def two_at_once(trial: Trial) -> None:
    """Two runs on one folder: each ends with its result or a sentence, and the folder is whole."""
    place = trial.fresh()
    other = trial.folder / "said-other"
    pids = [killing.forked(partial(trial.scenario.work, place), said) for said in (trial.said, other)]
    statuses = [killing.ended(pid) for pid in pids]
    if not (set(statuses) <= {0, 2} and 0 in statuses):
        trial.failures.append(f"{trial.scenario.name}, two at once: {statuses}: {other.read_text()[-500:]}")
    trial.judge("two at once", place, finish=False)


def read_only(trial: Trial) -> None:
    """Folders that cannot be written, by a user who is not root, and caches of kernels that cannot either."""
    if os.getuid() != 0:
        return
    place = trial.fresh()
    for path in (place, *place.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    trial.said.touch()
    trial.said.chmod(0o666)
    status = killing.as_nobody(partial(trial.scenario.work, place), trial.said)
    if status != 2:
        trial.failures.append(f"{trial.scenario.name}, read-only: status {status}: {trial.said.read_text()[-500:]}")
    trial.judge("read-only folder", place, finish=False)
    for path in (place, *place.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def all_faults(trial: Trial, kills: int, source: Random) -> None:
    kill_at_moments(trial, kills, source)
    kill_at_steps(trial, kills, source)
    kill_at_moments(trial, max(1, kills // 5), source, SIGTERM)
    full_disk(trial, (0, 300, 2000) if kills < 20 else (0, 1, 100, 300, 1000, 2000, 4000, 8000))
    small_disk(trial, (0, 8000) if kills < 20 else (0, 4000, 8000, 16_000, 64_000, 256_000))
    read_only(trial)
    two_at_once(trial)
    clock_jumps(trial)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--out", type=Path, default=Path("runs/trust/faults.json"))
    args = parser.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    report: dict[str, Any] = {"kills": args.kills, "seed": args.seed, "scenarios": {}, "failures": []}
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    folder.chmod(0o755)
    try:
        for scenario in SCENARIOS:
            if args.only and scenario.name not in args.only:
                continue
            trial = Trial.of(scenario, folder / scenario.name.replace(", ", "-"))
            all_faults(trial, args.kills, Random(f"{args.seed} {scenario.name}"))
            report["scenarios"][scenario.name] = dict(sorted(trial.outcomes.items()))
            report["failures"] += trial.failures
            args.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
            print(scenario.name, dict(trial.outcomes), len(trial.failures), "failed", file=sys.stderr, flush=True)
        if not args.only or "teach" in args.only:
            report["scenarios"]["teach"] = killed_lessons(folder / "teach", args.kills, Random(args.seed))
            args.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(report["failures"]))
    return 1 if report["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
