"""Neural language models against plain loops: carried states, masks, mixtures, caches, samples, resuming."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.stats import chisquare
from torch import nn

from trelliswork.data import Sentence
from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.models import load
from trelliswork.models.language.config import (
    GenerationSettings,
    MixtureConfig,
    NgramConfig,
    RecurrentConfig,
    TransformerConfig,
    WindowConfig,
)
from trelliswork.models.language.corpus import TextReading
from trelliswork.models.language.limited import TransformerLanguageModel, WindowLanguageModel
from trelliswork.models.language.mixture import Mixture, cache_log_probs, log_linear_mixture, mixture_weights
from trelliswork.models.language.network import IGNORED, NeuralLanguageModel
from trelliswork.models.language.ngram import NgramLanguageModel
from trelliswork.models.language.recurrent import LanguageModelWords, RecurrentLanguageModel
from trelliswork.models.language.sampling import beam_search, samples
from trelliswork.models.taggers.networks.config import TaggerConfig
from trelliswork.models.taggers.networks.tagger import Tagger
from trelliswork.nn.encoders.forward import ForwardReader, ForwardShares
from trelliswork.nn.encoders.transformer import CausalTransformer
from trelliswork.training import TrainingConfig, train
from trelliswork.training.progress import Progress

TEXT = [Sentence(tuple(line.split())) for line in ["a b a b", "a b c", "a a b", "c a b", "b", "<unk> a b a"] * 4]
UNITS = [each.words for each in TEXT]
RECURRENT = {"word_dim": 6, "hidden": 5, "steps": 4}
CASES: list[tuple[type[NeuralLanguageModel], Any]] = [
    *((RecurrentLanguageModel, RecurrentConfig(cell=cell, **RECURRENT)) for cell in ("elman", "gru", "lstm")),  # type: ignore[arg-type]
    (RecurrentLanguageModel, RecurrentConfig(context="sentence", tied=False, layers=1, **RECURRENT)),  # type: ignore[arg-type]
    (WindowLanguageModel, WindowConfig(word_dim=4, hidden=5, window=3, direct=True, steps=4)),
    (WindowLanguageModel, WindowConfig(word_dim=4, hidden=5, window=1, steps=4)),
    (TransformerLanguageModel, TransformerConfig(word_dim=8, layers=2, heads=2, span=5, steps=4)),
    (TransformerLanguageModel, TransformerConfig(word_dim=8, heads=2, span=9, pattern="strided", steps=4)),
]
NAMES = ["elman", "gru", "lstm", "sentence", "window", "one-word", "transformer", "strided"]
every_model = pytest.mark.parametrize(("kind", "config"), CASES, ids=NAMES)


def made(kind: type[NeuralLanguageModel], config: Any, text: Any = TEXT) -> Any:
    model = kind.from_text(text, config)
    with torch.no_grad():  # so that no unit is as probable as another
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(3)), alpha=0.3)
    return model.eval()


def numbers_of(model: NeuralLanguageModel) -> torch.Tensor:
    return torch.tensor([n for each in UNITS for n in model.numbers(each)])


def step_by_step(model: Any, text: torch.Tensor) -> tuple[list[float], Any]:
    """Read one unit after the other, and return log p of each with the state after the last."""
    logs, state, before = [], model.first_state(1), len(model.names)
    with torch.no_grad():
        for unit in text.tolist():
            hidden, state = model.read(torch.tensor([[before]]), state)
            logs.append(float(model.output.log_probs(hidden[0, 0])[unit]))
            before = unit
    return logs, state


@every_model
def test_scores_are_those_of_reading_unit_by_unit(kind: type[NeuralLanguageModel], config: Any) -> None:
    model = made(kind, config)
    for units, logs in zip(UNITS[:6], model.log_probs(UNITS[:6]), strict=True):
        assert logs == pytest.approx(step_by_step(model, torch.tensor(model.numbers(units)))[0], abs=1e-5)
        for i, unit in enumerate((*units, None)):
            following = model.next_log_probs(units[:i])
            assert np.exp(following).sum() == pytest.approx(1.0, abs=1e-5)
            at = len(model.names) if unit is None else model.names.index(unit)
            assert following[at] == pytest.approx(logs[i], abs=1e-5)


@every_model
def test_a_text_is_read_in_one_go_or_sentence_by_sentence(kind: type[NeuralLanguageModel], config: Any) -> None:
    model = made(kind, config)
    logs = np.concatenate(model.text_log_probs(UNITS))
    alone = np.concatenate(model.log_probs(UNITS))
    carried = step_by_step(model, numbers_of(model))[0]
    assert logs == pytest.approx(alone if config.context == "sentence" else carried, abs=1e-5)
    assert (np.abs(logs - alone).max() > 1e-4) == (config.context == "text" and getattr(config, "window", 3) > 1)


@every_model
def test_batches_are_a_text_in_order_whose_state_is_carried(kind: type[NeuralLanguageModel], config: Any) -> None:
    model = made(kind, config)
    batches = model.in_order(TEXT, TrainingConfig(batch_tokens=12))
    if config.context == "sentence":
        assert batches is None
        return
    assert batches is not None and len(batches) > 3 and batches[0].inputs.shape == (4, 3)
    text, n = numbers_of(model), 0
    streams = [torch.cat([each.targets[:, i] for each in batches]) for i in range(3)]
    assert torch.equal(torch.cat([each[each != IGNORED] for each in streams]), text)
    losses, states = 0.0, [model.first_state(1)] * 3
    starts = [0, *itertools.accumulate(int((each != IGNORED).sum()) for each in streams)]
    with torch.no_grad():
        for batch in batches:
            losses += float(model.loss([batch]))
            n += len(batch)
            assert len(batch.sentences) == 3
        plain = 0.0
        for i, state in enumerate(states):
            before = len(model.names) if i == 0 else int(text[starts[i] - 1])
            for unit in text[starts[i] : starts[i + 1]].tolist():
                hidden, state = model.read(torch.tensor([[before]]), state)
                plain -= float(model.output.log_probs(hidden[0, 0])[unit])
                before = unit
    assert n == len(text) == sum(map(len, batches))
    assert losses == pytest.approx(plain, rel=1e-5)
    assert batches[0].sentences[0] == TEXT[0]


def test_streams_of_a_scored_text_overlap_and_cover_it() -> None:
    """A window of one unit needs no more than the unit before, so that streams cannot differ from one long run."""
    model = made(WindowLanguageModel, WindowConfig(word_dim=4, hidden=5, window=2))
    text = numbers_of(model).repeat(9)
    assert model.stream_log_probs(text, 3) == pytest.approx(model.stream_log_probs(text, 1), abs=1e-5)
    states = model.hidden_states(text, 3)
    assert torch.allclose(states, model.hidden_states(text), atol=1e-5) and len(states) == len(text)
    recurrent = made(*CASES[2])
    assert recurrent.stream_log_probs(text, 3) == pytest.approx(recurrent.stream_log_probs(text, 1), abs=1e-3)


# Layers


@pytest.mark.parametrize("cell", ["elman", "gru", "lstm"])
def test_layers_are_those_of_torch(cell: str) -> None:
    reader = ForwardReader(3, [4, 4], cell)  # type: ignore[arg-type]
    plain = {"elman": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}[cell](3, 4, 2)
    for i in range(2):
        for name, value in (("weight_ih", reader.w_in), ("weight_hh", reader.w_on), ("bias_ih", reader.biases)):
            getattr(plain, f"{name}_l{i}").data.copy_(value[i].data)
        getattr(plain, f"bias_hh_l{i}").data.zero_()
    vectors = torch.randn(6, 2, 3)
    states, after = reader(vectors)
    assert torch.allclose(states, plain(vectors)[0], atol=1e-6)
    first, state = reader(vectors[:2])
    rest, last = reader(vectors[2:], state)
    assert torch.allclose(torch.cat([first, rest]), states, atol=1e-6)
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(after, last, strict=True))


@pytest.mark.parametrize("cell", ["elman", "gru", "lstm"])
def test_masks_are_the_same_at_all_steps(cell: str) -> None:
    """Units of the state before that are dropped have no influence at any step, and the others have twice of it."""
    reader = ForwardReader(3, [4], cell, ForwardShares(0, 0, 0, 0.5)).double()  # type: ignore[arg-type]
    vectors, before = torch.randn(5, 1, 3, dtype=torch.float64), reader.w_on[0].detach().clone()
    torch.manual_seed(2)
    masked, _ = reader(vectors)
    torch.manual_seed(2)
    keep = torch.empty_like(before[0]).bernoulli_(0.5).div_(0.5)
    assert 0 < int((keep == 0).sum()) < 4
    reader.eval()
    reader.w_on[0].data.mul_(keep)
    assert torch.allclose(masked, reader(vectors)[0])
    both = ForwardReader(3, [4], cell, ForwardShares(output=0.5))  # type: ignore[arg-type]
    dropped = (both(torch.randn(50, 2, 3))[0] == 0).float().mean(0)
    assert set(dropped.unique().tolist()) == {0.0, 1.0}, "a unit is dropped at every step or at none"


@pytest.mark.parametrize("cell", ["elman", "gru", "lstm"])
def test_gradients_of_recurrent_layers(cell: str) -> None:
    reader = ForwardReader(2, [3, 2], cell).double()  # type: ignore[arg-type]
    vectors = torch.randn(3, 2, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: reader(x)[0], (vectors,))


def test_a_memory_is_the_same_as_a_long_context() -> None:
    """Pieces with a memory of span - 1 give what one long piece gives, wherever a text is cut."""
    for pattern, span in itertools.product(("dense", "strided"), (1, 4, 30)):
        reader = CausalTransformer(8, layers=3, heads=2, span=span, pattern=pattern).double().eval()  # type: ignore[arg-type]
        vectors = torch.randn(11, 2, 8, dtype=torch.float64)
        whole, _ = reader(vectors, reader.first_memory(2))
        memory, parts = reader.first_memory(2), []
        for part in vectors.split([1, 5, 3, 2]):
            states, memory = reader(part, memory)
            parts.append(states)
        assert torch.allclose(torch.cat(parts), whole)
        assert all(len(each) == min(11, span - 1) for each in memory)


def test_relative_scores_are_the_four_terms_and_masks_are_dense_attention() -> None:
    reader = CausalTransformer(8, layers=1, heads=2, span=7, pattern="strided", stride=2).double().eval()
    layer = reader.layers[0]
    layer.content_bias.data.normal_()
    layer.place_bias.data.normal_()
    vectors, n = torch.randn(6, 1, 8, dtype=torch.float64), 6
    place = torch.arange(n)
    distance = place[:, None] - place
    seen, rates = reader.sees(distance), torch.zeros(7, 8, dtype=torch.float64)
    for at, i in itertools.product(range(7), range(4)):
        rates[at, 2 * i : 2 * i + 2] = torch.tensor([math.sin(at / 1e4 ** (i / 4)), math.cos(at / 1e4 ** (i / 4))])
    plain = torch.zeros(n, 1, 8, dtype=torch.float64)
    keys, values = layer.keys_values(vectors[:, 0]).chunk(2, -1)
    queries, places = layer.queries(vectors[:, 0]), layer.places(rates)
    for head, i in itertools.product(range(2), range(n)):
        own = slice(4 * head, 4 * head + 4)
        visible = [j for j in range(i + 1) if (i - j <= 2 if head == 0 else (i - j) % 2 == 0)]
        assert visible == seen[head, i].nonzero().squeeze(1).tolist()
        q, u, v = queries[i, own], layer.content_bias[head], layer.place_bias[head]
        scores = torch.stack(
            [q @ keys[j, own] + q @ places[i - j, own] + u @ keys[j, own] + v @ places[i - j, own] for j in visible]
        )
        plain[i, 0, own] = (scores / 2).softmax(0) @ values[visible][:, own]
    relation = (distance.clamp(0, 6), seen, rates)
    assert torch.allclose(layer.attend(vectors, vectors, relation), layer.output(plain))
    inputs = vectors.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: reader(x, reader.first_memory(1))[0], (inputs,))


def test_a_window_is_bengios_equation() -> None:
    model = made(*CASES[4])
    units = ["a", "b", "c"]
    x = torch.cat([model.embedding.weight[model.names.index(unit)] for unit in units])
    x = x.view(3, 4).T.flatten()  # the dimensions of the embeddings one after the other
    hidden, n = model.hidden, len(model.names) + 1
    u, w = model.output.weight[:, :5], model.output.weight[:, 5:]
    scores = model.output.bias + w @ x + u @ (hidden.bias + hidden.weight @ x).tanh()
    assert scores.shape == (n,)
    assert model.next_log_probs(units) == pytest.approx(scores.log_softmax(0).tolist(), abs=1e-5)


# Samples and search


def test_samples_and_beams_are_of_the_model() -> None:
    model = made(*CASES[2])
    drawn = list(samples(model, ["a"], GenerationSettings(sample=400, longest=1, seed=5)))
    names = [*model.names, None]
    counts = [sum((each.units[0] if each.units else None) == name for each in drawn) for name in names]
    expected = np.exp(model.next_log_probs(["a"]))
    assert chisquare(counts, 400 * expected / expected.sum()).pvalue > 1e-3
    best = beam_search(model, [], 600, 3)[0]
    strings = [units for n in range(4) for units in itertools.product(model.names, repeat=n)]
    totals = [float(logs.sum()) for logs in model.log_probs(strings)]
    assert best.log_prob == pytest.approx(max(totals), abs=1e-4)


# Training


@every_model
def test_training_learns_and_resumes_with_the_same_bits(
    kind: type[NeuralLanguageModel], config: Any, tmp_path: Path
) -> None:
    settings = TrainingConfig(epochs=3, batch_tokens=12, lr=0.02, checkpoint_every=0, average="ema")

    class Stop(Progress):
        n = 0

        def batch(self, n_tokens: int, loss: float) -> None:
            self.n += n_tokens > 0
            if self.n == 12:
                raise KeyboardInterrupt

    whole = kind.from_text(TEXT, config)
    before = whole.evaluate(TEXT)["perplexity"]
    train(whole, TEXT, TEXT, settings, out=tmp_path / "whole", progress=Progress())
    assert whole.evaluate(TEXT)["perplexity"] < before
    train(kind.from_text(TEXT, config), TEXT, TEXT, settings, out=tmp_path / "cut", progress=Stop())
    again = kind.from_text(TEXT, config)
    result = train(again, TEXT, TEXT, settings, out=tmp_path / "cut", resume=True, progress=Progress())
    assert not result.interrupted and len(result.history) == 3
    for name, value in whole.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name
    loaded = load(tmp_path / "whole")
    assert isinstance(loaded, kind) and loaded.names == whole.names and loaded.config == config
    for one, other in zip(loaded.log_probs(UNITS), whole.log_probs(UNITS), strict=True):
        assert np.array_equal(one, other)


def test_half_precision_resumes_with_the_same_bits(tmp_path: Path) -> None:
    settings = TrainingConfig(epochs=1, batch_tokens=12, precision="bf16", checkpoint_every=0)

    class Stop(Progress):
        def batch(self, n_tokens: int, loss: float) -> None:
            if n_tokens and loss:
                self.n = getattr(self, "n", 0) + 1
                if self.n == 4:
                    raise KeyboardInterrupt

    models = [RecurrentLanguageModel.from_text(TEXT, CASES[2][1]) for _ in range(3)]
    try:
        train(models[0], TEXT, None, settings, out=tmp_path / "whole", progress=Progress())
    except TrellisworkError as error:
        pytest.skip(str(error))
    train(models[1], TEXT, None, settings, out=tmp_path / "cut", progress=Stop())
    train(models[2], TEXT, None, settings, out=tmp_path / "cut", resume=True, progress=Progress())
    for name, value in models[0].state_dict().items():
        assert torch.equal(value, models[2].state_dict()[name]), name


def test_a_text_in_order_needs_one_batch_in_a_step() -> None:
    model = RecurrentLanguageModel.from_text(TEXT, CASES[2][1])
    with pytest.raises(TrellisworkError, match="set accumulate to 1"):
        train(model, TEXT, None, TrainingConfig(accumulate=2), progress=Progress())


# Mixtures and caches


def test_a_cache_is_its_formula() -> None:
    states, text = torch.randn(600, 3, dtype=torch.float64), torch.randint(0, 4, (600,))
    logs = cache_log_probs(states, text, 7, 0.6)
    assert math.isnan(logs[0])
    for t in (1, 3, 8, 300, 511, 512, 599):
        places = range(max(0, t - 7), t)
        weights = {i: math.exp(0.6 * float(states[t] @ states[i])) for i in places}
        same = sum(weight for i, weight in weights.items() if text[i] == text[t])
        assert math.exp(logs[t]) == pytest.approx(same / sum(weights.values()))


def test_weights_of_mixtures_are_the_best() -> None:
    logs = np.log(np.random.default_rng(1).dirichlet(np.ones(3), 60).T)
    weights, mean = mixture_weights(logs)
    assert weights.sum() == pytest.approx(1) and (weights > 0).all()

    def loss(free: np.ndarray) -> float:
        odds = np.exp(np.append(free, 0.0))
        return -float(np.log((odds / odds.sum()) @ np.exp(logs)).mean())

    assert -mean == pytest.approx(minimize(loss, np.zeros(2)).fun, abs=1e-6)


def test_a_mixture_with_a_cache_against_its_parts(tmp_path: Path) -> None:
    network = made(*CASES[2])
    ngram = NgramLanguageModel.fit([" ".join(units) for units in UNITS], NgramConfig(order=2))
    mixture = Mixture.fit(UNITS, [network, ngram], MixtureConfig(cache=5))
    assert mixture.weights.sum() == pytest.approx(1) and mixture.flatness > 0
    first, second, cached = mixture.weights
    one, two = np.exp(np.concatenate(network.text_log_probs(UNITS))), np.exp(np.concatenate(ngram.log_probs(UNITS)))
    text = numbers_of(network)
    of_cache = np.exp(cache_log_probs(network.hidden_states(text), text, 5, mixture.flatness))
    mixed = np.exp(np.concatenate(mixture.text_log_probs(UNITS)))
    assert mixed[1:] == pytest.approx((first * one + second * two + cached * of_cache)[1:], abs=1e-6)
    assert mixed[0] == pytest.approx(((first * one + second * two) / (first + second))[0], abs=1e-6)
    for part in (network, ngram):
        assert mixture.evaluate(TEXT)["perplexity"] < part.evaluate(TEXT)["perplexity"]
    for units, logs in zip(UNITS[:3], mixture.log_probs(UNITS[:3]), strict=True):
        for i, unit in enumerate((*units, None)):
            following = mixture.next_log_probs(units[:i])
            assert np.exp(following).sum() == pytest.approx(1, abs=1e-5)
            at = len(mixture.names) if unit is None else mixture.names.index(unit)
            assert following[at] == pytest.approx(logs[i], abs=1e-5)
    mixture.save(tmp_path / "mixture")
    loaded = load(tmp_path / "mixture")
    assert isinstance(loaded, Mixture)
    assert np.concatenate(loaded.text_log_probs(UNITS)) == pytest.approx(np.log(mixed), abs=1e-5)
    assert "cache of 5 units" in str(loaded.describe().sections)


def test_a_log_linear_mixture_is_normalised_and_its_weights_the_best() -> None:
    network = made(*CASES[4])
    ngram = NgramLanguageModel.fit([" ".join(units) for units in UNITS], NgramConfig(order=3))
    text = UNITS[:6]
    mixture = Mixture.fit(text, [network, ngram], MixtureConfig(mixing="log-linear"))

    def loss(weights: np.ndarray) -> float:
        other = Mixture(mixture.config, mixture.models, np.array(weights))
        return -float(np.concatenate(other.log_probs(text)).sum())

    best = loss(mixture.weights)
    for step in (0.03, -0.03):
        assert best < loss(mixture.weights + np.array([step, 0])) and best < loss(mixture.weights + np.array([0, step]))
    logs = np.log([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
    plain = np.array([0.5, 0.3, 0.2]) ** 0.7 * np.array([0.1, 0.1, 0.8]) ** 1.2
    assert np.exp(log_linear_mixture(logs, np.array([0.7, 1.2]))) == pytest.approx(plain / plain.sum())


def test_models_that_do_not_fit_are_refused() -> None:
    ngram = NgramLanguageModel.fit(["a b"], NgramConfig(order=2))
    with pytest.raises(TrellisworkError, match="same units"):
        Mixture(MixtureConfig(), [made(*CASES[2]), ngram], np.ones(2) / 2)
    with pytest.raises(TrellisworkError, match="name a network first"):
        Mixture(MixtureConfig(cache=3), [ngram], np.ones(2) / 2)


# Texts at the edge


@every_model
@pytest.mark.parametrize("text", [["a"], ["a a a"], ["a b"] * 3, ["cafe\u0301 قط"], ["x " * 1000]], ids=range(5))
def test_small_and_strange_texts(kind: type[NeuralLanguageModel], config: Any, text: list[str]) -> None:
    sentences = [Sentence(tuple(line.split())) for line in text]
    model = kind.from_text(sentences, config)
    train(model, sentences, sentences, TrainingConfig(epochs=1, batch_tokens=600), progress=Progress())
    for logs in (model.log_probs([[], ["never", "seen"], ["a"]]), model.text_log_probs([["a"], []])):
        assert all(np.isfinite(each).all() for each in logs)
    assert model.log_probs([]) == [] and model.text_log_probs([]) == []
    assert np.exp(model.next_log_probs([])).sum() == pytest.approx(1, abs=1e-4)


def test_characters_and_a_note_on_unknown_units() -> None:
    reading = TextReading("characters")
    model = RecurrentLanguageModel.from_text(["ab a", "ba"], CASES[2][1], format=reading)
    assert set(model.names) == {"a", "b", "▁", "<unk>"} and model.counts.sum() == 6
    assert "--least-count" in model.notes([], [])[0]
    assert made(*CASES[2]).notes([], []) == []
    assert model.knows("ab") is None and made(*CASES[2]).knows("a")


def test_damaged_folders_are_refused(tmp_path: Path) -> None:
    made(*CASES[2]).save(tmp_path / "lm")
    config = (tmp_path / "lm" / "config.json").read_text()
    (tmp_path / "lm" / "config.json").write_text(config.replace('"names"', '"nomes"'))
    with pytest.raises(ModelError, match="lacks 'names'"):
        load(tmp_path / "lm")
    (tmp_path / "lm" / "config.json").write_text(config.replace('"hidden": 5', '"hidden": 50000'))
    with pytest.raises(ModelError, match="do not fit"):
        load(tmp_path / "lm")
    assert replace(CASES[2][1], hidden=7).hidden == 7


# Both directions, as inputs of other networks


def both(**more: Any) -> RecurrentLanguageModel:
    return made(RecurrentLanguageModel, RecurrentConfig(directions="both", word_dim=6, hidden=6, **more))  # type: ignore[no-any-return]


def test_a_model_of_both_directions_learns_from_both() -> None:
    model = both()
    assert model.in_order(TEXT, TrainingConfig()) is None
    turned = both()
    assert model.backwards is not None and turned.backwards is not None
    turned.reader, turned.backwards = model.backwards, model.reader
    mirrored = [Sentence(each.words[::-1]) for each in TEXT]
    with torch.no_grad():
        loss = float(model.loss(TEXT))
        assert loss == pytest.approx(float(turned.loss(mirrored)), rel=1e-5)
    ahead = sum(logs.sum() for logs in model.log_probs(UNITS))
    back = sum(logs.sum() for logs in turned.log_probs([units[::-1] for units in UNITS]))
    assert loss == pytest.approx(-(ahead + back) / 2, rel=1e-5)
    whole = both()
    result = train(whole, TEXT, TEXT, TrainingConfig(epochs=2, batch_tokens=40, lr=0.02), progress=Progress())
    assert result.history[1].loss < result.history[0].loss


def test_vectors_of_words_are_the_states_after_them() -> None:
    model = both(layers=2)
    words = [("a", "b", "c"), ("b",), ()]
    layers = model.word_layers(words)
    assert layers.shape == (3, 3, 3, 12)
    alone = model.word_layers(words[:1])
    assert torch.allclose(layers[0], alone[0], atol=1e-6)
    state = model.first_state(1)
    for k, number in enumerate([len(model.names), *model.numbers(words[0])[:-1]]):
        hidden, state = model.read(torch.tensor([[number]]), state)
        if k:
            assert torch.allclose(layers[0, k - 1, -1, :6], hidden[0, 0], atol=1e-6)
            assert torch.allclose(layers[0, k - 1, 0, :6], model.embedding.weight[number])
    turned = model.word_layers([words[0][::-1]])
    model.reader, model.backwards = model.backwards, model.reader  # type: ignore[assignment]
    assert torch.allclose(turned.flip(1), torch.cat(model.word_layers(words[:1]).chunk(2, -1)[::-1], -1), atol=1e-6)


@pytest.mark.parametrize("training", ["frozen", "tuned"])
@pytest.mark.parametrize("layers", ["last", "mix"])
def test_a_tagger_reads_with_a_language_model(training: str, layers: str, tmp_path: Path) -> None:
    both(layers=2).save(tmp_path / "lm")
    tagged = [Sentence(each.words, tuple("AB"[word == "a"] for word in each.words)) for each in TEXT]
    config = TaggerConfig(
        encoder="lstm", hidden=4, word_dim=3, pretrained=str(tmp_path / "lm"), pretrained_training=training,  # type: ignore[arg-type]
        pretrained_layers=layers,  # type: ignore[arg-type]
    )  # fmt: skip
    with pytest.raises(TrellisworkError, match="leave --pretrained-words out"):
        Tagger.from_data(tagged, replace(config, pretrained_words="mean"))
    tagger = Tagger.from_data(tagged, config)
    before = {name: value.clone() for name, value in tagger.state_dict().items() if ".pretrained.model." in name}
    train(tagger, tagged, tagged, TrainingConfig(epochs=2, lr=0.02), out=tmp_path / "tagger", progress=Progress())
    moved = [
        name for name, value in tagger.state_dict().items() if name in before and not torch.equal(value, before[name])
    ]
    assert bool(moved) == (training == "tuned") and before
    if layers == "mix":
        assert tagger.inputs.pretrained is not None and tagger.inputs.pretrained.mix is not None
        assert float(tagger.inputs.pretrained.mix.weights.detach().abs().sum()) > 0
    (tmp_path / "lm").rename(tmp_path / "elsewhere")
    loaded = load(tmp_path / "tagger")
    for one, other in zip(loaded.predict(UNITS), tagger.predict(UNITS), strict=True):
        assert one.value == other.value and one.probability == pytest.approx(other.probability)
    explained = loaded.explain([Sentence(("a", "b"))])
    assert list(explained[0].words) == ["a", "b"]


def test_language_models_that_cannot_be_read_with(tmp_path: Path) -> None:
    RecurrentLanguageModel.from_text(["ab"], CASES[2][1], format=TextReading("characters")).save(tmp_path / "c")
    with pytest.raises(TrellisworkError, match="of words"):
        LanguageModelWords.from_folder(str(tmp_path / "c"))
    with pytest.raises(TrellisworkError, match="set both alike"):
        RecurrentConfig(directions="both", hidden=7, word_dim=8)
