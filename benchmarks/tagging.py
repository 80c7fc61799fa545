"""Speed of tagging a file with a feature CRF against CRFsuite: `python -m benchmarks.tagging [--quick]`.

Both models have the attributes of CRFsuite's chunking tutorial and tag the test file of CoNLL-2000.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

from benchmarks.feature_jobs import DATA, rows_of, run
from benchmarks.report import OURS, Contest, Figures, main
from trelliswork.data import open_conll
from trelliswork.metrics import span_scores

PEER = "CRFsuite"
SIDES = {"ours": OURS, "crfsuite": PEER}
ITERATIONS = 60  # enough for models that are as large and as good as trained ones
NOTE = f"""
`make bench`: load a model, read a file, make its attributes, tag, write a file; each side in a process of its own, on
one thread, CRFsuite's attributes made in Python as dicts, as its users make them. Milliseconds of a pass are those of
the processor, the fastest of five. Both models were trained for {ITERATIONS} iterations on CoNLL-2000 with the
attributes of CRFsuite's chunking tutorial.
"""


def contests() -> Iterator[Contest | Figures]:
    if not DATA.exists():
        print(f"{DATA} is not there: nothing to measure")
        return
    with tempfile.TemporaryDirectory() as folder:
        for side in SIDES:
            run("train", side, c2=1.0, max_iterations=ITERATIONS, out=f"{folder}/{side}-model")
        found = {side: run("tag", side, model=f"{folder}/{side}-model", out=f"{folder}/{side}") for side in SIDES}
        n_tokens = sum(map(len, rows_of(DATA / "test.txt")))
        rates = [f"{n_tokens / found[side]['pass']:,.0f}" for side in SIDES]
        size = f"{n_tokens:,} tokens, {rates[0]} tokens/s against {rates[1]}"
        yield Figures("from a file to a tagged file, ms", size, _both(found, "pass"), {PEER: 5.0})
        yield Figures("loading a model, ms", "L2", _both(found, "loading"))
        yield Figures("chunk F1", "L2", {name: 100 * f1(f"{folder}/{side}") for side, name in SIDES.items()})


def _both(found: dict[str, dict[str, Any]], what: str) -> dict[str, float]:
    return {name: 1000 * found[side][what] for side, name in SIDES.items()}


def f1(path: str) -> float:
    """Of a tagged copy of the test file."""
    gold = [sentence.tags for sentence in open_conll(DATA / "test.txt")[1]]
    found = [sentence.tags for sentence in open_conll(path)[1]]
    return float(span_scores(gold, found, scheme="IOB2").overall.f1)


if __name__ == "__main__":
    main("tagging", "Speed of tagging with features", NOTE, contests)
