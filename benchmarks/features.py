"""Speed of the feature CRF against CRFsuite: `make bench` or `python -m benchmarks.features [--quick]`.

Both get the attributes of CRFsuite's chunking tutorial on CoNLL-2000 (../shared/data/conll2000), and so the same
weights and the same objective. Whole jobs, from a file to a model and from a file to a tagged file, run in processes of
their own (`feature_jobs`).
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from benchmarks.feature_jobs import DATA, JOINED, SINGLE, run, template
from benchmarks.report import OURS, Contest, Figures, main
from benchmarks.timing import Candidate
from trelliswork.data import Choices, Sentence, open_conll
from trelliswork.data.attributes import AttributeRows, KeyIndex, Templates
from trelliswork.data.attributes.key_index import keys_of
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.encoding import columns_of
from trelliswork.models.taggers.features.learners.likelihood import Likelihood
from trelliswork.training.lbfgs import LBFGS

PEER = "CRFsuite"
ITERATIONS = 12
L1_ITERATIONS = 25  # of CRFsuite's 613, which take minutes
L1_SECONDS = 498.0
Found = dict[str, Any]
NOTE = """
`make bench`: the 8,936 training sentences of CoNLL-2000 with the attributes of CRFsuite's chunking
tutorial. One evaluation of loss and gradient has the tutorial's marks of the first and the last token too (452,755
weights on both sides); CRFsuite is timed by the log of its L-BFGS iterations. Jobs read a file, make the attributes,
learn and write a model; each is a process of its own, and CRFsuite's attributes are made in Python, as its users make
them.
CRFsuite's memory is given twice: with dicts in a list, as sklearn-crfsuite takes them, and with names that are handed
over sentence by sentence. Both sides stop by the same rule (a loss that falls by less than 1e-5 over ten iterations).
CRFsuite's L1 run of 613 iterations is not repeated: 498 s and 9,640 weights were measured before.
"""


def template_keys(sentences: list[Sentence]) -> tuple[Any, Any, Any]:
    """Lengths, attributes a token, and their keys, with those for the first and the last token."""
    templates = Templates.parse([template(name) for name in (*SINGLE, *JOINED)], skip_outside=True)
    lengths, columns = columns_of(sentences)
    keys, present = templates.keys(lengths, columns)
    ends = np.cumsum(lengths)
    first_last = np.zeros((len(present), 2), np.bool_)
    first_last[ends - lengths, 0] = first_last[ends - 1, 1] = True
    marks = np.broadcast_to(keys_of(["__BOS__", "__EOS__"]), first_last.shape)
    keys, present = np.concatenate([keys, marks], 1), np.concatenate([present, first_last], 1)
    return lengths, present.sum(1), keys[present]


def attributes(sentences: list[Sentence]) -> tuple[AttributeRows, int]:
    """All attributes of the corpus, and how many there are."""
    lengths, counts, keys = template_keys(sentences)
    index = KeyIndex()
    return AttributeRows(lengths, np.concatenate([[0], np.cumsum(counts)]), index.add(keys)), len(index)


def likelihoods(sentences: list[Sentence]) -> list[Likelihood]:
    """The same for one thread and for two."""
    rows, n_attributes = attributes(sentences)
    tags = [tag for sentence in sentences for tag in sentence.tags or ()]
    labels = {tag: i for i, tag in enumerate(dict.fromkeys(tags))}
    gold = np.array([labels[tag] for tag in tags])
    parameters = Parameters.of(rows, gold, n_attributes, len(labels))
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(Likelihood(rows, gold, parameters))
    torch.set_num_threads(1)
    return found


def evaluations(crfsuite: Found) -> Iterator[Contest | Figures]:
    """One evaluation of loss and gradient."""
    sentences = list(open_conll(DATA / "train.txt", Choices(feature_columns=(2,)))[1])
    one, two = likelihoods(sentences)
    weights = np.zeros(len(one.parameters))
    for step in LBFGS(l2=1.0, max_iterations=ITERATIONS).minimise(one, weights):
        weights = step.weights
    told = {PEER: 1000 * crfsuite["learning"] / crfsuite["evaluations"]}
    task, size = "loss + gradient, ms", f"{len(weights):,} weights"
    yield Contest(task, f"{size}, one thread", [Candidate(OURS, lambda: one(weights))], {PEER: 2.0}, told)
    yield Figures(task, f"{size}, two threads", {OURS: _fastest(lambda: two(weights)), **told}, {PEER: 3.5})


def _fastest(call: Callable[[], object], times: int = 15) -> float:
    """Milliseconds of the median call with two threads."""
    torch.set_num_threads(2)
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    torch.set_num_threads(1)
    return 1000 * float(np.median(seconds))


def learning(folder: str, limit: Found) -> Iterator[Figures]:
    """From a file to a saved model."""
    task = "from a file to a saved model, s"
    peer = run("train", "crfsuite", c2=1.0, out=f"{folder}/crfsuite-l2", **limit)
    ours = run("train", "ours", c2=1.0, out=f"{folder}/ours-l2", **limit)
    two = run("train", "ours", c2=1.0, threads=2, **limit)
    yield _seconds(task, "L2, one thread", ours, peer)
    yield _seconds(task, "L2, two threads", two, peer, 4.0)
    yield Figures("final loss", "L2", {OURS: ours["loss"], PEER: peer["loss"]}, {PEER: 0.9999})
    yield Figures("iterations", "L2", {OURS: ours["iterations"], PEER: peer["iterations"]})
    dicts = run("memory", "crfsuite", c2=1.0, max_iterations=2)
    yield Figures("peak memory, MB", "L2, from dicts in a list", {OURS: ours["peak"], PEER: dicts["peak"]}, {PEER: 2.0})
    yield Figures("peak memory, MB", "L2, sentence by sentence", {OURS: ours["peak"], PEER: peer["peak"]})
    yield Figures("size of the model, MB", "L2", {OURS: ours["bytes"] / 1e6, PEER: peer["bytes"] / 1e6})
    peer = run("train", "crfsuite", algorithm="ap", max_iterations=50 if not limit else 5)
    ours = run("train", "ours", algorithm="perceptron", max_iterations=50 if not limit else 5)
    yield _seconds(task, "averaged perceptron, 50 epochs", ours, peer)


def sparse_learning(folder: str, limit: Found) -> Iterator[Figures]:
    """The same with L1 alone."""
    task, some = "from a file to a saved model, s", limit or {"max_iterations": L1_ITERATIONS}
    peer = run("train", "crfsuite", c1=1.0, c2=0.0, **some)
    yield _seconds(task, f"L1, {some['max_iterations']} iterations", run("train", "ours", c1=1.0, c2=0.0, **some), peer)
    ours = run("train", "ours", c1=1.0, c2=0.0, out=f"{folder}/ours-l1", **limit)
    yield Figures(task, f"L1, {ours['iterations']} iterations against 613", {OURS: ours["seconds"], PEER: L1_SECONDS})
    yield Figures("weights that are not 0", "L1", {OURS: ours["active"], PEER: 9640}, {PEER: 1 / 1.1})
    yield Figures("size of the model, MB", "L1, ours only", {OURS: ours["bytes"] / 1e6})


def _pair(ours: Found, peer: Found, name: str, scale: float = 1.0) -> dict[str, float]:
    return {OURS: scale * ours[name], PEER: scale * peer[name]}


def _seconds(task: str, size: str, ours: Found, peer: Found, target: float | None = None) -> Figures:
    return Figures(task, size, _pair(ours, peer, "seconds"), {} if target is None else {PEER: target})


def contests() -> Iterator[Contest | Figures]:
    if not DATA.exists():
        print(f"{DATA} is not there: nothing to measure")
        return
    limit: Found = {"max_iterations": 5} if "--quick" in sys.argv else {}
    yield from evaluations(run("train", "crfsuite", c2=1.0, max_iterations=ITERATIONS))
    with tempfile.TemporaryDirectory() as folder:
        yield from learning(folder, limit)
        yield from sparse_learning(folder, limit)


if __name__ == "__main__":
    main("features", "Speed of the feature CRF", NOTE, contests)
