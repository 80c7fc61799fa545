"""The speed table of README.md, from docs/results/bench-*.json: `python -m benchmarks.summary`."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.report import OURS, RESULTS, Row, table

README = Path(__file__).parent.parent / "README.md"
BEGIN, END = "<!-- speed -->\n", "<!-- end of speed -->\n"
ORDER = ("chain", "segments", "constituency", "dependency", "ctc", "edit", "automata", "beam", "features", "tagging",
         "neural")  # fmt: skip


def lines(name: str) -> list[list[str]]:
    """The first contest of each task of a benchmark: size, our milliseconds, how many times as long the peers take."""
    found = json.loads((RESULTS / f"bench-{name}.json").read_text())
    rows = [row for row in found if "task" in row and not row.get("other_unit")]
    first = {row["task"]: row for row in reversed(rows) if len(row["ratios"]) > 1}
    link = f"[{name}](docs/results/bench-{name}.md)"
    tasks = dict.fromkeys(row["task"] for row in rows if row["task"] in first)
    return [[link, task, first[task]["size"], _ours(first[task]), _peers(first[task])] for task in tasks]


def _ours(row: Row) -> str:
    milliseconds = row["ms"][f"{OURS}@1"]
    return f"{milliseconds:.0f}" if milliseconds >= 10 else f"{milliseconds:.2g}"


def _peers(row: Row) -> str:
    peers = {key: ratio for key, ratio in row["ratios"].items() if key.endswith("@1") and OURS not in key}
    shown = (f"{key.removesuffix('@1')} {ratio:,.0f}x" if ratio >= 10 else f"{key.removesuffix('@1')} {ratio:.1f}x"
             for key, ratio in peers.items())  # fmt: skip
    return ", ".join(shown)


def main() -> None:
    found = [line for name in ORDER if (RESULTS / f"bench-{name}.json").exists() for line in lines(name)]
    head = ["", "task", "size", "ours, ms", "peers: times as long"]
    text = README.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    README.write_text(before + BEGIN + "\n" + "\n".join(table(head, found)) + "\n\n" + END + after)


if __name__ == "__main__":
    main()
