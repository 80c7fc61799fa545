"""Words of questions by their stems."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import trelliswork as tw
from trelliswork.data import Sentence, WordVectors
from trelliswork.errors import TrellisworkError
from trelliswork.models.transducers.semantic.config import TreeConfig
from trelliswork.models.transducers.semantic.seq2tree import Seq2Tree
from trelliswork.models.transducers.semantic.stems import stemming

CONFIG = TreeConfig(form="brackets", word_dim=4, hidden=4, min_count=1)
PAIRS = [
    Sentence(("which", "rivers", "cross", "ohio"), target=("river", "(", "ohio", ")")),
    Sentence(("how", "long", "is", "this", "river"), target=("length", "(", "it", ")")),
]


@pytest.mark.parametrize(("language", "word", "stem"), [
    ("english", "crossing", "cross"), ("german", "flüsse", "fluss"), ("russian", "реки", "рек"),
    ("none", "crossing", "crossing"),
])  # fmt: skip
def test_words_become_stems(language: str, word: str, stem: str) -> None:
    assert stemming(language)((word, "state_name0", "<state>")) == (stem, "state_name0", "<state>")


def test_forms_of_a_word_are_one(tmp_path: Path) -> None:
    plain, stemmed = (Seq2Tree.from_data(PAIRS, replace(CONFIG, stem=each)) for each in ("none", "english"))
    assert len(stemmed.source) == len(plain.source) - 1, "river and rivers"
    assert stemmed.knows("crosses") and not plain.knows("crosses") and not stemmed.knows("lake")
    seen, unseen = (Sentence(("which", each, "crossed", "ohio")) for each in ("rivers", "river"))
    a, b = (each.source.tolist() for each in stemmed.encode([seen, unseen]))
    assert a == b and 0 not in a
    stemmed.save(tmp_path / "m")
    loaded = tw.load(tmp_path / "m")
    assert isinstance(loaded, Seq2Tree) and loaded.encode([unseen])[0].source.tolist() == a
    one, other = "which river crossed ohio", "which rivers cross ohio"
    assert loaded.predict([one])[0].probability == stemmed.predict([other])[0].probability
    assert plain.predict([one])[0].probability != plain.predict([other])[0].probability
    assert stemmed.notes(PAIRS, [Sentence(("rivers", "crossing"), target=("river",))])[1:] == []


def test_vectors_are_of_whole_words() -> None:
    vectors = WordVectors(["river"], np.ones((1, 3), np.float32))
    with pytest.raises(TrellisworkError, match="--stem or --vectors, got both"):
        Seq2Tree.from_data(PAIRS, replace(CONFIG, stem="english"), vectors=vectors)
