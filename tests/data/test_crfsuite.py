"""CRFsuite's data files and models: what is read, and errors that name the place."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from trelliswork.data import read_crfsuite, reader_for
from trelliswork.data.crfsuite import CRFsuiteModel, is_crfsuite_model, read_crfsuite_model
from trelliswork.errors import DataError, ModelError

DATA = "B\tw=He\tlen:2.5\nI\ta\\:b\tc\\\\d:-1e-1\tx\tx:2\t\n\n\nO\n"
DUMP = """FILEHEADER = {
  magic: lCRF
  num_labels: 2
}

LABELS = {
      0: A-->B
      1: B
}

ATTRIBUTES = {
      0: w:a b
      1: -->
      2:  lead
}

TRANSITIONS = {
  (1) A-->B --> B: 0.487814
}

STATE_FEATURES = {
  (0) w:a b --> A-->B: 0.194066
  (0) --> --> B: -0.097033
  (0)  lead --> A-->B: 1.000000
}

"""
MODEL = CRFsuiteModel(
    ["A-->B", "B"], ["w:a b", "-->", " lead"], {(0, 0): 0.194066, (1, 1): -0.097033, (2, 0): 1.0}, {(0, 1): 0.487814}
)


def written(tmp_path: Path, text: str | bytes, name: str = "data.crfsuite") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_labels_attributes_values_and_escapes(tmp_path: Path) -> None:
    path = written(tmp_path, DATA)
    assert reader_for(path) is read_crfsuite
    first, second = read_crfsuite(path)
    assert (first.words, first.tags, first.line) == (("w=He", "a:b"), ("B", "I"), 1)
    assert first.extra["attributes"] == [{"w=He": 1.0, "len": 2.5}, {"a:b": 1.0, "c\\d": -0.1, "x": 3.0}]
    assert (second.words, second.tags, second.line) == (("_",), ("O",), 5)
    assert [each.tags for each in read_crfsuite(path, with_tags=False)] == [None, None]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", ": expected at least one sentence, got none"),
        ("A\tx\n\tx\n", ":2:1: expected a label in front of the first tab, got nothing"),
        ("A\tx\tlen:two\n", ":1:3: expected a finite number after 'len' and a colon, got 'two'"),
        ("A\tlen:nan\n", ":1:2: expected a finite number after 'len' and a colon, got 'nan'"),
        ("A\ta:b:1\n", ":1:2: expected a finite number after 'a' and a colon, got 'b:1'"),
        ("A\tx\\\n", ":1:2: expected \\\\ or \\: where a backslash is"),
        ("@weight:2\nA\tx\n", ":1:1: expected a label, got the declaration '@weight:2'"),
        ("A\tx\0\n", ":1: expected UTF-8 text"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, text: str, problem: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(DataError) as caught:
        list(read_crfsuite(path))
    assert str(caught.value).startswith(f"{path}{problem}")


def test_a_dump_is_read(tmp_path: Path) -> None:
    assert read_crfsuite_model(written(tmp_path, DUMP)) == MODEL
    assert read_crfsuite_model(written(tmp_path, DUMP.replace("\n", "\r\n"))) == MODEL


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        (DUMP, "", "expected a whole dump"),
        (DUMP, "some text\n", "line 1: expected the dump of a CRFsuite model, got 'some text'"),
        (DUMP[-40:], "", "expected"),
        ("(0) --> --> B", "(0) --> --> C", "line 23: expected a known attribute and label"),
        ("-0.097033", "nan", "line 23: expected .* weight"),
        ("-0.097033", "", "line 23: expected .* weight"),
        ("      1: B", "      2: B", "line 8: expected number 1, got 2"),
    ],
)
def test_a_bad_dump_gets_a_sentence(tmp_path: Path, before: str, after: str, problem: str) -> None:
    assert before in DUMP
    with pytest.raises(ModelError, match=problem):
        read_crfsuite_model(written(tmp_path, DUMP.replace(before, after)))


def test_what_is_no_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="expected a CRFsuite model or the UTF-8 text of its dump"):
        read_crfsuite_model(written(tmp_path, b"\xff\xfe\x00"))
    with pytest.raises(DataError, match="no such file"):
        read_crfsuite_model(tmp_path / "missing")
    with pytest.raises(DataError, match="got a folder"):
        read_crfsuite_model(tmp_path)
    assert not is_crfsuite_model(tmp_path)


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pycrfsuite = pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
    path = tmp_path_factory.mktemp("crfsuite") / "model.crfsuite"
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    for x, y in [([{"w": "a b"}, {"-->": 2.0}], ["A-->B", "B"]), ([{" lead": True, "é": 1}], ["B"])]:
        trainer.append(x, y)
    trainer.train(str(path))
    return path


def test_a_binary_model_says_what_its_dump_says(binary: Path, tmp_path: Path) -> None:
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    tagger.open(str(binary))
    tagger.dump(str(tmp_path / "dump"))
    info = tagger.info()
    tagger.close()
    assert is_crfsuite_model(binary)
    model, dumped = read_crfsuite_model(binary), read_crfsuite_model(tmp_path / "dump")
    assert (
        (model.labels, model.attributes)
        == (dumped.labels, dumped.attributes)
        == (list(info.labels), list(info.attributes))
    )
    for ours, theirs in ((model.states, dumped.states), (model.transitions, dumped.transitions)):
        assert ours.keys() == theirs.keys() and all(ours[key] == pytest.approx(theirs[key], abs=1e-6) for key in ours)


def test_damaged_models_never_crash(binary: Path, tmp_path: Path) -> None:
    content = binary.read_bytes()
    for end in (0, 3, 4, 47, 48, 100, len(content) // 2, len(content) - 1):
        with pytest.raises(ModelError):
            read_crfsuite_model(written(tmp_path, content[:end]))
    rng = random.Random(0)
    sentences = []
    for place in [*range(150), *(rng.randrange(len(content)) for _ in range(200))]:
        damaged = bytearray(content)
        damaged[place] ^= 1 << rng.randrange(8)
        try:
            read_crfsuite_model(written(tmp_path, bytes(damaged)))
        except ModelError as error:
            sentences.append(str(error))
    assert len(sentences) > 20 and not any("\n" in sentence for sentence in sentences)
