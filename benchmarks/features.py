"""Speed of the feature CRF against CRFsuite: `make bench` or `python -m benchmarks.features [--quick]`.

Both get the attributes of CRFsuite's chunking tutorial on CoNLL-2000 (../shared/data/conll2000), and so the
same weights and the same objective. CRFsuite's iterations are timed from its own log.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import OURS, Contest, main
from benchmarks.timing import Candidate
from trelliswork.data import Choices, Sentence, open_conll
from trelliswork.data.attributes import AttributeRows, KeyIndex, Templates
from trelliswork.data.attributes.key_index import keys_of
from trelliswork.models.feature_crf.objective import Likelihood
from trelliswork.models.feature_crf.parameters import Parameters
from trelliswork.models.feature_tagger import columns_of
from trelliswork.training.lbfgs import LBFGS

DATA = Path(__file__).parents[2] / "shared" / "data" / "conll2000"
SINGLE = ["w[-2]", "w[-1]", "w[0]", "w[1]", "w[2]", "pos[-2]", "pos[-1]", "pos[0]", "pos[1]", "pos[2]"]
JOINED = [
    "w[-1]|w[0]", "w[0]|w[1]", "pos[-2]|pos[-1]", "pos[-1]|pos[0]", "pos[0]|pos[1]", "pos[1]|pos[2]",
    "pos[-2]|pos[-1]|pos[0]", "pos[-1]|pos[0]|pos[1]", "pos[0]|pos[1]|pos[2]",
]  # fmt: skip
ITERATIONS = 12
NOTE = """
`make bench`: milliseconds of one evaluation of loss and gradient over the 8,936 training sentences of CoNLL-2000, with
the attributes of CRFsuite's chunking tutorial: 452,755 weights on both sides. CRFsuite is timed by its L-BFGS
iterations.
"""


def template(name: str) -> str:
    """U:w[-1]|w[0]=... as a template of ours."""
    holes = name.replace("pos[", "%x[").replace("w[", "%x[").split("|")
    columns = [1 if part.startswith("pos") else 0 for part in name.split("|")]
    return f"U{name}=" + "|".join(hole.replace("]", f",{c}]") for hole, c in zip(holes, columns, strict=True))


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


def likelihood(sentences: list[Sentence]) -> Likelihood:
    rows, n_attributes = attributes(sentences)
    tags = [tag for sentence in sentences for tag in sentence.tags or ()]
    labels = {tag: i for i, tag in enumerate(dict.fromkeys(tags))}
    gold = np.array([labels[tag] for tag in tags])
    return Likelihood(rows, gold, Parameters.of(rows, gold, n_attributes, len(labels)))


def crfsuite_milliseconds(sentences: list[Sentence]) -> float:
    """Milliseconds of one of CRFsuite's evaluations, from the seconds of its iterations."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    trainer.set_params({"c2": 1.0, "max_iterations": ITERATIONS})
    for sentence in sentences:
        trainer.append(_items(sentence), list(sentence.tags or ()))
    with tempfile.TemporaryDirectory() as folder:
        trainer.train(f"{folder}/model")
    log: list[dict[str, Any]] = trainer.logparser.iterations
    return 1000 * sum(each["time"] for each in log) / sum(max(each["linesearch_trials"], 1) for each in log)


def _items(sentence: Sentence) -> list[list[str]]:
    columns = {"w": sentence.words, "pos": sentence.features[0]}
    out = []
    for t in range(len(sentence)):
        names = []
        for name in (*SINGLE, *JOINED):
            values = []
            for part in name.split("|"):
                column, _, shift = part[:-1].partition("[")
                at = t + int(shift)
                values.append(columns[column][at] if 0 <= at < len(sentence) else None)
            if None not in values:
                names.append(f"{name}={'|'.join(map(str, values))}")
        names += ["__BOS__"] * (t == 0) + ["__EOS__"] * (t == len(sentence) - 1)
        out.append(names)
    return out


def contests() -> Iterator[Contest]:
    if not DATA.exists():
        print(f"{DATA} is not there: nothing to measure")
        return
    sentences = list(open_conll(DATA / "train.txt", Choices(feature_columns=(2,)))[1])
    ours = likelihood(sentences)
    weights = np.zeros(len(ours.parameters))
    for step in LBFGS(l2=1.0, max_iterations=ITERATIONS).minimise(ours, weights):
        weights = step.weights

    told = {"CRFsuite": crfsuite_milliseconds(sentences)}
    one = Candidate(OURS, lambda: ours(weights))
    yield Contest("loss + gradient", f"{len(weights):,} weights", [one], {"CRFsuite": 2.0}, told)


if __name__ == "__main__":
    main("features", "Speed of the feature CRF", NOTE, contests)
