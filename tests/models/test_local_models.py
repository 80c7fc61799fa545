"""MEMM and logistic regression, HMM and naive Bayes over sparse attributes: exact, and beaten by the CRF where they
must be."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.models.test_feature_crf import corpus, loss_by_distribution, model_of
from trelliswork.data import Sentence
from trelliswork.data.attributes import AttributeRows, KeyIndex, Templates
from trelliswork.data.attributes.key_index import keys_of
from trelliswork.data.corpus import builtin_corpus
from trelliswork.distributions import HMM
from trelliswork.errors import ScoreError
from trelliswork.models.taggers.features.corpus import TaggedData
from trelliswork.models.taggers.features.crf.kinds import KINDS, Kind
from trelliswork.models.taggers.features.crf.model import FeatureCRF
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.learners.config import LearningConfig
from trelliswork.models.taggers.features.learners.counting import counted_parameters, log_frequencies
from trelliswork.models.taggers.features.learners.likelihood import Likelihood, LocalLikelihood
from trelliswork.models.taggers.features.tagger import FeatureTagger
from trelliswork.training.lbfgs import LBFGS

OTHERS: tuple[Kind, ...] = ("memm", "logistic", "hmm", "naive-bayes")
CORPUS = builtin_corpus(sizes=(400, 100, 1))
TRAIN, TEST = ([Sentence(x.words, x.chunks, (x.pos,)) for x in CORPUS[part]] for part in ("train", "dev"))


def memm_of(parameters: Parameters, weights: np.ndarray) -> FeatureCRF:
    return FeatureCRF(tuple(map(str, range(parameters.n_labels))), KeyIndex(), parameters, weights, "locally")


def every(n: int, c: int) -> list[tuple[int, ...]]:
    return list(itertools.product(range(c), repeat=n))


# --- locally normalised --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_labels", [1, 2, 9, 17])
@pytest.mark.parametrize("valued", [False, True])
@pytest.mark.parametrize("scale", [0.5, 300.0])
def test_loss_and_gradient_of_the_memm(n_labels: int, valued: bool, scale: float) -> None:
    """[S4.136-138] against softmaxes written out, and differences of the loss."""
    rows, gold = corpus(n_labels, valued=valued)
    parameters = Parameters.of(rows, gold, 40, n_labels, all_transitions=n_labels == 2, all_states=n_labels == 9)
    likelihood = LocalLikelihood(rows, gold, parameters)
    random = np.random.default_rng(1)
    weights = random.normal(size=len(parameters)) * scale
    loss, gradient = likelihood(weights)
    scores = torch.from_numpy(model_of(rows, parameters, weights).emissions(rows))
    arcs = torch.from_numpy(parameters.transitions(weights))
    wanted = 0.0
    for first, last in itertools.pairwise(rows.starts):
        for t in range(first, last):
            token = scores[t] + (arcs[gold[t - 1]] if t > first else 0.0)
            wanted -= float(torch.log_softmax(token, 0)[gold[t]])
    assert loss == pytest.approx(wanted, rel=1e-10, abs=1e-10)
    direction, step = random.normal(size=len(parameters)), 1e-5
    slope = (likelihood(weights + step * direction)[0] - likelihood(weights - step * direction)[0]) / (2 * step)
    assert slope == pytest.approx(float(gradient @ direction), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("scale", [1.0, 200.0])
def test_the_memm_is_a_chain_whose_log_partition_is_zero(scale: float) -> None:
    """[S4.136, 301]: every query of a chain, the probabilities of all sequences summing to one by themselves."""
    rows, gold = corpus(3)
    parameters = Parameters.of(rows, gold, 40, 3)
    weights = np.random.default_rng(2).normal(size=len(parameters)) * scale
    memm = memm_of(parameters, weights)
    scores, arcs = torch.from_numpy(memm.emissions(rows)), torch.from_numpy(parameters.transitions(weights))
    chain, marginals, best = memm.chain(rows), memm.marginals(rows), memm.predict(rows)
    torch.testing.assert_close(chain.log_partition, torch.zeros(20, dtype=torch.float64), atol=1e-9, rtol=0)
    for s in np.flatnonzero(rows.lengths <= 5):
        first, n = rows.starts[s], int(rows.lengths[s])
        shares, table = {}, np.zeros((n, 3))
        for path in every(n, 3):
            log_p = torch.log_softmax(scores[first], 0)[path[0]]
            for i in range(1, n):
                log_p = log_p + torch.log_softmax(scores[first + i] + arcs[path[i - 1]], 0)[path[i]]
            shares[path] = math.exp(log_p)
            table[range(n), path] += shares[path]
        np.testing.assert_allclose(marginals[s], table, atol=1e-9)
        assert shares[tuple(map(int, best[s]))] == pytest.approx(max(shares.values()))
    tags, log_p = chain.top_k(2)
    assert (log_p[0] >= log_p[1]).all() and tags.shape[0] == 2


def test_the_loss_of_the_memm_is_the_chain_s() -> None:
    rows, gold = corpus(4)
    parameters = Parameters.of(rows, gold, 40, 4)
    weights = np.random.default_rng(3).normal(size=len(parameters))
    chain = memm_of(parameters, weights).chain(rows)
    tags = torch.zeros(20, int(rows.lengths.max()), dtype=torch.long)
    for s, (first, last) in enumerate(itertools.pairwise(rows.starts)):
        tags[s, : last - first] = torch.from_numpy(gold[first:last])
    assert LocalLikelihood(rows, gold, parameters)(weights)[0] == pytest.approx(-float(chain.log_prob(tags).sum()))


def test_logistic_regression_is_a_chain_without_arcs() -> None:
    """[S4.68, 70]: without arcs, local and global normalisation are the same."""
    rows, gold = corpus(5, valued=True)
    parameters = Parameters.of(rows, gold, 40, 5)
    parameters = Parameters(5, parameters.offsets, parameters.labels, parameters.arcs[:0])
    weights = np.random.default_rng(4).normal(size=len(parameters))
    loss, gradient = LocalLikelihood(rows, gold, parameters)(weights)
    assert loss == pytest.approx(loss_by_distribution(rows, gold, parameters, weights))
    together = Likelihood(rows, gold, parameters)(weights)
    assert loss == pytest.approx(together[0])
    np.testing.assert_allclose(gradient, together[1], atol=1e-9)


def test_scikit_learn_finds_the_same_logistic_regression() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is not installed")
    rows, gold = corpus(3)
    dense = np.zeros((rows.n_tokens, 40))
    np.add.at(dense, (rows.tokens(), rows.ids), 1.0)
    theirs = linear_model.LogisticRegression(C=1.0 / (2 * 0.3), fit_intercept=False, tol=1e-10, max_iter=10_000)
    theirs.fit(dense, gold)
    parameters = Parameters.of(rows, gold, 40, 3, all_states=True)
    parameters = Parameters(3, parameters.offsets, parameters.labels, parameters.arcs[:0])
    learner = LBFGS(l2=0.3, epsilon=1e-9, delta=0.0)
    *_, last = learner.minimise(LocalLikelihood(rows, gold, parameters), np.zeros(len(parameters)))
    np.testing.assert_allclose(last.weights.reshape(40, 3).T, theirs.coef_, atol=1e-5)


def test_threads_share_the_sentences(worth_splitting: None) -> None:
    rows, gold = corpus(6)
    parameters = Parameters.of(rows, gold, 40, 6)
    weights = np.random.default_rng(3).normal(size=len(parameters))
    shared = LocalLikelihood(rows, gold, parameters)
    assert len(shared._ranges) == 2
    torch.set_num_threads(1)
    alone = LocalLikelihood(rows, gold, parameters)(weights)
    np.testing.assert_allclose(shared(weights)[1], alone[1], atol=1e-12)
    assert shared(weights)[0] == pytest.approx(alone[0])


# --- counted -------------------------------------------------------------------------------------------------

WORDS = ["the dog barks", "the cat sleeps", "dog barks", "the the cat", "cat"]  # sleeps occurs once
STATES = ["DNV", "DNV", "NV", "DDN", "N"]
NUMBER = {"D": 0, "N": 1, "V": 2}


def counted(sentences: list[list[list[str]]], tags: list[str], smoothing: float, transitions: bool) -> FeatureCRF:
    """From lists of attributes for each token."""
    lengths = np.array([len(sentence) for sentence in sentences])
    tokens = [token for sentence in sentences for token in sentence]
    index = KeyIndex()
    ids = index.add(keys_of([name for token in tokens for name in token]))
    rows = AttributeRows(lengths, np.concatenate([[0], np.cumsum([len(token) for token in tokens])]), ids)
    gold = np.array([NUMBER[tag] for row in tags for tag in row])
    parameters = counted_parameters(rows, gold, index, 3, transitions=transitions)
    weights, loss = log_frequencies(rows, gold, parameters, smoothing)
    crf = FeatureCRF(("D", "N", "V"), index, parameters, weights, "jointly")
    scores = loss_of_gold(crf, sentences, tags)
    assert loss == pytest.approx(scores)
    return crf.compact()[0]


def rows_of(crf: FeatureCRF, sentences: list[list[list[str]]]) -> AttributeRows:
    tokens = [token for sentence in sentences for token in sentence]
    keys = keys_of([name for token in tokens for name in token])
    return crf.rows(np.array(list(map(len, sentences))), np.array(list(map(len, tokens))), keys)


def loss_of_gold(crf: FeatureCRF, sentences: list[list[list[str]]], tags: list[str]) -> float:
    total = 0.0
    for sentence, row in zip(sentences, tags, strict=True):
        gold = torch.tensor([[NUMBER[tag] for tag in row]])
        total -= float(crf.chain(rows_of(crf, [sentence])).score(gold)[0])
    return total


def single(text: str) -> list[list[str]]:
    return [[word] for word in text.split()]


def pairs(text: str) -> list[list[str]]:
    """Two attributes a token, and none for "the"."""
    return [[word, f"ends {word[-1]}"] if word != "the" else [] for word in text.split()]


@pytest.mark.parametrize("attributes", [single, pairs])
@pytest.mark.parametrize("chained", [True, False])
def test_counts_give_the_generative_joint(attributes: Any, chained: bool) -> None:
    """[S4.67, 69]: p(y) Π p(a | y) and Π p(y_t | y_{t-1}) Π p(a | y_t), computed from dicts of counts."""
    s = 0.3
    data = [attributes(text) for text in WORDS]
    crf = counted(data, STATES, s, chained)
    found = Counter(a for sentence in data for token in sentence for a in token)
    tokens = zip(itertools.chain(*data), "".join(STATES), strict=True)
    emitted = Counter((a, y) for token, y in tokens for a in token)
    for (a, y), n in list(emitted.items()):
        if found[a] == 1:
            emitted["?", y] += n
    symbols = [*found, "?"]
    totals = {y: sum(emitted[a, y] for a in symbols) + s * len(symbols) for y in "DNV"}
    starts, labels = Counter(ys[0] for ys in STATES), Counter("".join(STATES))
    arcs = Counter(pair for ys in STATES for pair in itertools.pairwise(ys))

    def share(counts: Any, key: Any, all_keys: list[Any]) -> float:
        return (counts[key] + s) / sum(counts[each] + s for each in all_keys)

    for text in ("the dog sleeps", "cat unicorn", "gryphon"):
        x = attributes(text)
        chain = crf.chain(rows_of(crf, [x]))
        total = 0.0
        for path in itertools.product("DNV", repeat=len(x)):
            p = 1.0
            for i, y in enumerate(path):
                if not chained:
                    p *= share(labels, y, list("DNV"))
                elif i == 0:
                    p *= share(starts, y, list("DNV"))
                else:
                    p *= share(arcs, (path[i - 1], y), [(path[i - 1], other) for other in "DNV"])
                for a in x[i]:
                    p *= (emitted[a if a in found else "?", y] + s) / totals[y]
            score = chain.score(torch.tensor([[NUMBER[y] for y in path]]))
            assert float(score) == pytest.approx(math.log(p), abs=1e-5)  # float32 weights
            total += p
        assert float(chain.log_partition) == pytest.approx(math.log(total), abs=1e-5)  # ln p(x)


def test_with_one_attribute_a_token_it_is_the_hmm_distribution() -> None:
    texts = [f"{text} sleeps" for text in WORDS]  # no word occurs once: nothing is counted twice
    states = [f"{row}V" for row in STATES]
    crf = counted([single(text) for text in texts], states, 0.5, True)
    number = {word: i for i, word in enumerate(dict.fromkeys(" ".join(texts).split()))}
    observed = [[number[word] for word in text.split()] for text in texts]
    hmm = HMM.from_tagged([[NUMBER[y] for y in row] for row in states], observed, 3, len(number) + 1, smoothing=0.5)
    for text in ("the cat barks", "zebra sleeps", "dog"):
        x = torch.tensor([[number.get(word, len(number)) for word in text.split()]])
        chain = crf.chain(rows_of(crf, [single(text)]))
        torch.testing.assert_close(chain.log_partition, hmm.log_prob(x), atol=1e-5, rtol=0)
        torch.testing.assert_close(chain.marginals, hmm.posterior(x).marginals, atol=1e-5, rtol=0)


def test_all_sentences_of_a_length_have_probability_one() -> None:
    crf = counted([single(text) for text in WORDS], STATES, 0.2, True)
    words = [*dict.fromkeys(" ".join(WORDS).split()), "never seen"]
    texts = [[[a], [b]] for a in words for b in words]
    assert float(crf.chain(rows_of(crf, texts)).log_partition.exp().sum()) == pytest.approx(1.0, abs=1e-5)


def test_scikit_learn_finds_the_same_naive_bayes() -> None:
    naive_bayes = pytest.importorskip("sklearn.naive_bayes", reason="scikit-learn is not installed")
    data = [pairs(f"{text} sleeps") for text in WORDS]
    states = [f"{row}V" for row in STATES]
    crf = counted(data, states, 0.7, False)
    names = list(dict.fromkeys(a for x in data for token in x for a in token))
    dense = np.array([[token.count(a) for a in [*names, "?"]] for x in data for token in x])
    gold = np.array([NUMBER[y] for row in states for y in row])
    prior = (np.bincount(gold) + 0.7) / (len(gold) + 3 * 0.7)
    theirs = naive_bayes.MultinomialNB(alpha=0.7, class_prior=prior).fit(dense, gold)
    found = np.concatenate(crf.marginals(rows_of(crf, data)))
    np.testing.assert_allclose(found, theirs.predict_proba(dense), atol=1e-6)


def test_values_are_counts() -> None:
    """An attribute of value 2 is one that was drawn twice."""
    index = KeyIndex()
    ids = index.add(keys_of(["a", "b", "a"]))
    gold, lengths = np.array([0, 1]), np.array([2])
    valued = AttributeRows(lengths, np.array([0, 2, 3]), ids, np.array([2.0, 1.0, 1.0]))
    repeated = AttributeRows(lengths, np.array([0, 3, 4]), np.array([0, 0, 1, 0], np.int32))
    parameters = counted_parameters(valued, gold, index, 2, transitions=True)
    for one, other in zip(
        log_frequencies(valued, gold, parameters, 0.5), log_frequencies(repeated, gold, parameters, 0.5), strict=True
    ):
        np.testing.assert_allclose(one, other)
    negative = AttributeRows(lengths, np.array([0, 2, 3]), ids, np.array([2.0, -1.0, 1.0]))
    with pytest.raises(ScoreError, match=r"at least 0; got -1"):
        log_frequencies(negative, gold, parameters, 0.5)


# --- as taggers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", OTHERS)
def test_every_model_learns_answers_and_survives_the_disk(model: Kind, tmp_path: Path) -> None:
    tagger = FeatureTagger.fit(TRAIN, LearningConfig(model=model, max_iterations=None if KINDS[model].counted else 15))
    assert tagger.evaluate(TEST)["score"] > 0.75
    tagger.save(tmp_path / "model")
    again = FeatureTagger.load(tmp_path / "model")
    assert again.config.model == model and again.crf.normalised == KINDS[model].normalised
    assert again.tag(TEST) == tagger.tag(TEST)
    assert again.confidences(TEST[:3]) == tagger.confidences(TEST[:3])
    assert again.crf.index.find(keys_of(again.names)).tolist() == list(range(len(again.names)))
    assert KINDS[model].phrase[2:] in (tmp_path / "model" / "MODEL_CARD.md").read_text()
    shares = [analysis.probability for analysis in again.analyses(TEST[:1], 5)[0]]
    assert shares == sorted(shares, reverse=True) and sum(shares) <= 1 + 1e-9
    assert str(again.explain(TEST[:1])[0]).startswith(TEST[0].words[0])


@pytest.mark.parametrize("model", ["memm", "logistic"])
def test_an_l1_term_makes_them_sparse(model: Kind) -> None:
    dense = FeatureTagger.fit(TRAIN, LearningConfig(model=model, max_iterations=15))
    sparse = FeatureTagger.fit(TRAIN, LearningConfig(model=model, c1=1.0, c2=0.0, max_iterations=60))
    assert sparse.n_parameters < dense.n_parameters / 5
    assert sparse.evaluate(TEST)["score"] > 0.75


def test_without_b_the_hmm_is_naive_bayes() -> None:
    templates = Templates.parse(["U0:%x[0,0]", "U1:%x[0,1]"])
    alone, hmm = (
        FeatureTagger.fit(TRAIN, LearningConfig(model=model), templates=templates) for model in ("naive-bayes", "hmm")
    )
    np.testing.assert_array_equal(alone.crf.weights, hmm.crf.weights)


def test_the_votes_of_an_hmm_add_up_to_the_joint() -> None:
    tagger = FeatureTagger.fit(TRAIN, LearningConfig(model="hmm"))
    stranger = Sentence(("Xyzzy", *TEST[0].words[1:]), features=TEST[0].features)
    (votes,) = tagger.explain([stranger])
    best = tagger.labels.vocabulary.indices([each.label for each in votes.tokens])
    score = tagger.chain([stranger]).score(torch.tensor([best]))
    assert sum(token.score for token in votes.tokens) == pytest.approx(float(score))
    assert "(unknown attribute)" in {vote.name for vote in votes.tokens[0].votes}


@pytest.mark.parametrize("settings", [dict(algorithm="sgd"), dict(c1=1.0), dict(min_count=2.0)])
def test_counting_takes_no_learner(settings: dict[str, Any]) -> None:
    with pytest.raises(ScoreError, match=r"(algorithm sgd|c1 1|min_count 2) cannot be combined with model hmm"):
        LearningConfig(model="hmm", **settings)


def test_settings_that_cannot_be() -> None:
    with pytest.raises(ScoreError, match="model must be one of crf, memm"):
        LearningConfig(model="svm")  # type: ignore[arg-type]
    with pytest.raises(ScoreError, match=r"smoothing must be above 0 and finite; got 0"):
        LearningConfig(model="hmm", smoothing=0.0)
    with pytest.raises(ScoreError, match="algorithm perceptron cannot be combined with model memm"):
        LearningConfig("perceptron", model="memm")
    unknown = np.array([0, -1])
    rows = AttributeRows(np.array([2]), np.array([0, 1, 2]), np.array([0, 0], np.int32))
    parameters = Parameters.of(rows, unknown, 1, 1)
    with pytest.raises(ScoreError, match="needs a label for every token"):
        LocalLikelihood(rows, unknown, parameters)
    with pytest.raises(ScoreError, match="needs a label for every token"):
        counted_parameters(rows, unknown, KeyIndex(), 1, transitions=True)


# --- label bias ----------------------------------------------------------------------------------------------

RIB, ROB = Sentence(tuple("rib"), ("A1", "A2", "A3")), Sentence(tuple("rob"), ("B1", "B2", "B3"))
HERE, AHEAD = ["U0:%x[0,0]", "B"], ["U0:%x[0,0]", "U1:%x[1,0]", "B"]


@pytest.mark.parametrize("c2", [0.1, 0.01, 0.001])
def test_label_bias(c2: float) -> None:
    """Both words begin with r, rob is the more frequent one, and only the middle letter tells them apart.

    The CRF lets that letter speak for the tag before it. In the MEMM, p(A1 | r) and p(B1 | r) are settled before it is
    seen, and what follows must share out all of that mass: rib is tagged as rob, however little c2 holds back the
    weights. An attribute that looks ahead cures it [S4.306, 308].
    """
    train = [RIB, ROB, ROB, ROB] * 10

    def tagger(model: Kind, templates: list[str]) -> FeatureTagger:
        settings = LearningConfig(model=model, c2=c2)
        return FeatureTagger.fit(TaggedData(train, "plain"), settings, templates=Templates.parse(templates))

    crf, memm, ahead = tagger("crf", HERE), tagger("memm", HERE), tagger("memm", AHEAD)
    assert crf.tag([RIB, ROB]) == [list(RIB.tags or ()), list(ROB.tags or ())]
    assert memm.tag([RIB, ROB]) == [list(ROB.tags or ()), list(ROB.tags or ())]
    assert ahead.tag([RIB, ROB]) == crf.tag([RIB, ROB])
    first = memm.distribution([RIB]).marginals[0, 0, memm.labels.vocabulary.to_list().index("A1")]
    assert float(first) <= 0.26  # no more than its share of the data, whatever comes next
    assert float(crf.distribution([RIB]).marginals[0, 0, crf.labels.vocabulary.to_list().index("A1")]) > 0.8
