"""Models over features for other programs: CRFsuite's file, and a Python file that needs the standard library alone."""

from __future__ import annotations

import importlib.util
import json
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trelliswork.data import Sentence
from trelliswork.data.attributes import Templates
from trelliswork.data.crfsuite import lookup3, read_crfsuite_model
from trelliswork.errors import ModelError, OutputError
from trelliswork.models.taggers.features.attribute_tagger import AttributeTagger
from trelliswork.models.taggers.features.crf_tagger import CRFTagger
from trelliswork.models.taggers.features.export import export_crfsuite, export_python
from trelliswork.models.taggers.features.learners.config import LearningConfig
from trelliswork.models.taggers.features.tagger import FeatureTagger

QUICK = LearningConfig(max_iterations=15)
FREE = replace(QUICK, constrained=False)


def shuffled(sentences: list[Sentence], n: int = 60) -> list[Sentence]:
    """Nonsense of the same words and of some that are not known."""
    dice, tokens = (
        random.Random(0),
        [pair for each in sentences for pair in zip(each.words, each.features[0], strict=True)],
    )
    tokens += [("Zürich", "N"), ("émigré-2", "X"), ("don't", "V")]
    drawn = [dice.choices(tokens, k=dice.randint(1, 9)) for _ in range(n)]
    return [Sentence(tuple(w for w, _ in each), None, (tuple(c for _, c in each),)) for each in drawn]


SKIPPING = Templates.parse(["U0:%x[0,0]", "U1:%x[-1,0]/%x[1,1]", "U2:%x[0,0.short]", "B"], skip_outside=True)
ON_PAIRS = Templates.parse(["U0:%x[0,0.suffix2]", "B", "B1:%x[0,1]", "B2:%x[-1,1]"])
NO_ARCS = Templates.parse(["U0:%x[0,0.suffix2]", "U1:%x[ 2 , 1 ]"])


@pytest.mark.parametrize("templates", [None, SKIPPING, ON_PAIRS, NO_ARCS])
@pytest.mark.parametrize("config", [QUICK, FREE, replace(QUICK, model="logistic")])
def test_the_python_file_gives_the_same_tags(
    sentences: list[Sentence], templates: Templates | None, config: LearningConfig, tmp_path: Path
) -> None:
    if templates is ON_PAIRS and config.model == "logistic":
        pytest.skip("logistic regression looks at single tags")
    tagger = FeatureTagger.fit(sentences, config, templates=templates)
    alone = CRFTagger(export_python(tagger, tmp_path / "python") / "model.json")
    for each in shuffled(sentences):
        assert alone.tag(each.words, each.features) == tagger.tag([each])[0]
    assert alone.tag([], [[]]) == []


@pytest.mark.thorough
def test_many_labels(tmp_path: Path) -> None:
    dice = random.Random(0)
    train = [Sentence(tuple(f"w{dice.randint(0, 150)}" for _ in range(8))) for _ in range(60)]
    train = [replace(each, tags=tuple(f"T{int(w[1:]) % 90}" for w in each.words)) for each in train]
    tagger = FeatureTagger.fit(train, replace(QUICK, max_iterations=4))
    assert tagger.crf._listed is not None
    alone = CRFTagger(export_python(tagger, tmp_path / "python") / "model.json")
    for each in train[:20]:
        unknown = (*each.words[::-1], "strange", "words")
        assert alone.tag(unknown) == tagger.tag([unknown])[0]


def test_it_needs_the_standard_library_alone(sentences: list[Sentence], tmp_path: Path) -> None:
    tagger = FeatureTagger.fit(sentences, QUICK)
    folder = export_python(tagger, tmp_path / "python")
    text = "".join(
        f"{word} {column}\n" for word, column in zip(sentences[1].words, sentences[1].features[0], strict=True)
    )
    command = [sys.executable, "-I", "-S", str(folder / "crf_tagger.py")]  # without any installed package
    answer = subprocess.run(command, input=text, capture_output=True, text=True, check=False, encoding="utf-8")
    assert answer.stderr == ""
    assert [line.split("\t")[2] for line in answer.stdout.split("\n") if line] == tagger.tag([sentences[1]])[0]
    wrong = subprocess.run([*command, "no columns"], capture_output=True, text=True, check=False)
    assert (wrong.returncode, wrong.stderr) == (
        1,
        "error: expected 1 columns in addition to the words, each as long; got 0\n",
    )


def dicts(sentence: Sentence) -> list[dict[str, Any]]:
    return [
        {"w": word, "size": len(word) / 4, "ends": [word[-1], word[-2:]], "up": word.istitle()}
        for word in sentence.words
    ]


def test_attributes_that_come_with_the_data(sentences: list[Sentence], tmp_path: Path) -> None:
    tagger = AttributeTagger.fit([replace(each, extra={"attributes": dicts(each)}) for each in sentences], QUICK)
    alone = CRFTagger(export_python(tagger, tmp_path / "python") / "model.json")
    for each in shuffled(sentences, 20):
        assert alone.tag_attributes(dicts(each)) == tagger.tag([replace(each, extra={"attributes": dicts(each)})])[0]
    with pytest.raises(ValueError, match="reads attributes, not words; call tag_attributes"):
        alone.tag(["Ann"])


def test_crfsuite_gives_the_same_tags_and_probabilities(sentences: list[Sentence], tmp_path: Path) -> None:
    pycrfsuite = pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
    tagger = FeatureTagger.fit(sentences, FREE)
    assert export_crfsuite(tagger, tmp_path / "m.crfsuite") == []
    names = CRFTagger(export_python(tagger, tmp_path / "python") / "model.json")
    peer = pycrfsuite.Tagger()
    peer.open(str(tmp_path / "m.crfsuite"))
    for each in shuffled(sentences, 30):
        attributes = [list(names._names(i, (each.words, *each.features))) for i in range(len(each))]
        (answer,) = tagger.predict([each])
        assert peer.tag(attributes) == answer.value
        assert peer.probability(answer.value) == pytest.approx(answer.probability, rel=1e-6)
    assert AttributeTagger.from_crfsuite(tmp_path / "m.crfsuite").n_parameters == tagger.n_parameters


def test_what_the_scheme_forbids_stays_impossible_in_crfsuite(sentences: list[Sentence], tmp_path: Path) -> None:
    tagger = FeatureTagger.fit(sentences, QUICK)
    (note,) = export_crfsuite(tagger, tmp_path / "m.crfsuite")
    assert note == "note: CRFsuite has no scores of first and last tags, so I-NP, I-VP may begin or end a sentence"
    found = read_crfsuite_model(tmp_path / "m.crfsuite")
    before, label = found.labels.index("O"), found.labels.index("I-NP")
    assert found.transitions[before, label] == -1000
    with pytest.raises(OutputError, match="there is a file already"):
        export_crfsuite(tagger, tmp_path / "m.crfsuite")


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"latent": 2}, "latent states"), ({"order": 2}, "second order"), ({"hidden_units": 2}, "hidden units"),
        ({"hash_bits": 8}, "hashed attributes"), ({"samples": 2}, "an average over samples"),
        ({"model": "memm"}, "the model memm"), ({"induce": 5}, "induced conjunctions"),
    ],
)  # fmt: skip
def test_what_cannot_be_exported(
    settings: dict[str, Any], what: str, sentences: list[Sentence], tmp_path: Path
) -> None:
    tagger = FeatureTagger.fit(sentences, replace(QUICK, max_iterations=2, **settings))
    for export in (export_crfsuite, export_python):
        with pytest.raises(ModelError, match=f"cannot express .*{what}"):
            export(tagger, tmp_path / "out")
    assert not any(tmp_path.iterdir())


def test_a_damaged_file(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text(json.dumps({"labels": []}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"model.json: not a whole exported model \('n_columns'\); copy it again"):
        CRFTagger(tmp_path / "model.json")
    with pytest.raises(ValueError, match=r"none.json: cannot be read"):
        CRFTagger(tmp_path / "none.json")


def test_the_hash_of_names() -> None:
    """The values that its author gives."""
    assert (lookup3(b""), lookup3(b"Four score and seven years ago")) == (0xDEADBEEF, 0x17770551)


def test_the_python_file_imports_nothing_of_ours() -> None:
    found = importlib.util.find_spec(CRFTagger.__module__)
    assert found is not None and found.origin is not None
    lines = Path(found.origin).read_text(encoding="utf-8").split("\n")
    imported = {line.split()[1].split(".")[0] for line in lines if line.startswith(("import ", "from "))}
    assert imported <= set(sys.stdlib_module_names)
