"""Tables of stored results in other documents: the tutorial on choosing a model, and README.md."""

from __future__ import annotations

from pathlib import Path

from benchmarks.accuracy.measure import ROOT, Result
from benchmarks.accuracy.page import entity_score, letter_errors, of, score
from benchmarks.accuracy.runs import ENTITIES, FEATURES, NETWORKS, PARTS_OF_SPEECH, WNUT17
from benchmarks.report import RESULTS, table

DEFAULT_CRF = [run for run in FEATURES if run.name == "crf-default"]


def tutorial_table(results: list[Result]) -> list[str]:
    """The first result of each model of CoNLL-2000 that is worth comparing."""
    rows = []
    for run in (*DEFAULT_CRF, *NETWORKS):
        for found in of(run, results)[:1]:
            size = [f"{found['seconds']:.0f} s", f"{found['weights']:,}", f"{found['megabytes']:.0f} MB"]
            rows.append([run.title, f"{score(run, found):.2f}", *size])
    return table(["model", "test F1", "CPU time", "parameters", "size"], rows)


def readme_table(results: list[Result]) -> list[str]:
    """What each model reaches on each corpus, in a line."""
    rows = []
    for run in (*DEFAULT_CRF, *NETWORKS, *PARTS_OF_SPEECH, *ENTITIES):
        found = of(run, results)
        if found:
            scores = ", ".join(f"{score(run, each):.2f}" for each in found)
            rows.append([run.corpus.title, run.title, run.corpus.score, scores])
    recipe = entity_score(RESULTS)
    if recipe is not None:
        rows.append([WNUT17.title, f"BiLSTM-CRF + GloVe, {recipe[0]}", WNUT17.score, f"{recipe[1]:.2f}"])
    for name, errors in letter_errors(RESULTS).items():
        rows.append(["handwritten letters, ten folds", name, "error", f"{sum(errors) / len(errors):.2f}"])
    return table(["corpus", "model", "score, per cent", "test"], rows)


QUOTES = {
    ROOT / "docs" / "tutorials" / "choosing.md": ("figures of results/accuracy.md", "end of figures", tutorial_table),
    ROOT / "README.md": ("accuracy", "end of accuracy", readme_table),
}


def quoted(path: Path, results: list[Result]) -> str:
    """A document with its table as it should be."""
    begin, end, rows = QUOTES[path]
    begin, end = f"<!-- {begin} -->", f"<!-- {end} -->"
    before, _, rest = path.read_text(encoding="utf-8").partition(begin)
    return "\n".join([before + begin, "", *rows(results), "", end + rest.partition(end)[2]])
