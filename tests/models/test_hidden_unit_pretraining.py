"""Pre-training of hidden units: correlations, senses, clusters, and what they are good for."""

from __future__ import annotations

import numpy as np

from trelliswork.data import Sentence
from trelliswork.data.attributes import Templates
from trelliswork.models.taggers.features.corpus import TaggedData
from trelliswork.models.taggers.features.hidden_units.pretraining import Pretraining, cca, k_means
from trelliswork.models.taggers.features.learners.config import LearningConfig
from trelliswork.models.taggers.features.tagger import FeatureTagger


def samples(n: int = 4000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Words 0..5 of class 0 and 6..9 of class 1 beside contexts 0..3 and 4..7; one in ten goes astray."""
    random = np.random.default_rng(seed)
    x = random.integers(0, 10, n)
    kind = np.where(random.random(n) < 0.9, x >= 6, x < 6)
    return x, random.integers(0, 4, n) + 4 * kind


def test_projections_correlate_as_a_dense_analysis_says() -> None:
    """Centred variables whitened by an eigendecomposition: the textbook's analysis, with nothing one-hot in it."""
    x, y = samples()
    a, b = cca(x, y, (10, 8), 3)
    found = [abs(np.corrcoef(a[x, j], b[y, j])[0, 1]) for j in range(3)]
    one_x, one_y = np.eye(10)[x], np.eye(8)[y]
    one_x, one_y = one_x - one_x.mean(0), one_y - one_y.mean(0)

    def whitener(matrix: np.ndarray) -> np.ndarray:
        values, vectors = np.linalg.eigh(matrix.T @ matrix)
        keep = values > 1e-6
        return vectors[:, keep] / np.sqrt(values[keep])

    wanted = np.linalg.svd((one_x @ whitener(one_x)).T @ (one_y @ whitener(one_y)), compute_uv=False)[:3]
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_the_first_component_is_constant() -> None:
    """Erratum 28: as printed, k = 1 gives all words one number; without the first component it tells classes apart."""
    x, y = samples()
    counts = np.zeros((10, 8))
    np.add.at(counts, (x, y), 1)
    u, v = counts.sum(1), counts.sum(0)
    left, values, _ = np.linalg.svd(counts / np.sqrt(u[:, None] * v))
    printed = left[:, 0] / np.sqrt(u)
    assert abs(values[0] - 1) < 1e-12
    assert np.ptp(printed) < 1e-12
    corrected = cca(x, y, (10, 8), 1)[0][:, 0]
    signs = np.sign(corrected)
    assert (signs[:6] == signs[0]).all()
    assert (signs[6:] == -signs[0]).all()


def test_means_find_what_lies_together() -> None:
    random = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    truth = random.integers(0, 3, 300)
    found, _ = k_means(centres[truth] + random.normal(size=(300, 2)), 3, np.random.default_rng(1))
    assert len({(int(a), int(b)) for a, b in zip(truth, found, strict=True)}) == 3
    assert k_means(centres, 9, random)[0].tolist() in [[i, j, k] for i in range(3) for j in range(3) for k in range(3)]


def text(n: int, seed: int) -> list[Sentence]:
    """Words of three classes, marked by what stands before them; "both" belongs to class 0 or 1, by its place."""
    random = np.random.default_rng(seed)
    sentences = []
    for _ in range(n):
        words, tags = [], []
        for kind in random.integers(0, 3, 5):
            both = kind < 2 and random.random() < 0.2
            word = "both" if both else f"w{kind}.{random.integers(40)}"
            words += [f"before{kind}", word, f"after{kind}"]
            tags += ["O", f"C{kind}", "O"]
        sentences.append(Sentence(tuple(words), tuple(tags)))
    return sentences


def coded(sentences: list[Sentence]) -> tuple[np.ndarray, np.ndarray, list[str]]:
    names = sorted({word for sentence in sentences for word in sentence.words})
    number = {name: i for i, name in enumerate(names)}
    words = np.array([number[word] for sentence in sentences for word in sentence.words])
    return words, np.array([len(sentence) for sentence in sentences]), names


def test_a_word_of_two_classes_has_two_senses() -> None:
    sentences = text(300, seed=0)
    words, lengths, names = coded(sentences)
    clusters = Pretraining(n_dimensions=8, clusters_a_label=6).clusters(words, lengths, n_labels=2)
    tags = np.array([tag for sentence in sentences for tag in sentence.tags or ()])
    ambiguous = words == names.index("both")
    assert len(set(clusters[ambiguous])) == 2
    for kind in ("C0", "C1"):  # each sense has one class, nearly always
        found = clusters[ambiguous & (tags == kind)]
        assert np.bincount(found).max() > 0.9 * len(found)


def test_pretraining_helps_where_few_sentences_are_tagged() -> None:
    """Most words of the test are in no tagged sentence: only what stands beside them elsewhere tells their class."""
    few, many, test = text(6, seed=1), text(400, seed=2), text(60, seed=3)
    templates = Templates.parse(["U0:%x[0,0]", "B"])
    config = LearningConfig(hidden_units=20, c2=0.1, max_iterations=150)
    untagged = [Sentence(sentence.words) for sentence in many]

    def accuracy(pretrain: list[Sentence]) -> float:
        tagger = FeatureTagger.fit(TaggedData(few, untagged=pretrain), config, templates=templates)
        found = [tag for tags in tagger.tag(test) for tag in tags]
        gold = [tag for sentence in test for tag in sentence.tags or ()]
        return sum(a == b for a, b in zip(found, gold, strict=True)) / len(gold)

    without, with_it = accuracy([]), accuracy(untagged)
    assert with_it > without + 0.04
    assert with_it > 0.85
