"""Attention models: likelihoods against their beams, learning, copying, subwords, storage, objectives."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch

import trelliswork as tw
from trelliswork.data import PairFormat, Sentence
from trelliswork.errors import TrellisworkError
from trelliswork.fst import Acceptor
from trelliswork.models.transducers.attention.answering import by_agreement, similarity
from trelliswork.models.transducers.attention.learning import likelihood, log_probs_of, reinforce, risk, scheduled
from trelliswork.models.transducers.attention.network import END_PLACE, AttentionNetwork
from trelliswork.models.transducers.config import AttentionConfig
from trelliswork.nn.decoders.constraints import AcceptorConstraint
from trelliswork.nn.decoders.generation import keep_best
from trelliswork.training import TrainingConfig, train

LETTERS = PairFormat("characters", "characters", "none")
WORDS = PairFormat("blanks", "blanks", "none")
SMALL: dict[str, Any] = {"dim": 16, "hidden": 16, "dropout": 0.0, "smoothing": 0.0}
TRANSFORMER = {"encoder": "transformer", "decoder": "transformer", "heads": 2}
KINDS: dict[str, dict[str, Any]] = {
    "luong": {},
    "bahdanau": {"decoder": "bahdanau", "coverage": "sum", "coverage_loss": 0.5},
    "lstm": {"encoder": "lstm", "layers": 2, "feeding": False},
    "transformer": TRANSFORMER,
    "copy": {"copy": True},
    "copying transformer": {"copy": True, **TRANSFORMER},
    "joint copy": {"copy": True, "copying": "joint"},
    "fertility": {"decoder": "bahdanau", "coverage": "fertility"},
    "recurrent coverage": {"attention": "additive", "coverage": "recurrent"},
    "hierarchical": {"output": "hierarchical"},
    "shared": {"shared": True, "tied": True},
    "sampled": {"output": "sampled", "n_samples": 3},
}


def reversals(longest: int = 3) -> list[Sentence]:
    strings = [s for n in range(1, longest + 1) for s in itertools.product("abc", repeat=n)]
    return [Sentence(s, target=s[::-1]) for s in strings]


def made(kind: str = "luong", **more: Any) -> AttentionNetwork:
    config = AttentionConfig(**{**SMALL, **KINDS[kind], **more})
    return AttentionNetwork.from_data(reversals(), config, format=LETTERS, seed=1).eval()


@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_of_a_beam_are_those_of_the_model(kind: str) -> None:
    model = made(kind)
    with torch.no_grad():
        for source, answer in zip(["abc", "c"], model.predict(["abc", "c"], top_k=5), strict=True):
            assert len({each.value for each in answer.alternatives}) == len(answer.alternatives) > 1
            assert answer.value == answer.alternatives[0].value
            chances = [each.probability for each in answer.alternatives]
            assert chances == sorted(chances, reverse=True)
            pairs = [Sentence(tuple(source), target=tuple(each.value)) for each in answer.alternatives]
            log_p = log_probs_of(model, model.encode(pairs, with_tags=True))
            assert chances == pytest.approx(log_p.exp().tolist(), rel=1e-4)
            parts = math.prod(part.probability for part in answer.parts)
            assert parts >= answer.probability * 0.999  # the end is no part
            assert [part.label for part in answer.parts] == list(answer.value)
            assert all(0 <= part.start < part.end == part.start + 1 <= len(source) for part in answer.parts)


@pytest.mark.parametrize("kind", ["luong", "lstm", "transformer", "hierarchical", "shared", "joint copy"])
def test_the_loss_is_minus_the_log_probability(kind: str) -> None:
    model = made(kind)
    pairs = model.encode(reversals(), with_tags=True)
    with torch.no_grad():
        torch.testing.assert_close(model.loss(pairs), -log_probs_of(model, pairs).sum())
        alone = sum(model.loss([pair]) for pair in pairs)
        torch.testing.assert_close(model.loss(pairs), alone, rtol=1e-4, atol=1e-3)


def test_coverage_costs_what_is_attended_to_again() -> None:
    model = made("bahdanau")
    pairs = model.encode(reversals()[:5], with_tags=True)
    with torch.no_grad():
        assert float(model.loss(pairs)) > float(-log_probs_of(model, pairs).sum()) + 0.1


def test_the_best_answer_does_not_depend_on_how_many_are_wanted() -> None:
    model = made(length_penalty=0.7)
    answers = [model.predict(["abca", "b"], top_k=k) for k in (0, 1, 2, 5)]
    for each in answers:
        assert [a.value for a in each] == [a.value for a in answers[0]]
        assert [a.probability for a in each] == pytest.approx([a.probability for a in answers[0]])


def test_vectors_of_symbols_are_scaled_for_a_transformer() -> None:
    """[S4, embeddings]: what encoder and decoder are given is √d times the rows of the tables, d = 16."""
    for kind, factor in (("transformer", 4.0), ("luong", 1.0)):
        model = made(kind).eval()
        given: list[torch.Tensor] = []
        model.encoder.register_forward_pre_hook(lambda _, inputs, given=given: given.append(inputs[0]))  # type: ignore[misc]
        pair = model.encode(reversals()[:1], with_tags=True)[0]
        model.read([pair])
        torch.testing.assert_close(given[0][0], factor * model.source_vectors.weight[pair.source])
        symbols = torch.tensor([[3, 4]])
        torch.testing.assert_close(model.embed(symbols), factor * model.target_vectors.weight[symbols])


def test_dropout_and_the_first_layer_of_a_transformer_are_settings() -> None:
    pairs = reversals()[:4]
    plain = made("transformer")
    assert isinstance(plain.encoder.entry, torch.nn.Linear)
    assert not hasattr(made("transformer", project=False).encoder.entry, "weight")
    assert isinstance(made("transformer", project=False, dim=8).encoder.entry, torch.nn.Linear)
    for settings in ({"attention_dropout": 0.5}, {"position_dropout": 0.5}):
        model = made("transformer", **settings)
        model.load_state_dict(plain.state_dict())
        for part in (plain.train(), model.train()):
            torch.manual_seed(1)
            part.seen = float(part.loss(pairs))  # type: ignore[assignment]
        assert plain.seen != pytest.approx(model.seen, rel=1e-4), settings  # type: ignore[arg-type]
        with torch.no_grad():
            assert float(model.eval().loss(pairs)) == pytest.approx(float(plain.eval().loss(pairs)))
    layer = made("transformer", attention_dropout=0.9).decoder.layers[0].train()  # type: ignore[union-attr, index]
    cross = layer.cross_keys_values(torch.randn(1, 5, 16))
    weights = [layer._attend_to_input(torch.ones(1, 1, 16), cross, torch.ones(1, 5, dtype=torch.bool))[0] for _ in "ab"]
    assert not torch.equal(*weights)


@pytest.mark.parametrize(
    ("kind", "epochs", "lr"), [("luong", 30, 0.01), ("bahdanau", 30, 0.01), ("transformer", 60, 0.004)]
)
def test_it_learns_to_reverse(kind: str, epochs: int, lr: float) -> None:
    model = made(kind, dim=32, hidden=32)
    train(model, reversals(), None, TrainingConfig(epochs=epochs, lr=lr, batch_tokens=100, clip=1.0))
    scores = model.evaluate(reversals())
    assert scores["exact match"] > 0.85, scores
    answer = model.predict(["abc"])[0]
    assert answer.value == "cba"


@pytest.mark.parametrize("copying", ["gate", "joint"])
def test_attention_finds_what_is_copied(copying: str) -> None:
    """Symbols that were never seen are written, and aligned with their places."""
    names = [f"{a}{b}" for a in "abcdefg" for b in "hijklm"]
    pairs = [Sentence(("say", name, "please"), target=("said", name)) for name in names]
    config = AttentionConfig(**{**SMALL, "dim": 24, "hidden": 24, "copy": True, "copying": copying, "min_count": 2})
    model = AttentionNetwork.from_data(pairs, config, format=WORDS)
    assert "ah" not in model.target
    train(model, pairs, None, TrainingConfig(epochs=25, lr=0.01, batch_tokens=60, clip=1.0))
    answer = model.predict(["say xyz please"])[0]
    assert answer.value == "said xyz"
    assert answer.parts[1].label == "xyz"
    if copying == "gate":  # a joint softmax copies by scores of its own, not by attention
        assert answer.parts[1].start == 1


def test_subwords_are_joined_and_aligned_with_whole_words() -> None:
    pairs = [Sentence((a, b), target=(b + a, a)) for a in ("low", "new", "old") for b in ("er", "est", "ly")]
    config = AttentionConfig(**{**SMALL, "subwords": 6, "shared": True})
    model = AttentionNetwork.from_data(pairs, config, format=WORDS).eval()
    assert model.source is model.target and model.pieces.stored()
    encoded = model.encode(pairs, with_tags=True)[0]
    assert encoded.target is not None
    assert model.pieces.join(model.spelled(encoded, encoded.target.tolist())) == ("erlow", "low")
    answer = model.predict(["low er"])[0]
    assert answer.value == " ".join(part.label for part in answer.parts)
    assert all(part.start in (0, 1) for part in answer.parts)
    assert model.knows("low") and not model.knows("xyz")
    with pytest.raises(TrellisworkError, match="leave subwords out"):
        AttentionNetwork.from_data(pairs, config, format=LETTERS)


@pytest.mark.parametrize("kind", ["shared", "copying transformer", "joint copy", "recurrent coverage"])
def test_a_stored_model_answers_the_same(kind: str, tmp_path: Any) -> None:
    model = made(kind)
    model.save(tmp_path / "model")
    again = tw.load(tmp_path / "model")
    for a, b in zip(model.predict(["abc", "b"], top_k=3), again.predict(["abc", "b"], top_k=3), strict=True):
        assert [each.value for each in a.alternatives] == [each.value for each in b.alternatives]
        assert a.probability == pytest.approx(b.probability)
    if kind == "shared":
        assert again.source_vectors is again.target_vectors and again.output.weight is again.target_vectors.weight


# Objectives


def test_scheduled_sampling_without_own_symbols_is_the_likelihood() -> None:
    model = made("transformer").train()
    pairs = model.encode(reversals(2), with_tags=True)
    torch.testing.assert_close(scheduled(model, pairs), likelihood(model, pairs))
    model.begin_epoch(1, 3)
    assert model.own_share == 0
    model.begin_epoch(3, 3)
    assert model.own_share == model.config.own_symbols
    torch.manual_seed(0)
    assert abs(scheduled(model, pairs).item() - likelihood(model, pairs).item()) > 1e-3


def test_the_risk_is_the_expected_cost_of_the_candidates() -> None:
    """With sharpness 1, shares are probabilities normalised over the true target and the different samples."""
    model = made(n_candidates=4, sharpness=1.0)
    pairs = model.encode([Sentence(("a", "b"), target=("b", "a")), Sentence(("c",), target=("c",))], with_tags=True)
    torch.manual_seed(3)
    found = risk(model, pairs)
    torch.manual_seed(3)
    with model.evaluating():
        samples = model.samples(pairs, 4)
    expected = 0.0
    for pair, drawn in zip(pairs, samples, strict=True):
        gold = tuple(pair.target.tolist())  # type: ignore[union-attr]
        candidates = list(dict.fromkeys([gold, *(pieces for pieces, _ in drawn)]))
        known = [type(pair)(pair.source, torch.tensor(each, dtype=torch.long), pair.symbols) for each in candidates]
        chances = log_probs_of(model, known).exp().tolist()
        costs = [_distance(each, gold) / len(gold) for each in candidates]
        expected += sum(p * c for p, c in zip(chances, costs, strict=True)) / sum(chances)
    assert float(found.detach()) == pytest.approx(expected, rel=1e-4)


def _distance(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    if not a or not b:
        return len(a) + len(b)
    return min(_distance(a[1:], b) + 1, _distance(a, b[1:]) + 1, _distance(a[1:], b[1:]) + (a[0] != b[0]))


def test_reinforce_weighs_samples_by_what_they_gain_over_the_others() -> None:
    model = made(n_candidates=3)
    pairs = model.encode([Sentence(("a", "b"), target=("b", "a"))], with_tags=True)
    gold = pairs[0].target
    assert gold is not None
    drawn = [tuple(gold.tolist()), (int(gold[0]),), (int(gold[1]), int(gold[1]))]
    model.samples = lambda pairs, n, **_: [[(each, 0.0) for each in drawn]]  # type: ignore[method-assign, assignment]
    rewards = [-0.0, -0.5, -0.5]
    known = [type(pairs[0])(pairs[0].source, torch.tensor(each), pairs[0].symbols) for each in drawn]
    log_p = log_probs_of(model, known)
    expected = -sum((rewards[i] - (sum(rewards) - rewards[i]) / 2) * log_p[i] / 3 for i in range(3))
    torch.testing.assert_close(reinforce(model, pairs), expected)


@pytest.mark.parametrize("learn_by", ["risk", "reinforce"])
def test_learning_from_own_targets_makes_them_better(learn_by: str) -> None:
    model = made(dim=32, hidden=32, learn_by=learn_by, n_candidates=8, sharpness=0.5)
    pairs = reversals(2)
    likely = TrainingConfig(epochs=8, lr=0.01, batch_tokens=100, clip=1.0)
    object.__setattr__(model.config, "learn_by", "likelihood")
    train(model, pairs, None, likely)
    before = log_probs_of(model, model.encode(pairs, with_tags=True)).exp().mean().item()
    object.__setattr__(model.config, "learn_by", learn_by)
    train(model, pairs, None, TrainingConfig(epochs=15, lr=0.003, batch_tokens=100, clip=1.0, decay="constant"))
    after = log_probs_of(model, model.encode(pairs, with_tags=True)).exp().mean().item()
    assert after > before + 0.03, (before, after)


# Decoding


def test_minimum_risk_prefers_what_agrees_with_all_samples() -> None:
    samples = [(tuple(s), -1.0) for s in ("abcd", "abce", "abcf", "zzzz", "zzzz")]
    means = {s: sum(similarity([(s, other) for other, _ in samples])) / 5 for s in dict.fromkeys(s for s, _ in samples)}
    assert [s for s, _ in by_agreement(samples)] == sorted(means, key=lambda s: -means[s])
    assert by_agreement(samples)[0][0] == tuple("abcd")
    model = made(decoding="minimum-risk", n_candidates=20)
    assert model.predict(["abc"])[0].value == model.predict(["abc"])[0].value


def test_samples_follow_a_changed_distribution() -> None:
    model = made()
    pairs = model.encode([Sentence(("a", "b"))])
    with model.evaluating():
        drawn = model.samples(pairs, 6, change=lambda log_probs: keep_best(log_probs, 1))[0]
        greedy = AttentionNetwork.written(made(beam=1), pairs)[0][0][0]
    assert {pieces for pieces, _ in drawn} == {greedy}


@pytest.mark.parametrize("kind", ["luong", "copy", "transformer"])
def test_answers_are_strings_of_a_constraint(kind: str) -> None:
    model = made(kind)
    language = Acceptor.from_strings([["a", "b"], ["c", "c", "c"]])
    model.constraint = lambda sources: AcceptorConstraint(language, model.target.to_list(), 2)
    for answer in model.predict(["abc", "bz"], top_k=5):  # z is unknown, and could be copied
        assert {each.value for each in answer.alternatives} == {"ab", "ccc"}


@pytest.mark.parametrize("kind", ["luong", "transformer"])
def test_a_very_long_source_has_a_target_like_those_of_training(kind: str) -> None:
    """A search that followed the length of the source would take hours, and find nothing that was ever learned."""
    model = made(kind)
    assert model.config.max_target == 2 * 3 + 5
    answer = model.predict(["abc" * 1000], top_k=2)[0]
    assert len(answer.value) <= 11
    short = model.predict(["a"])[0]
    assert len(short.value) <= model.config.longest * (1 + 5)


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"hidden": 33}, "must be even"),
        ({"hidden": 36, **TRANSFORMER, "heads": 4}, "twice the heads"),
        ({"tied": True, "dim": 8}, "tied needs equal dim and hidden"),
        ({"copy": True, "output": "nce"}, "copy needs the output softmax"),
        ({"beam": 0}, "beam must lie in 1.."),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, Any], part: str) -> None:
    with pytest.raises(TrellisworkError, match=part):
        AttentionConfig(**settings)


def test_noise_is_drawn_by_the_counts_of_targets() -> None:
    """The begin and unknown symbols are never written, so that they are no noise; the end is, once a target."""
    pairs = [Sentence(("a",), target=("x", "y")), Sentence(("b",), target=("x",))]
    model = AttentionNetwork.from_data(pairs, AttentionConfig(dim=4, hidden=8, heads=1, output="nce", n_samples=4))
    counts = {END_PLACE: 2, model.target.index("x"): 2, model.target.index("y"): 1}
    for place in range(len(model.target)):
        assert float(model.output.noise[place]) == pytest.approx(counts.get(place, 0) / 5, abs=1e-3)
    assert any("label smoothing is not used with output nce" in note for note in model.notes(pairs, pairs))
