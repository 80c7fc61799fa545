"""Pretrained vectors of questions: words that training has not seen, storage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

import trelliswork as tw
from trelliswork.data import Sentence, WordVectors
from trelliswork.models.transducers.semantic.config import TreeConfig
from trelliswork.models.transducers.semantic.seq2tree import QuestionWords, Seq2Tree, words_of

VECTORS = WordVectors(("river", "stream", "city"), np.array([[1, 0], [1, 0.1], [0, 1]], dtype=np.float32))
PAIRS = [Sentence(("which", "river"), target=("f", "(", "a", ")")), Sentence(("which", "city"), target=("a",))] * 2


def test_words_with_vectors_stand_behind_those_of_training() -> None:
    questions = [("which", "river"), ("which", "town")]
    words, n_known = words_of(questions, 2, VECTORS)
    assert words.to_list() == ["<unk>", "which", "river", "stream", "city"] and n_known == 2
    assert words_of(questions, 1, None)[0].to_list() == ["<unk>", "which", "river", "town"]


def test_a_word_has_a_learned_vector_if_it_was_seen_and_a_pretrained_one_if_there_is() -> None:
    words, n_known = words_of([pair.words for pair in PAIRS], 1, VECTORS)
    table = QuestionWords(len(words), n_known, 3, 2)
    table.load(words, VECTORS)
    found = table(torch.tensor([words.indices(["river", "stream", "which", "never"])]))[0]
    learned = table.learned.weight
    expected = [(words.index("river"), [1, 0]), (0, [1, 0.1]), (words.index("which"), None), (0, None)]
    for row, (known, vector) in zip(found, expected, strict=True):
        torch.testing.assert_close(row[:3], learned[known])
        mean = VECTORS.matrix.mean(0).tolist()
        torch.testing.assert_close(row[3:], torch.tensor(mean if vector is None else vector, dtype=torch.float32))
    assert table.coverage([torch.tensor(words.indices(["river", "stream", "which", "never"]))]) == 0.5
    assert [name for name, each in table.named_parameters() if each.requires_grad] == ["learned.weight"]


def test_dropped_words_keep_their_pretrained_vector() -> None:
    words, n_known = words_of([pair.words for pair in PAIRS], 1, VECTORS)
    table = QuestionWords(len(words), n_known, 3, 2)
    table.load(words, VECTORS)
    found = table(torch.full((1, 4000), words.index("river")), 0.25)[0]
    dropped = (found[:, :3] == table.learned.weight[0]).all(-1).float().mean()
    assert abs(float(dropped) - 0.25) < 0.03
    assert bool((found[:, 3:] == torch.tensor([1.0, 0.0])).all())


def test_a_model_with_vectors_is_stored_and_tells_new_words_apart(tmp_path: Path) -> None:
    config = TreeConfig(word_dim=4, hidden=4, min_count=1, form="brackets")
    model = Seq2Tree.from_data(PAIRS, config, vectors=VECTORS).eval()
    assert model.config.vector_dim == 2 and model.knows("stream")
    assert model.vector_coverage(PAIRS) == 0.5
    model.save(tmp_path / "model")
    again = tw.load(tmp_path / "model")
    one, other = (again.predict(text)[0].probability for text in ("which stream", "which brook"))
    assert one != other
    assert model.predict("which stream")[0].probability == one
