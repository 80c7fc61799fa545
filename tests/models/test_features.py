"""Features and labels: what the network reads and what it answers."""

from __future__ import annotations

import itertools

import pytest

from trelliswork.data import Sentence
from trelliswork.errors import DataError
from trelliswork.models import TaggerConfig
from trelliswork.models.networks.features import Remembered, TokenFeatures, capitals, normalize
from trelliswork.models.taggers.labels import Labels
from trelliswork.tags.schemes import convert


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("IBM", "all"),
        ("U.S.", "all"),
        ("Ann", "initial"),
        ("A", "initial"),
        ("iPhone", "mixed"),
        ("man", "lower"),
        ("3.5", "digits"),
        ("don't", "other"),
        ("--", "other"),
    ],
)
def test_capitals(word: str, expected: str) -> None:
    assert capitals(word) == expected


def test_normalize() -> None:
    assert normalize("Mid-1990s") == "mid-0000s"
    assert normalize("Mid-1990s", lowercase=False, digits_to_zero=False) == "Mid-1990s"


def test_indices_share_forms_and_fall_back_to_unknown() -> None:
    train = [Sentence(("Ann", "saw", "11", "dogs"), None, (("N", "V", "D", "N"),))]
    features = TokenFeatures.from_sentences(train, TaggerConfig(affix_min_count=1))
    assert features.names[0] == "word"
    assert features.names[-1] == "column1"
    indices = features.encode(Sentence(("ANN", "22", "cats"), None, (("N", "D", "X"),)))
    trained = features.encode(train[0])
    assert indices[0, 0] == trained[0, 0], "case is a feature of its own"
    assert indices[1, 0] == trained[2, 0], "all numbers of two digits are one word"
    assert indices[2, 0] == 1
    assert indices[2, -1] == 1
    assert indices[2, features.names.index("suffix2")] == 1
    assert (trained > 1).all()


def test_rare_words_and_affixes_are_unknown() -> None:
    train = [Sentence(("a", "a", "b"))]
    features = TokenFeatures.from_sentences(train, TaggerConfig(min_count=2, affix_min_count=3))
    assert features.encode(train[0])[:, 0].tolist() == [2, 2, 1]
    assert features.encode(train[0])[:, 2].tolist() == [1, 1, 1]


def test_a_column_of_the_wrong_length() -> None:
    with pytest.raises(DataError, match="expected 2 values in feature column 1, got 1"):
        TokenFeatures.from_sentences([Sentence(("a", "b"), None, (("X",),))], TaggerConfig())


def test_sentences_are_encoded_alike_alone_and_together() -> None:
    sentences = [
        Sentence(("Ann", "saw"), None, (("N", "V"),)),
        Sentence((), None, ((),)),
        Sentence(("it",), None, (("P",),)),
    ]
    features = TokenFeatures.from_sentences(sentences, TaggerConfig())
    together = features.encode_all(sentences)
    assert [each.tolist() for each in together] == [features.encode(each).tolist() for each in sentences]
    assert features.encode_all([]) == []


def test_what_is_remembered_of_words_has_a_limit() -> None:
    asked: list[str] = []
    numbers = Remembered(lambda word: asked.append(word) or [len(word)], limit=2)
    assert [numbers[word] for word in ("a", "bb", "a", "ccc", "ccc", "a")] == [[1], [2], [1], [3], [3], [1]]
    assert asked == ["a", "bb", "ccc", "a"]
    assert len(numbers) == 2


@pytest.mark.parametrize("data_scheme", ["IOB1", "IOB2", "IOBES"])
def test_tags_of_any_labels_are_their_conversion(data_scheme: str) -> None:
    labels = Labels.from_stored(["O", *(f"{role}-{kind}" for kind in "XY" for role in "BIES")], "IOBES", data_scheme)
    for n in (0, 1, 2, 3):
        for indices in itertools.product(range(9), repeat=n):
            written = [labels.vocabulary[i] for i in indices]
            expected = written if data_scheme == "IOBES" else convert(written, "IOBES", data_scheme)
            assert labels.tags(indices) == expected


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "IOBES"])
def test_labels_round_trip(scheme: str) -> None:
    tags = {
        "IOB1": ("I-X", "B-X", "I-X", "O", "I-Y"),
        "IOB2": ("B-X", "B-X", "I-X", "O", "B-Y"),
        "IOBES": ("S-X", "B-X", "E-X", "O", "S-Y"),
    }[scheme]
    sentence = Sentence(("w",) * 5, tags)
    labels = Labels.from_sentences([sentence])
    assert (labels.scheme, labels.data_scheme) == ("IOBES", scheme)
    indices = labels.indices(sentence)
    assert [labels.vocabulary[i] for i in indices] == ["S-X", "B-X", "E-X", "O", "S-Y"]
    assert labels.tags(indices) == list(tags)
    for index, tag in zip(indices, tags, strict=True):
        assert index in labels.meaning(tag)


def test_bilou_is_read_as_iobes() -> None:
    sentence = Sentence(("w",) * 3, ("B-X", "L-X", "U-X"))
    labels = Labels.from_sentences([sentence])
    assert labels.tags(labels.indices(sentence)) == ["B-X", "E-X", "S-X"]
    assert [labels.vocabulary[i] for i in labels.meaning("U-X")] == ["S-X"]
