"""Tables of stored results in other documents: the tutorial on choosing a model."""

from __future__ import annotations

from pathlib import Path

from benchmarks.accuracy.measure import ROOT, Result
from benchmarks.accuracy.page import of, score
from benchmarks.accuracy.runs import FEATURES, NETWORKS
from benchmarks.report import table

DEFAULT_CRF = [run for run in FEATURES if run.name == "crf-default"]


def tutorial_table(results: list[Result]) -> list[str]:
    """The first result of each model of CoNLL-2000 that is worth comparing."""
    rows = []
    for run in (*DEFAULT_CRF, *NETWORKS):
        for found in of(run, results)[:1]:
            size = [f"{found['seconds']:.0f} s", f"{found['weights']:,}", f"{found['megabytes']:.0f} MB"]
            rows.append([run.title, f"{score(run, found):.2f}", *size])
    return table(["model", "test F1", "CPU time", "parameters", "size"], rows)


QUOTES = {
    ROOT / "docs" / "tutorials" / "choosing.md": ("figures of results/accuracy.md", "end of figures", tutorial_table),
}


def quoted(path: Path, results: list[Result]) -> str:
    """A document with its table as it should be."""
    begin, end, rows = QUOTES[path]
    begin, end = f"<!-- {begin} -->", f"<!-- {end} -->"
    before, _, rest = path.read_text(encoding="utf-8").partition(begin)
    return "\n".join([before + begin, "", *rows(results), "", end + rest.partition(end)[2]])
