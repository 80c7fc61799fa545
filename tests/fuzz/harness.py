"""One harness for all readers: a mutated input gives a right kind of answer or a sentence, soon and in little memory.

`python -m tests.fuzz.harness --inputs 200000` is the full form; `--keep` writes what fails to `regressions/`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.mutations import mutated
from tests.soon import soon
from trelliswork.errors import TrellisworkError

HERE = Path(__file__).parent
REGRESSIONS = HERE / "regressions"
SECONDS = 20.0  # for one input, on a busy machine
MEMORY = 2 << 30  # bytes that one input may take beside what the process has
LONGEST_SENTENCE = 2500  # characters, beside what it quotes


@dataclass(frozen=True)
class Target:
    """Something that reads: valid inputs, a way to change them, and what is asked of each.

    `ask` returns if the answer is of the right kind, and raises AssertionError if it is garbage; `sentences` are the
    errors that it may raise.
    """

    name: str
    seeds: tuple[bytes, ...]
    ask: Callable[[bytes], Any]
    change: Callable[[bytes, Random, Sequence[bytes]], bytes] = mutated
    sentences: tuple[type[Exception], ...] = (TrellisworkError,)


@dataclass
class Found:
    """What came of the inputs of a run."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)  # target, "answer" or "sentence"
    failures: list[dict[str, Any]] = field(default_factory=list)

    @property
    def n_inputs(self) -> int:
        return self.outcomes.total() + len(self.failures)

    def to_dict(self) -> dict[str, Any]:
        rows: dict[str, dict[str, int]] = {}
        for (name, outcome), n in sorted(self.outcomes.items()):
            rows.setdefault(name, {"answer": 0, "sentence": 0})[outcome] = n
        return {"inputs": self.n_inputs, "targets": rows, "failures": self.failures}


@contextmanager
def little_memory(most: int = MEMORY) -> Iterator[None]:
    """Inside, an allocation of more than `most` bytes beyond what there is fails."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def outcome_of(target: Target, content: bytes) -> str:
    """ "answer" or "sentence"; whatever else happens is raised."""
    try:
        with soon(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.ask(content)
    except target.sentences as error:
        _check_sentence(type(error).__name__, str(error), len(content) + LONGEST_SENTENCE)
        return "sentence"
    return "answer"


def _check_sentence(kind: str, text: str, most: int) -> None:
    assert text.strip(), f"{kind} without a sentence"
    assert len(text) <= most, f"{kind} of {len(text)} characters"
    assert "Traceback" not in text, f"{kind} with a traceback"


def fuzz(targets: Sequence[Target], n_inputs: int, seed: int = 0, found: Found | None = None) -> Found:
    """Ask all targets in turn, each of its own mutations, which depend on the seed and its name alone."""
    found = found or Found()
    others = [each.seeds[0] for each in targets]
    sources = {each.name: Random(f"{seed} {each.name}") for each in targets}
    with little_memory():
        for i in range(n_inputs):
            target = targets[i % len(targets)]
            source = sources[target.name]
            content = target.change(source.choice(target.seeds), source, others)
            try:
                found.outcomes[target.name, outcome_of(target, content)] += 1
            except Exception as error:
                found.failures.append({"target": target.name, "problem": _shown(error), "content": content})
    return found


def _shown(error: Exception) -> str:
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = "" if place is None else f" ({Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno})"
    return f"{type(error).__name__}: {str(error)[:300]}{where}"


def regressions(targets: Mapping[str, Target]) -> list[tuple[Target, Path]]:
    """The inputs that once failed."""
    return [(targets[path.parent.name], path) for path in sorted(REGRESSIONS.glob("*/*"))]


def keep(failures: Sequence[Mapping[str, Any]], folder: Path = REGRESSIONS) -> list[Path]:
    """Write the shortest input of each problem."""
    shortest: dict[tuple[str, str], bytes] = {}
    for each in failures:
        key = each["target"], each["problem"].split("(")[-1]
        if key not in shortest or len(each["content"]) < len(shortest[key]):
            shortest[key] = each["content"]
    paths = []
    for (name, _), content in shortest.items():
        path = folder / name / hashlib.sha256(content).hexdigest()[:12]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        paths.append(path)
    return paths


def main() -> int:
    from tests.fuzz.targets import all_targets  # after the arguments: it makes models

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--out", type=Path, default=Path("runs/trust/fuzz.json"))
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    targets = [each for each in all_targets() if not args.only or each.name.startswith(tuple(args.only))]
    found, part = Found(), 20 * len(targets)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    begin = time.process_time()
    for turn in range(-(-args.inputs // part)):
        fuzz(targets, part, f"{args.seed}.{turn}", found)  # type: ignore[arg-type]
        report = {**found.to_dict(), "seed": args.seed, "seconds": round(time.process_time() - begin)}
        report["failures"] = [{**each, "content": repr(each["content"][:500])} for each in found.failures]
        args.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        if turn % 10 == 0:
            print(f"{found.n_inputs:,} inputs, {len(found.failures)} failed", file=sys.stderr, flush=True)
    if args.keep:
        keep(found.failures)
    problems = Counter((each["target"], each["problem"]) for each in found.failures)
    for (name, problem), n in problems.most_common():
        print(f"{n:5} {name}: {problem}")
    print(f"{found.n_inputs:,} inputs, {len(found.failures)} failed, {report['seconds']} s of processor time")
    return 1 if found.failures else 0


if __name__ == "__main__":
    sys.exit(main())
