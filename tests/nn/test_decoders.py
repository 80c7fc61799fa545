"""Decoders against their equations, written out step by step; and one step at a time against all at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from trelliswork.errors import ScoreError
from trelliswork.nn.decoders import BahdanauDecoder, Decoder, LuongDecoder, TransformerDecoder
from trelliswork.nn.decoders.attention import (
    AdditiveScore,
    DotScore,
    FertilityCoverage,
    GeneralScore,
    LocalWindow,
    RecurrentCoverage,
    final_states,
)
from trelliswork.nn.decoders.pointer import JointCopy, PointerMixture, coverage_loss
from trelliswork.nn.decoders.transformer import GrowingCache
from trelliswork.nn.encoders import TransformerEncoder
from trelliswork.nn.encoders.transformer import sinusoids

E, D, H = 3, 6, 4  # widths of symbols, of encoded positions, of hidden states
LENGTHS = [5, 2, 1]
DECODERS: dict[str, Callable[[], Decoder]] = {
    "bahdanau": lambda: BahdanauDecoder(E, D, hidden=H),
    "bahdanau, coverage": lambda: BahdanauDecoder(E, D, hidden=H, coverage="sum"),
    "bahdanau, fertility": lambda: BahdanauDecoder(E, D, hidden=H, coverage="fertility"),
    "bahdanau, recurrent": lambda: BahdanauDecoder(E, D, hidden=H, coverage="recurrent"),
    "luong": lambda: LuongDecoder(E, D, hidden=H),
    "luong, LSTM": lambda: LuongDecoder(E, D, hidden=H, cell="lstm"),
    "luong, two layers of LSTM": lambda: LuongDecoder(E, D, hidden=H, layers=2, cell="lstm"),
    "luong, concat, coverage": lambda: LuongDecoder(E, D, hidden=H, score="concat", coverage="sum"),
    "luong, nothing fed": lambda: LuongDecoder(E, D, hidden=H, feeding=False),
    "luong, dot": lambda: LuongDecoder(E, D, hidden=D, score="dot", feeding=False),
    "luong, monotonic": lambda: LuongDecoder(E, D, hidden=H, window="local-m", reach=1, feeding=False),
    "luong, predictive": lambda: LuongDecoder(E, D, hidden=H, window="local-p", reach=1),
    "transformer": lambda: TransformerDecoder(E, D, hidden=8, layers=2, heads=2),
    "transformer, post-norm": lambda: TransformerDecoder(8, D, hidden=8, layers=2, heads=2, norm="post"),
}


def made(name: str) -> Decoder:
    torch.manual_seed(5)
    return DECODERS[name]().double().eval()


def encoded() -> tuple[Tensor, Tensor]:
    """Three inputs with junk behind their ends."""
    values = torch.randn(len(LENGTHS), max(LENGTHS), D, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return values, torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]


def symbols(decoder: Decoder, t: int = 4) -> Tensor:
    width = 8 if isinstance(decoder, TransformerDecoder) and isinstance(decoder.entry, torch.nn.Identity) else E
    return torch.randn(len(LENGTHS), t, width, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("name", DECODERS)
def test_all_steps_at_once_are_the_steps_one_by_one(name: str) -> None:
    decoder, (values, mask) = made(name), encoded()
    memory, given = decoder.remember(values, mask), symbols(made(name))
    at_once, one_by_one = decoder(memory, given), Decoder.forward(decoder, memory, given)
    torch.testing.assert_close(at_once.hidden, one_by_one.hidden)
    torch.testing.assert_close(at_once.weights, one_by_one.weights)
    assert at_once.hidden.shape == (len(LENGTHS), 4, decoder.dim)


@pytest.mark.parametrize("name", DECODERS)
def test_padding_and_the_future_are_not_read(name: str) -> None:
    decoder, (values, mask) = made(name), encoded()
    given = symbols(decoder)
    before = decoder(decoder.remember(values, mask), given)
    changed = given.clone()
    changed[:, 2:] += 1
    junk = torch.where(mask[..., None], values, values + 7)
    after = decoder(decoder.remember(junk, mask), changed)
    torch.testing.assert_close(before.hidden[:, :2], after.hidden[:, :2])
    assert not torch.allclose(before.hidden[:, 2:], after.hidden[:, 2:])
    assert bool((before.weights[~mask[:, None].expand_as(before.weights)] == 0).all())


@pytest.mark.parametrize("name", DECODERS)
def test_hypotheses_of_a_beam_do_not_see_each_other(name: str) -> None:
    """Hypothesis 1 of step 2 goes on from hypothesis 0 of step 1, and so on: each equals its own string read alone."""
    decoder, (values, mask) = made(name), encoded()
    given, memory = symbols(decoder, 5), decoder.remember(encoded()[0], encoded()[1])
    first, a, b, c, d = given.unbind(1)
    with torch.no_grad():
        step = decoder.step(memory, decoder.initial(memory, 3), first[:, None])
        both = tuple(field.expand(-1, 2, *field.shape[2:]) for field in step.state)
        step = decoder.step(memory, both, torch.stack([a, b], 1))
        crossed = tuple(field[:, [1, 0]] for field in step.state)
        hidden = decoder.step(memory, crossed, torch.stack([c, d], 1)).hidden
        alone = [decoder(decoder.remember(values, mask), torch.stack(s, 1)).hidden[:, -1]
                 for s in ([first, b, c], [first, a, d])]  # fmt: skip
    torch.testing.assert_close(hidden, torch.stack(alone, 1))


@pytest.mark.parametrize(
    "name",
    ["bahdanau, coverage", "bahdanau, fertility", "bahdanau, recurrent", "luong, predictive", "luong, concat, coverage",
     "transformer"],
)  # fmt: skip
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    """Along random directions: torch differentiates each step, and what could be cut is the way between them."""
    decoder, (values, mask) = made(name), encoded()
    given = symbols(decoder, 2)

    def outputs(values: Tensor, given: Tensor) -> tuple[Tensor, Tensor]:
        unrolled = decoder(decoder.remember(values, mask), given)
        return unrolled.hidden, unrolled.weights

    assert torch.autograd.gradcheck(outputs, (values.requires_grad_(), given.requires_grad_()), fast_mode=True)


# Bahdanau


@torch.no_grad()
def test_the_gru_of_bahdanau_is_the_equations() -> None:
    decoder, (values, mask) = made("bahdanau"), encoded()
    assert isinstance(decoder, BahdanauDecoder)
    given, weight = symbols(decoder, 3), dict(decoder.named_parameters())
    unrolled = decoder(decoder.remember(values, mask), given)
    w, u_c = weight["inputs.weight"].split(H), weight["contexts.weight"].split(H)
    bias, u_s = weight["inputs.bias"].split(H), [*weight["gates.weight"].split(H), weight["proposal.weight"]]
    for row, n in enumerate(LENGTHS):
        h = values[row, :n]
        ends = torch.cat([h[-1, : D // 2], h[0, D // 2 :]])
        s = torch.tanh(weight["start.weight"] @ ends + weight["start.bias"])
        for t in range(3):
            y = given[row, t]
            scores = [
                weight["score.direction.weight"][0]
                @ torch.tanh(weight["score.queries.weight"] @ s + weight["score.values.weight"] @ h_j
                             + weight["score.values.bias"])
                for h_j in h
            ]  # fmt: skip
            a = [math.exp(float(e)) / sum(math.exp(float(k)) for k in scores) for e in scores]
            c = sum(a_j * h_j for a_j, h_j in zip(a, h, strict=True))
            z = torch.sigmoid(w[0] @ y + bias[0] + u_s[0] @ s + u_c[0] @ c)
            r = torch.sigmoid(w[1] @ y + bias[1] + u_s[1] @ s + u_c[1] @ c)
            proposed = torch.tanh(w[2] @ y + bias[2] + u_s[2] @ (r * s) + u_c[2] @ c)
            s = (1 - z) * s + z * proposed
            u = weight["output.weight"] @ torch.cat([s, c, y]) + weight["output.bias"]
            maxout = torch.stack([max(u[2 * j], u[2 * j + 1]) for j in range(H)])
            torch.testing.assert_close(unrolled.hidden[row, t], maxout)
            torch.testing.assert_close(unrolled.weights[row, t, :n], torch.tensor(a, dtype=torch.float64))


def test_coverage_is_one_more_input_of_the_score() -> None:
    torch.manual_seed(0)
    score = AdditiveScore(H, D, 5, covered=2).double()
    assert score.coverage is not None
    q, h, covered = torch.randn(H).double(), torch.randn(3, D).double(), torch.rand(3, 2).double()
    actual = score(q[None, None], score.keys(h[None]), covered[None, None])[0, 0]
    for j in range(3):
        inner = score.queries.weight @ q + score.values(h[j]) + score.coverage.weight @ covered[j]
        torch.testing.assert_close(actual[j], score.direction.weight[0] @ inner.tanh())


def test_what_is_covered_grows_by_the_weights() -> None:
    decoder, (values, mask) = made("bahdanau, coverage"), encoded()
    memory, given = decoder.remember(values, mask), symbols(made("bahdanau, coverage"), 3)
    state, total = decoder.initial(memory), torch.zeros(len(LENGTHS), 1, max(LENGTHS), dtype=torch.float64)
    for t in range(3):
        step = decoder.step(memory, state, given[:, t : t + 1])
        state, total = step.state, total + step.weights
    torch.testing.assert_close(state[1].squeeze(-1), total)


@torch.no_grad()
def test_fertility_divides_what_a_position_has_had() -> None:
    decoder, (values, mask) = made("bahdanau, fertility"), encoded()
    assert isinstance(decoder, BahdanauDecoder) and isinstance(decoder.coverage, FertilityCoverage)
    memory, given = decoder.remember(values, mask), symbols(decoder, 3)
    state, covered = decoder.initial(memory), torch.zeros(max(LENGTHS), dtype=torch.float64)
    u = decoder.coverage.fertility.weight[0]
    for t in range(3):
        before = state[0][0, 0]
        step = decoder.step(memory, state, given[:, t : t + 1])
        v, w = decoder.score.direction.weight[0], decoder.score.coverage
        assert w is not None
        scores = [
            v @ torch.tanh(decoder.score.queries.weight @ before + decoder.score.values(h) + w.weight[:, 0] * c)
            for h, c in zip(values[0], covered, strict=True)
        ]
        weights = torch.stack(scores).softmax(0)
        torch.testing.assert_close(step.weights[0, 0], weights)
        covered = covered + torch.stack(
            [a / (2 * torch.sigmoid(u @ h)) for a, h in zip(weights, values[0], strict=True)]
        )
        state = step.state
        torch.testing.assert_close(state[1][0, 0, :, 0], covered)


@torch.no_grad()
def test_recurrent_coverage_is_a_gru_over_weight_position_and_state() -> None:
    torch.manual_seed(4)
    coverage = RecurrentCoverage(D, H).double()
    cell = torch.nn.GRUCell(1 + D + H, coverage.width).double()
    cell.weight_ih.copy_(torch.cat([coverage.attention.weight, coverage.values.weight, coverage.states.weight], 1))
    cell.bias_ih.copy_(coverage.values.bias)
    cell.weight_hh.copy_(coverage.covered.weight)
    cell.bias_hh.copy_(coverage.covered.bias)
    values, _ = encoded()
    covered = torch.randn(3, 2, 5, coverage.width).double()
    weights, states = torch.rand(3, 2, 5).double(), torch.randn(3, 2, H).double()
    actual = coverage(covered, weights, values, states)
    for b, m, j in ((0, 0, 0), (2, 1, 4), (1, 1, 2)):
        given = torch.cat([weights[b, m, j][None], values[b, j], states[b, m]])
        torch.testing.assert_close(actual[b, m, j], cell(given[None], covered[b, m, j][None])[0])


# Luong


def test_scores_are_the_equations() -> None:
    torch.manual_seed(0)
    general, concat = GeneralScore(H, D).double(), AdditiveScore(H, D, 5).double()
    q, h = torch.randn(2, 3, H).double(), torch.randn(2, 7, D).double()
    for b, m, n in ((0, 0, 0), (1, 2, 6)):
        product = q[b, m] @ general.product.weight @ h[b, n]
        torch.testing.assert_close(general(q, general.keys(h))[b, m, n], product)
        joint = torch.cat([concat.queries.weight, concat.values.weight], 1)  # W_a of [h_t; h_s]
        inner = torch.tanh(joint @ torch.cat([q[b, m], h[b, n]]) + concat.values.bias)
        torch.testing.assert_close(concat(q, concat.keys(h))[b, m, n], concat.direction.weight[0] @ inner)
    dot = DotScore()
    torch.testing.assert_close(dot(q, dot.keys(h[..., :H]))[1, 2, 3], q[1, 2] @ h[1, 3, :H])


@pytest.mark.parametrize("feeding", [True, False])
def test_the_states_of_luong_are_the_equations(feeding: bool) -> None:
    torch.manual_seed(3)
    decoder, (values, mask) = LuongDecoder(E, D, hidden=H, feeding=feeding).double(), encoded()
    given = symbols(decoder, 3)
    unrolled = decoder(decoder.remember(values, mask), given)
    cell = torch.nn.GRUCell(decoder.recurrent.input_size, H).double()
    cell.load_state_dict({name.removesuffix("_l0"): p for name, p in decoder.recurrent.state_dict().items()})
    for row, n in enumerate(LENGTHS):
        h_s = values[row, :n]
        h = decoder.start(torch.cat([h_s[-1, : D // 2], h_s[0, D // 2 :]])).tanh()
        fed = torch.zeros(H, dtype=torch.float64)
        for t in range(3):
            h = cell(torch.cat([fed, given[row, t]]) if feeding else given[row, t], h)
            scores = torch.stack([h @ decoder.score.product.weight @ each for each in h_s])  # type: ignore[union-attr]
            a = scores.exp() / scores.exp().sum()
            c = sum(a[s] * h_s[s] for s in range(n))
            fed = torch.tanh(decoder.output.weight @ torch.cat([c, h]))
            torch.testing.assert_close(unrolled.hidden[row, t], fed)
            torch.testing.assert_close(unrolled.weights[row, t, :n], a)


@pytest.mark.parametrize("predictive", [True, False])
@torch.no_grad()
def test_local_windows_are_the_equations(predictive: bool) -> None:
    torch.manual_seed(4)
    window = LocalWindow(H, reach=2, predictive=predictive).double()
    mask = torch.arange(7) < torch.tensor([7, 4])[:, None]
    q, scores, time = torch.randn(2, 1, H).double(), torch.randn(2, 1, 7).double(), torch.tensor([[3.0], [9.0]])
    actual = window(scores.masked_fill(~mask[:, None], -torch.inf), window.centre(q, time.double(), mask))
    for row, n in enumerate((7, 4)):
        p = min(float(time[row, 0]), n - 1)
        if predictive:
            inner = window.direction.weight[0] @ torch.tanh(window.hidden.weight @ q[row, 0])  # type: ignore[union-attr]
            p = (n - 1) / (1 + math.exp(-float(inner)))
        near = [s for s in range(n) if abs(s - p) <= 2]
        total = sum(math.exp(scores[row, 0, s]) for s in near)
        for s in range(7):
            expected = math.exp(scores[row, 0, s]) / total if s in near else 0.0
            if predictive:
                expected *= math.exp(-((s - p) ** 2) / (2 * 1.0**2))  # σ = reach / 2 = 1
            assert float(actual[row, 0, s]) == pytest.approx(expected, abs=1e-12)


def test_the_ends_are_what_each_direction_knows_last() -> None:
    values, mask = encoded()
    states = final_states(values, mask)
    torch.testing.assert_close(states[1], torch.cat([values[1, 1, : D // 2], values[1, 0, D // 2 :]]))


@pytest.mark.parametrize(
    ("made", "part"),
    [
        (lambda: LuongDecoder(E, D, hidden=H, score="dot"), "of the same width"),
        (lambda: LuongDecoder(E, D, hidden=H, score="cosine"), "additive, concat, dot or general"),  # type: ignore[arg-type]
        (lambda: LuongDecoder(E, D, hidden=H, coverage="all"), "coverage must be none"),  # type: ignore[arg-type]
        (lambda: LuongDecoder(E, D, hidden=H, coverage="sum"), "coverage needs the additive score"),
        (lambda: LuongDecoder(E, D, hidden=H, window="near"), "global, local-m or local-p"),  # type: ignore[arg-type]
        (lambda: LuongDecoder(E, D, hidden=H, window="local-m", reach=0), "at least 1 position"),
        (lambda: LuongDecoder(E, D, hidden=H, cell="rnn"), "lstm or gru"),  # type: ignore[arg-type]
        (lambda: TransformerDecoder(E, D, hidden=6, heads=4), "twice the heads"),
    ],
)
def test_what_cannot_be_made_is_said(made: Callable[[], Decoder], part: str) -> None:
    with pytest.raises(ScoreError, match=part):
        made()


# Transformers


def head_by_head(q: Tensor, k: Tensor, v: Tensor, heads: int, seen: Callable[[int, int], bool]) -> Tensor:
    """softmax(Q K^T / √d_k) V for each head, in loops."""
    width, rows = q.shape[-1] // heads, []
    for t in range(len(q)):
        parts = []
        for head in range(heads):
            own = slice(head * width, (head + 1) * width)
            scores = {s: float(q[t, own] @ k[s, own]) / math.sqrt(width) for s in range(len(k)) if seen(t, s)}
            total = sum(math.exp(score) for score in scores.values())
            parts.append(sum(math.exp(score) / total * v[s, own] for s, score in scores.items()))
        rows.append(torch.cat(parts))  # type: ignore[arg-type]
    return torch.stack(rows)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_transformer_layer_is_the_equations(norm: str) -> None:
    torch.manual_seed(6)
    decoder = TransformerDecoder(8, D, hidden=8, layers=1, heads=2, norm=norm).double().eval()  # type: ignore[arg-type]
    layer, (values, mask) = decoder.layers[0], encoded()
    given = symbols(decoder, 3)
    with torch.no_grad():
        for each in layer.norms:  # type: ignore[union-attr]
            each.weight.copy_(torch.rand(8) + 0.5)
        actual = decoder(decoder.remember(values, mask), given).hidden
        for row, n in enumerate(LENGTHS):
            x = given[row] + sinusoids(torch.arange(3)[None], 8)[0]
            parts = [
                lambda x: layer.own_output(head_by_head(*layer.own(x).chunk(3, -1), 2, lambda t, s: s <= t)),
                lambda x, n=n, row=row: layer.crossed_output(
                    head_by_head(
                        layer.queries(x), *layer.keys_values(values[row, :n]).chunk(2, -1), 2, lambda t, s: True
                    )
                ),
                lambda x: (
                    torch.relu(x @ layer.network[0].weight.T + layer.network[0].bias) @ layer.network[2].weight.T
                    + layer.network[2].bias
                ),
            ]
            for part, each in zip(parts, layer.norms, strict=True):  # type: ignore[arg-type]
                x = x + part(each(x)) if norm == "pre" else each(x + part(x))
            torch.testing.assert_close(actual[row], decoder.norm(x))


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_norm_of_an_encoder_layer_is_where_it_should_be(norm: str) -> None:
    torch.manual_seed(7)
    encoder = TransformerEncoder(D, hidden=8, layers=1, heads=2, norm=norm).double().eval()  # type: ignore[arg-type]
    layer, (values, _) = encoder.layers[0], encoded()
    seen = torch.ones(1, 1, 5, 5, dtype=torch.bool)
    with torch.no_grad():
        x = encoder.entry(values[:1]) + sinusoids(torch.arange(5)[None], 8)
        attended = layer.attend(layer.attention_norm(x) if norm == "pre" else x, seen)
        x = x + attended if norm == "pre" else layer.attention_norm(x + attended)
        written = layer.network(layer.network_norm(x) if norm == "pre" else x)
        x = x + written if norm == "pre" else layer.network_norm(x + written)
        torch.testing.assert_close(encoder(values[:1]), encoder.norm(x))


def test_a_state_without_room_is_refused() -> None:
    decoder, (values, mask) = made("transformer"), encoded()
    memory, given = decoder.remember(values, mask), symbols(made("transformer"), 2)
    step = decoder.step(memory, decoder.initial(memory, 1), given[:, :1])
    with pytest.raises(ScoreError, match="room for 1 step"):
        decoder.step(memory, step.state, given[:, 1:])


def test_a_cache_is_the_parts_joined_with_and_without_gradients() -> None:
    parts = [torch.randn(2, 3, m, 4) for m in (1, 5, 2, 9, 1)]
    for gradients in (True, False):
        cache = GrowingCache()
        with torch.set_grad_enabled(gradients):
            for i, part in enumerate(parts):
                torch.testing.assert_close(cache.add(part), torch.cat(parts[: i + 1], 2))


# Copying and coverage


def test_a_pointer_mixes_the_vocabulary_with_the_source() -> None:
    torch.manual_seed(8)
    pointer, v = PointerMixture(H).double(), 4
    hidden, log_vocabulary = torch.randn(1, 2, H).double(), torch.randn(1, 2, v).double().log_softmax(-1)
    weights, places = torch.rand(1, 2, 3).double().softmax(-1), torch.tensor([[1, v + 1, 1]])
    log_probs = pointer(log_vocabulary, hidden, weights, places)
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(1, 2, dtype=torch.float64))
    for t in range(2):
        gate = torch.sigmoid(pointer.gate.weight[0] @ hidden[0, t] + pointer.gate.bias[0])
        for y in (0, 1, v + 1):
            generated = gate * log_vocabulary[0, t, y].exp() if y < v else 0.0
            copied = (1 - gate) * sum(weights[0, t, i] for i in range(3) if places[0, i] == y)
            torch.testing.assert_close(log_probs[0, t, y].exp(), generated + copied)
            own = log_vocabulary[:, :, y] if y < v else torch.full((1, 2), -torch.inf, dtype=torch.float64)
            alone = pointer.target_log_probs(own, hidden, weights, places, torch.full((1, 2), y))
            torch.testing.assert_close(alone[0, t], log_probs[0, t, y])


@torch.no_grad()
def test_a_joint_softmax_generates_and_copies() -> None:
    torch.manual_seed(8)
    copy, v, n = JointCopy(H, D).double(), 4, 3
    hidden, scores, values = (torch.randn(2, 2, size).double() for size in (H, v, D))
    values = torch.randn(2, n, D).double()
    mask, places = torch.tensor([[True] * 3, [True, True, False]]), torch.tensor([[1, v + 1, 1], [v, 2, 0]])
    log_probs = copy(scores, hidden, copy.keys(values), mask, places)
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(2, 2, dtype=torch.float64))
    for b, t in itertools.product(range(2), range(2)):
        copies = [math.exp(torch.tanh(copy.product.weight @ h) @ hidden[b, t]) for h in values[b, mask[b]]]
        z = sum(copies) + float(scores[b, t].exp().sum())
        for y in range(v + n):
            generated = math.exp(scores[b, t, y]) if y < v else 0.0
            copied = sum(e for e, place in zip(copies, places[b].tolist(), strict=False) if place == y)
            assert float(log_probs[b, t, y].exp()) == pytest.approx((generated + copied) / z)


def test_the_coverage_loss_is_what_is_attended_to_again() -> None:
    weights = torch.tensor([[[1.0, 0.0], [0.25, 0.75], [0.5, 0.5]]])
    torch.testing.assert_close(coverage_loss(weights), torch.tensor([[0.0, 0.25, 0.5 + 0.5]]))
