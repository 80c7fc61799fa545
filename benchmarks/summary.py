"""The speed table of README.md, from docs/results/bench-*.json: `python -m benchmarks.summary`."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.report import OURS, RESULTS, Row, table

README = Path(__file__).parent.parent / "README.md"
BEGIN, END = "<!-- speed -->\n", "<!-- end of speed -->\n"
SHOWN = (
    ("chain", "loss + gradient"),
    ("chain", "Viterbi"),
    ("segments", "loss + gradient"),
    ("dependency", "Eisner: loss + gradient"),
    ("features", "loss + gradient, ms"),
    ("neural", "BiLSTM-CRF training step"),
)


def line(name: str, task: str) -> list[str]:
    """Return the first contest of a task of a benchmark: size, our milliseconds, how many times as long peers take."""
    rows = json.loads((RESULTS / f"bench-{name}.json").read_text())
    first = next(row for row in rows if row.get("task") == task and len(row["ratios"]) > 1)
    return [f"[{name}](docs/results/bench-{name}.md)", task, first["size"], _ours(first), _peers(first)]


def _ours(row: Row) -> str:
    milliseconds = row["ms"][f"{OURS}@1"]
    return f"{milliseconds:.0f}" if milliseconds >= 10 else f"{milliseconds:.2g}"


def _peers(row: Row) -> str:
    peers = {key: ratio for key, ratio in row["ratios"].items() if key.endswith("@1") and OURS not in key}
    shown = (f"{key.removesuffix('@1')} {ratio:,.0f}x" if ratio >= 10 else f"{key.removesuffix('@1')} {ratio:.1f}x"
             for key, ratio in peers.items())  # fmt: skip
    return ", ".join(shown)


def main() -> None:
    rows = table(["", "task", "size", "ours, ms", "peers: times as long"], [line(*each) for each in SHOWN])
    before, rest = README.read_text().split(BEGIN)
    _, after = rest.split(END)
    README.write_text(before + BEGIN + "\n" + "\n".join(rows) + "\n\n" + END + after)


if __name__ == "__main__":
    main()
