"""The speed table of README.md, from docs/results/bench-*.json: `python -m benchmarks.summary`."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.report import OURS, RESULTS, table

README = Path(__file__).parent.parent / "README.md"
BEGIN, END = "<!-- speed -->\n", "<!-- end of speed -->\n"
ORDER = ("chain", "segments", "constituency", "dependency", "ctc", "automata", "beam", "features")


def lines(name: str) -> list[list[str]]:
    """One line for each contest of a benchmark: task, size, our milliseconds, how many times as long the peers take."""
    rows = [row for row in json.loads((RESULTS / f"bench-{name}.json").read_text()) if "task" in row]
    out = []
    for row in rows:
        peers = {
            key.removesuffix("@1"): x for key, x in row["ratios"].items() if key.endswith("@1") and OURS not in key
        }
        shown = ", ".join(f"{peer} {ratio:.3g}x" for peer, ratio in peers.items())
        out.append(
            [
                f"[{name}](docs/results/bench-{name}.md)",
                row["task"],
                row["size"],
                f"{row['ms'][f'{OURS}@1']:.3g}",
                shown,
            ]
        )
    return out


def main() -> None:
    found = [line for name in ORDER if (RESULTS / f"bench-{name}.json").exists() for line in lines(name)]
    head = ["", "task", "size", "ours, ms", "peers: times as long"]
    text = README.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    README.write_text(before + BEGIN + "\n" + "\n".join(table(head, found)) + "\n\n" + END + after)


if __name__ == "__main__":
    main()
