"""Attributes by a function: found again by its name, refused in one sentence."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trelliswork.data import Sentence
from trelliswork.data.attributes import FeatureFunction, Templates
from trelliswork.data.attributes.key_index import keys_of
from trelliswork.errors import DataError, ModelError
from trelliswork.models import FeatureTagger, LearningConfig, load_tagger

SENTENCES = [
    Sentence(("Ann", "sings"), ("N", "V"), (("x", "y"),), line=4, file="a.conll"),
    Sentence(("dogs", "bark", "here"), ("N", "V", "R"), (("x", "y", "z"),)),
    Sentence((), (), ((),)),
]
QUICK = LearningConfig(max_iterations=20, c2=0.1)


def attributes(sentence: Sentence) -> list[dict[str, Any]]:
    assert sentence.tags is None, "a function must not see the tags"
    return [
        {"w": word.lower(), "length": len(word) / 4, "title": word.istitle(), "column": sentence.features[0][i]}
        for i, word in enumerate(sentence.words)
    ]


class Inside:
    @staticmethod
    def names(sentence: Sentence) -> list[list[str]]:
        return [[f"w={word}", f"first={word[0]}"] for word in sentence.words]


def test_attributes_are_those_of_dicts() -> None:
    counts, keys, values, entry_names = FeatureFunction.of(attributes).attributes(SENTENCES)
    names = entry_names.of(np.arange(len(keys)))
    assert counts.tolist() == [4] * 5
    assert names[:4] == ["w:ann", "length", "title", "column:x"]
    assert keys.tolist() == keys_of(names).tolist()
    assert values[:8].tolist() == [1.0, 0.75, 1.0, 1.0, 1.0, 1.25, 0.0, 1.0]


@pytest.mark.parametrize("function", [attributes, Inside.names])
def test_a_model_goes_on_with_its_function(function: Any, tmp_path: Path) -> None:
    tagger = FeatureTagger.fit(SENTENCES, QUICK, features=function)
    assert tagger.tag(SENTENCES) == [list(each.tags or ()) for each in SENTENCES]
    tagger.save(tmp_path / "model")
    again = FeatureTagger.load(tmp_path / "model", features=function)
    assert again.features is not None and again.features.function is function
    assert again.features.path == f"{__name__}:{function.__qualname__}"
    assert again.confidences(SENTENCES[:2]) == tagger.confidences(SENTENCES[:2])
    assert list(again.names) == list(tagger.names) and again.n_columns == 1
    assert "w" in str(again.explain(SENTENCES[:1])[0])


def test_a_function_may_be_given_by_name_and_at_load(tmp_path: Path) -> None:
    by_name = FeatureTagger.fit(SENTENCES, QUICK, features=f"{__name__}:Inside.names")
    nameless = FeatureTagger.fit(SENTENCES, QUICK, features=lambda sentence: Inside.names(sentence))
    assert by_name.confidences(SENTENCES[:2]) == nameless.confidences(SENTENCES[:2])
    nameless.save(tmp_path / "model")
    with pytest.raises(ModelError, match=r"no name to import it by .*give it: FeatureTagger.load\(directory, features"):
        FeatureTagger.load(tmp_path / "model")
    again = FeatureTagger.load(tmp_path / "model", features=Inside.names)
    assert again.confidences(SENTENCES[:2]) == nameless.confidences(SENTENCES[:2])


def test_function_and_templates_add_up() -> None:
    templates = Templates.parse(["U1:%x[0,0]", "U2:%x[-1,1]", "B"])
    tagger = FeatureTagger.fit(SENTENCES, LearningConfig(all_states=True), templates=templates, features=attributes)
    assert {"U1:Ann", "U2:_B-1", "w:ann", "length"} <= set(tagger.names)
    assert tagger.crf.index.find(keys_of(list(tagger.names))).tolist() == list(range(len(tagger.names)))
    rows = tagger.rows(SENTENCES)
    assert rows.values is not None and np.diff(rows.offsets).tolist() == [6] * 5
    span = slice(*rows.offsets[1:3])
    found = [tagger.names[i] for i in rows.ids[span]]
    assert found == ["U1:sings", "U2:x", "w:sings", "length", "title", "column:y"]
    assert rows.values[span].tolist() == [1.0, 1.0, 1.0, 1.25, 0.0, 1.0]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda s: [{}], r"entry for each of the 2 tokens of the sentence at a\.conll:4, got 1 entries"),
        (lambda s: "ab", "got a str"),
        (lambda s: None, "got TypeError"),
        (lambda s: [s.words[9]], r"a\.conll:4, got IndexError: tuple index out of range"),
        (lambda s: [{"v": float("nan")}] * len(s), "expected a finite number for 'v', got NaN"),
        (lambda s: [{"v": object()}] * len(s), "at 'v', got object"),
        (lambda s: [3] * len(s), "expected a dict or a list of names, got int"),
    ],
)
def test_what_a_function_must_not_return(function: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        FeatureTagger.fit(SENTENCES, QUICK, features=function)


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        ("nowhere.at_all:f", ModelError, "no module 'nowhere'; install it or run where it is"),
        ("trelliswork.errors:f", ModelError, "'trelliswork.errors' has no 'f'; check the name"),
        ("trelliswork.errors", DataError, "expected package.module:function, got 'trelliswork.errors'"),
        ("trelliswork:__version__", ModelError, "expected a feature function at trelliswork:__version__, got str"),
        ("broken_on_import:f", ModelError, "cannot be imported: ZeroDivisionError: division by zero"),
    ],
)
def test_what_cannot_be_imported(
    path: str, error: type[Exception], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_on_import.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(error, match=message):
        FeatureFunction.of(path)


def test_a_model_imports_nothing_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("soon_gone")
    exec("def f(sentence):\n    return [[w] for w in sentence.words]", module.__dict__)
    monkeypatch.setitem(sys.modules, "soon_gone", module)
    tagger = FeatureTagger.fit(SENTENCES, QUICK, features=module.f)
    tagger.save(tmp_path / "model")
    message = "does not import by itself; add --features soon_gone:f, or in Python"
    with pytest.raises(ModelError, match=message):  # the module is loaded, which makes no difference
        FeatureTagger.load(tmp_path / "model")
    monkeypatch.delitem(sys.modules, "soon_gone")
    with pytest.raises(ModelError, match=message):
        FeatureTagger.load(tmp_path / "model")
    with pytest.raises(ModelError, match="the feature function soon_gone:f cannot be imported: there is no module"):
        FeatureTagger.load(tmp_path / "model", features="soon_gone:f")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sys:exit", "add --features sys:exit, or in Python"),
        ("builtins:input", "add --features builtins:input"),
        ("__main__:wipe", "add --features __main__:wipe"),
        ("os:system; reboot", r"expected the name of a function, .*, got 'os:system; reboot'; copy the model again"),
        (["sys:exit"], r"expected the name of a function, .*, got \['sys:exit'\]"),
    ],
)
def test_a_model_folder_never_chooses_code(
    name: object, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wipe(sentence: Sentence) -> list[list[str]]:
        pytest.fail("a model called a function that nobody gave")

    monkeypatch.setattr(sys.modules["__main__"], "wipe", wipe, raising=False)
    FeatureTagger.fit(SENTENCES, QUICK, features=attributes).save(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "features": name}))
    for load in (FeatureTagger.load, load_tagger):
        with pytest.raises(ModelError, match=message):
            load(tmp_path / "model")
    again = FeatureTagger.load(tmp_path / "model", features=attributes)
    assert again.tag(SENTENCES[0]) == ["N", "V"]


def test_what_is_no_function() -> None:
    with pytest.raises(DataError, match=r"expected a function over a sentence or 'package\.module:function', got int"):
        FeatureTagger.fit(SENTENCES, QUICK, features=3)  # type: ignore[arg-type]
