"""What was tried and what was found: `python -m tests.trust.report` writes docs/results/trust.md and trust.json.

It reads what the oracle, the fuzz and the faults left in runs/trust.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RUNS, RESULTS = Path("runs/trust"), Path("docs/results")
FOUND = Path(__file__).parent / "found.md"

HEAD = """# Trust

What was tried to make Trelliswork give a wrong number, a traceback, a hang, or half a result, and what came of it.
`make trust` runs all of it and writes this page; `make test` runs a short form of each part.
"""


def oracle_part(found: Mapping[str, Any]) -> str:
    lines = [
        "## Numbers",
        "",
        f"{found['cases']:,} random cases (seed {found['seed']}, `make oracle`, {found['seconds']:,} s of one core), "
        f"**{len(found['failures'])} that failed** (tolerance 1e-10 in float64, 1e-5 in float32).",
        "A case is one query of one random instance in one number format by one backend: every row and every value of "
        "it is compared with enumeration in float64. Differences are relative to the largest number involved.",
    ]
    for kind in ("structure", "query", "dtype", "backend"):
        lines += ["", f"| {kind} | cases | largest difference |", "|---|---:|---:|"]
        for name, row in sorted(found[kind].items(), key=lambda each: -each[1]["cases"]):
            lines.append(f"| {name} | {row['cases']:,} | {row['largest difference']:.1e} |")
    return "\n".join(lines)


def fuzz_part(found: Mapping[str, Any]) -> str:
    lines = [
        "## Fuzz",
        "",
        f"{found['inputs']:,} mutated inputs (seed {found['seed']}, {found['seconds']:,} s of one core), "
        f"**{len(found['failures'])} that gave neither a right kind of answer nor a sentence** within 20 s and 2 GB.",
        "Inputs that failed once are in `tests/fuzz/regressions/`.",
        "",
        "| reader | answered | refused with a sentence |",
        "|---|---:|---:|",
    ]
    lines += [f"| {name} | {row['answer']:,} | {row['sentence']:,} |" for name, row in found["targets"].items()]
    return "\n".join(lines)


def faults_part(found: Mapping[str, Any]) -> str:
    lines = [
        "## Faults",
        "",
        f"Each command with an earlier result in its place (seed {found['seed']}): {found['kills']} kills with -9 at "
        f"random moments, up to {found['kills']} before changes of the file system, SIGTERM, files that cannot grow, "
        "a disk (tmpfs) of little room, a "
        "folder that cannot be written, two runs at once, a clock that jumps. After each there must be the old result "
        f"or the new one, whole, and the command again must give the new one. **{len(found['failures'])} failures.**",
        "",
        "| command | fault: what was there after it | times |",
        "|---|---|---:|",
    ]
    for name, outcomes in found["scenarios"].items():
        lines += [f"| {name} | {outcome} | {n:,} |" for outcome, n in outcomes.items()]
    return "\n".join(lines)


PARTS = {"oracle": oracle_part, "fuzz": fuzz_part, "faults": faults_part}


def main() -> int:
    found = {name: json.loads((RUNS / f"{name}.json").read_text("utf-8")) for name in PARTS}
    page = [HEAD, *(f"{part(found[name])}\n" for name, part in PARTS.items()), FOUND.read_text("utf-8")]
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "trust.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    (RESULTS / "trust.md").write_text("\n".join(page), encoding="utf-8")
    failed = {name: len(each["failures"]) for name, each in found.items()}
    print(f"docs/results/trust.md written; failures: {failed}")
    return 1 if any(failed.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
