"""`nn.CRF`: first what pytorch-crf 0.7.2 does, test by test, then what it does not do."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.utils.parametrize
import torchcrf
from torch import Tensor, nn

from trelliswork.errors import ConstraintError, ScoreError, TrellisworkWarning
from trelliswork.nn import CRF
from trelliswork.tags.schemes import violations

INF = float("inf")
UNKNOWN = -100
PARAMETERS = ("start_transitions", "end_transitions", "transitions")
both_orders = pytest.mark.parametrize("batch_first", [False, True], ids=["time first", "batch first"])


def random_layer(num_tags: int = 4, batch_first: bool = False, seed: int = 0, **options: Any) -> CRF:
    """Parameters larger than the initial ones, so that they matter."""
    torch.manual_seed(seed)
    crf = CRF(num_tags, batch_first, **options)
    for parameter in crf.parameters():
        nn.init.normal_(parameter)
    return crf


def peer_of(crf: CRF) -> torchcrf.CRF:
    peer = torchcrf.CRF(crf.num_tags, crf.batch_first).to(crf.transitions.dtype)
    peer.load_state_dict(crf.state_dict())
    return peer


def ragged_batch(
    batch_first: bool,
    c: int = 4,
    lengths: tuple[int, ...] = (5, 1, 3),
    seed: int = 1,
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Tensor, Tensor]:
    """Emissions, tags and a right-padded mask, (n, batch) or (batch, n)."""
    generator = torch.Generator().manual_seed(seed)
    batch, n = len(lengths), max(lengths)
    emissions = torch.randn(batch, n, c, generator=generator).to(dtype)
    tags = torch.randint(0, c, (batch, n), generator=generator)
    mask = torch.arange(n) < torch.tensor(lengths)[:, None]
    parts = (emissions, tags, mask)
    return parts if batch_first else tuple(part.transpose(0, 1) for part in parts)  # type: ignore[return-value]


def path_score(crf: CRF, emissions: Tensor, tags: tuple[int, ...]) -> float:
    """The score of tags under one row's emissions [length, c], part by part; forbidden transitions are -inf."""
    first, last, between = (getattr(crf, name).detach().double() for name in PARAMETERS)
    if crf.allowed_transitions is not None:
        first = first.masked_fill(~crf.allowed_start, -INF)
        last = last.masked_fill(~crf.allowed_end, -INF)
        between = between.masked_fill(~crf.allowed_transitions, -INF)
    total = first[tags[0]] + last[tags[-1]] + sum(emissions[t, tag].double() for t, tag in enumerate(tags))
    return float(total + sum(between[a, b] for a, b in itertools.pairwise(tags)))


def probabilities(crf: CRF, emissions: Tensor) -> dict[tuple[int, ...], float]:
    """p(tags | x) of every tag sequence of one row, by enumeration."""
    sequences = itertools.product(range(crf.num_tags), repeat=len(emissions))
    weights = {tags: math.exp(path_score(crf, emissions, tags)) for tags in sequences}
    z = math.fsum(weights.values())
    return {tags: weight / z for tags, weight in weights.items()}


def rows_of(crf: CRF, *tensors: Tensor) -> tuple[Tensor, ...]:
    return tensors if crf.batch_first else tuple(tensor.transpose(0, 1) for tensor in tensors)


# --- the drop-in: construction -------------------------------------------------------------------------------


def test_constructor_and_parameters() -> None:
    crf = CRF(10)
    assert crf.num_tags == 10
    assert crf.batch_first is False
    assert isinstance(crf, nn.Module)
    assert [name for name, _ in crf.named_parameters()] == list(PARAMETERS)
    assert crf.start_transitions.shape == (10,)
    assert crf.end_transitions.shape == (10,)
    assert crf.transitions.shape == (10, 10)
    assert all(isinstance(p, nn.Parameter) and p.requires_grad for p in crf.parameters())


def test_batch_first_by_position_and_by_name() -> None:
    assert CRF(3, True).batch_first is True
    assert CRF(num_tags=3, batch_first=True).batch_first is True


def test_initial_parameters_are_small_and_random() -> None:
    torch.manual_seed(0)
    first, second = CRF(20), CRF(20)
    for crf in (first, second):
        for parameter in crf.parameters():
            assert parameter.abs().max() <= 0.1
            assert parameter.abs().max() > 0.05
    assert not torch.equal(first.transitions, second.transitions)
    before = first.transitions.detach().clone()
    first.reset_parameters()
    assert not torch.equal(first.transitions, before)


@pytest.mark.parametrize("num_tags", [0, -1])
def test_the_number_of_tags_must_be_positive(num_tags: int) -> None:
    with pytest.raises(ValueError, match=f"invalid number of tags: {num_tags}"):
        CRF(num_tags)


def test_repr() -> None:
    assert repr(CRF(10)) == repr(torchcrf.CRF(10)) == "CRF(num_tags=10)"


@both_orders
def test_state_dicts_go_both_ways(batch_first: bool) -> None:
    ours, theirs = random_layer(batch_first=batch_first), torchcrf.CRF(4, batch_first)
    assert ours.state_dict().keys() == theirs.state_dict().keys()
    theirs.load_state_dict(ours.state_dict())
    back = CRF(4, batch_first)
    back.load_state_dict(theirs.state_dict())
    for name in PARAMETERS:
        assert torch.equal(getattr(ours, name), getattr(back, name))


def test_constraints_are_not_in_the_state_dict() -> None:
    crf = CRF.from_tags(["O", "B-X", "I-X"], "IOB2")
    torchcrf.CRF(3).load_state_dict(crf.state_dict())
    crf.load_state_dict(torchcrf.CRF(3).state_dict())
    assert crf.allowed_transitions is not None
    assert not crf.allowed_transitions[0, 2]


# --- the drop-in: forward ------------------------------------------------------------------------------------


@both_orders
@pytest.mark.parametrize("masked", [False, True])
def test_forward_against_enumeration(batch_first: bool, masked: bool) -> None:
    crf = random_layer(batch_first=batch_first)
    emissions, tags, mask = ragged_batch(batch_first)
    found = crf(emissions, tags, mask if masked else None, reduction="none")
    rows, row_tags, row_mask = rows_of(crf, emissions, tags, mask)
    for b in range(3):
        keep = row_mask[b] if masked else torch.ones(5, dtype=torch.bool)
        p = probabilities(crf, rows[b][keep])
        assert found[b].item() == pytest.approx(math.log(p[tuple(row_tags[b][keep].tolist())]), rel=1e-5)


@both_orders
@pytest.mark.parametrize("reduction", ["none", "sum", "mean", "token_mean"])
@pytest.mark.parametrize("mask_type", [None, torch.bool, torch.uint8])
def test_values_and_gradients_of_every_reduction(
    batch_first: bool, reduction: str, mask_type: torch.dtype | None
) -> None:
    crf = random_layer(batch_first=batch_first)
    peer = peer_of(crf)
    emissions, tags, mask = ragged_batch(batch_first, lengths=(6, 1, 4, 6))
    full = torch.ones_like(mask)
    ours = None if mask_type is None else mask.to(mask_type)
    theirs = full if mask_type is None else mask  # with this torch the peer takes bool masks only
    results = []
    for layer, given in ((crf, ours), (peer, theirs)):
        scores = emissions.clone().requires_grad_()
        value = layer(scores, tags, given, reduction=reduction)
        value.sum().backward()
        results.append((value.detach(), [scores.grad, *(getattr(layer, name).grad for name in PARAMETERS)]))
    (found, gradients), (wanted, peer_gradients) = results
    assert found.shape == wanted.shape == ((4,) if reduction == "none" else ())
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
    for gradient, peer_gradient in zip(gradients, peer_gradients, strict=True):
        torch.testing.assert_close(gradient, peer_gradient, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
@both_orders
def test_random_ragged_batches_in_double_precision(seed: int, batch_first: bool) -> None:
    c = 2 + seed
    lengths = tuple(torch.randint(1, 12, (6,), generator=torch.Generator().manual_seed(seed)).tolist())
    crf = random_layer(c, batch_first, seed).double()
    peer = peer_of(crf)
    emissions, tags, mask = ragged_batch(batch_first, c, lengths, seed, torch.float64)
    found, wanted = crf(emissions, tags, mask), peer(emissions, tags, mask)
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-10)
    for loss in (found, wanted):
        loss.backward()
    for name in PARAMETERS:
        torch.testing.assert_close(getattr(crf, name).grad, getattr(peer, name).grad, rtol=1e-9, atol=1e-10)
    assert crf.decode(emissions, mask) == peer.decode(emissions, mask)


def test_the_reduction_is_a_sum_unless_said_otherwise() -> None:
    crf = random_layer()
    emissions, tags, mask = ragged_batch(False)
    torch.testing.assert_close(crf(emissions, tags, mask), crf(emissions, tags, mask, "none").sum())
    torch.testing.assert_close(crf(emissions, tags, mask, "token_mean"), crf(emissions, tags, mask) / mask.sum())
    torch.testing.assert_close(crf(emissions, tags, reduction="token_mean"), crf(emissions, tags) / tags.numel())


def test_batch_first_is_the_transpose() -> None:
    crf = random_layer()
    other = random_layer(batch_first=True)
    emissions, tags, mask = ragged_batch(False)
    swapped = (emissions.transpose(0, 1), tags.transpose(0, 1), mask.transpose(0, 1))
    torch.testing.assert_close(crf(emissions, tags, mask), other(*swapped))
    assert crf.decode(emissions, mask) == other.decode(swapped[0], swapped[2])


# --- the drop-in: errors -------------------------------------------------------------------------------------


def test_an_unknown_reduction() -> None:
    with pytest.raises(ValueError, match="invalid reduction: foo"):
        CRF(3)(torch.zeros(1, 2, 3), torch.zeros(1, 2).long(), reduction="foo")


@pytest.mark.parametrize("call", ["forward", "decode", "viterbi", "marginals", "sample"])
def test_emissions_of_the_wrong_shape(call: str) -> None:
    crf = CRF(3)
    more = (torch.zeros(1, 2).long(),) if call == "forward" else ()
    with pytest.raises(ValueError, match="emissions must have dimension of 3, got 2"):
        getattr(crf, call)(torch.zeros(1, 2), *more)
    with pytest.raises(ValueError, match="expected last dimension of emissions is 3, got 4"):
        getattr(crf, call)(torch.zeros(1, 2, 4), *more)


def test_tags_and_masks_of_the_wrong_shape() -> None:
    crf, emissions, tags = CRF(3), torch.zeros(1, 2, 3), torch.zeros(1, 2).long()
    with pytest.raises(
        ValueError, match=r"the first two dimensions of emissions and tags must match, got \(1, 2\) and \(2, 2\)"
    ):
        crf(emissions, torch.zeros(2, 2).long())
    sentence = r"the first two dimensions of emissions and mask must match, got \(1, 2\) and \(2, 2\)"
    with pytest.raises(ValueError, match=sentence):
        crf(emissions, tags, mask=torch.ones(2, 2).bool())
    with pytest.raises(ValueError, match=sentence):
        crf.decode(emissions, mask=torch.ones(2, 2).bool())


@both_orders
def test_a_row_without_any_position(batch_first: bool) -> None:
    """Where the peer insists on the first step, any step will do here; a row without one has the peer's wording."""
    crf = CRF(3, batch_first)
    emissions, tags, mask = ragged_batch(batch_first, 3)
    empty = torch.zeros_like(mask)
    for call in (lambda: crf(emissions, tags, mask=empty), lambda: crf.decode(emissions, mask=empty)):
        with pytest.raises(ValueError, match="mask of the first timestep must all be on"):
            call()


@pytest.mark.parametrize("call", ["forward", "decode"])
def test_sequences_without_positions_are_refused(call: str) -> None:
    crf = CRF(5)
    with pytest.raises(ScoreError, match="n >= 1"):
        crf(torch.zeros(0, 2, 5), torch.zeros(0, 2).long()) if call == "forward" else crf.decode(torch.zeros(0, 2, 5))


@pytest.mark.parametrize("make", [lambda: CRF(5), lambda: constrained("IOBES", batch_first=False)])
def test_an_empty_batch_adds_nothing(make: Any) -> None:
    crf = make()
    assert crf.decode(torch.zeros(3, 0, 5)) == []
    assert crf(torch.zeros(3, 0, 5), torch.zeros(3, 0).long()).item() == 0.0


def test_scores_that_are_not_numbers_are_named() -> None:
    emissions = torch.zeros(2, 1, 3)
    emissions[1, 0, 2] = math.nan
    for call in (lambda: CRF(3)(emissions, torch.zeros(2, 1).long()), lambda: CRF(3).decode(emissions)):
        with pytest.raises(ScoreError, match="emissions must be finite numbers or -inf; got nan"):
            call()


def test_tags_out_of_range_are_named() -> None:
    with pytest.raises(ScoreError, match=r"tags must lie in 0\.\.2; got 3 at row 1, position 0"):
        CRF(3)(torch.zeros(2, 2, 3), torch.tensor([[0, 3], [1, 1]]))
    with pytest.raises(ScoreError, match=r"0\.\.2 or be -100 \(unknown\); got -5 at row 0, position 1"):
        CRF(3)(torch.zeros(2, 2, 3), torch.tensor([[0, 1], [-5, 1]]))


# --- the drop-in: decode -------------------------------------------------------------------------------------


@both_orders
@pytest.mark.parametrize("masked", [False, True])
def test_decode_against_enumeration(batch_first: bool, masked: bool) -> None:
    crf = random_layer(batch_first=batch_first)
    emissions, _, mask = ragged_batch(batch_first)
    found = crf.decode(emissions, mask) if masked else crf.decode(emissions)
    rows, row_mask = rows_of(crf, emissions, mask)
    assert isinstance(found, list)
    for b in range(3):
        keep = row_mask[b] if masked else torch.ones(5, dtype=torch.bool)
        p = probabilities(crf, rows[b][keep])
        assert found[b] == list(max(p, key=p.__getitem__))
        assert all(isinstance(tag, int) for tag in found[b])


@both_orders
@pytest.mark.parametrize("backend", ["auto", "kernel", "torch"])
def test_decode_equals_the_peers(batch_first: bool, backend: str) -> None:
    crf = random_layer(7, batch_first, backend=backend)
    emissions, _, mask = ragged_batch(batch_first, 7, (9, 1, 4, 9, 6))
    assert crf.decode(emissions, mask) == peer_of(crf).decode(emissions, mask)
    assert crf.decode(emissions, mask.to(torch.uint8)) == peer_of(crf).decode(emissions, mask)
    assert crf.decode(emissions) == peer_of(crf).decode(emissions, torch.ones_like(mask))


def test_a_row_decodes_alike_alone_and_in_a_batch() -> None:
    crf = random_layer(batch_first=True)
    emissions, _, mask = ragged_batch(True, lengths=(7, 2, 5))
    together = crf.decode(emissions, mask)
    for b, length in enumerate((7, 2, 5)):
        assert crf.decode(emissions[b : b + 1, :length]) == [together[b]]


# --- masks with holes ----------------------------------------------------------------------------------------

HOLES = torch.tensor([[1, 0, 1, 1, 0], [0, 1, 1, 0, 1], [0, 0, 1, 0, 0]])


@both_orders
@pytest.mark.parametrize("mask_type", [torch.bool, torch.uint8])
def test_masked_positions_are_as_good_as_gone(batch_first: bool, mask_type: torch.dtype) -> None:
    crf = random_layer(batch_first=batch_first)
    alone = copy.deepcopy(crf)
    alone.batch_first = True
    emissions, tags, _ = ragged_batch(batch_first)
    (mask,) = rows_of(crf, HOLES.to(mask_type))
    found = crf(emissions, tags, mask, reduction="none")
    decoded, marginals = crf.decode(emissions, mask), crf.marginals(emissions, mask)
    rows, row_tags, row_marginals = rows_of(crf, emissions, tags, marginals)
    for b in range(3):
        keep = HOLES[b].bool()
        scores = rows[b : b + 1, keep]
        torch.testing.assert_close(found[b], alone(scores, row_tags[b : b + 1, keep], reduction="none")[0])
        assert decoded[b] == alone.decode(scores)[0]
        torch.testing.assert_close(row_marginals[b][keep], alone.marginals(scores)[0])
        assert (row_marginals[b][~keep] == 0).all()


# --- unknown labels ------------------------------------------------------------------------------------------


@both_orders
def test_unknown_labels_are_summed_over(batch_first: bool) -> None:
    crf = random_layer(3, batch_first)
    emissions, tags, mask = ragged_batch(batch_first, 3)
    rows, row_tags, row_mask = rows_of(crf, emissions, tags.clone(), mask)
    row_tags[0, 1], row_tags[0, 4], row_tags[1, 0] = UNKNOWN, UNKNOWN, UNKNOWN
    found = crf(emissions, rows_of(crf, row_tags)[0], mask, reduction="none")
    for b in range(3):
        known = row_tags[b][row_mask[b]].tolist()
        p = probabilities(crf, rows[b][row_mask[b]])
        agreeing = (q for tags, q in p.items() if all(k in (UNKNOWN, tag) for k, tag in zip(known, tags, strict=True)))
        assert found[b].item() == pytest.approx(math.log(math.fsum(agreeing)), abs=1e-5)
    assert found[1].item() == pytest.approx(0.0, abs=1e-6)


def test_unknown_labels_at_masked_positions_change_nothing() -> None:
    crf = random_layer(batch_first=True)
    emissions, tags, mask = ragged_batch(True)
    filled = torch.where(mask, tags, UNKNOWN)
    torch.testing.assert_close(crf(emissions, filled, mask), crf(emissions, tags, mask))


def test_labels_at_masked_positions_are_never_read() -> None:
    crf = random_layer(batch_first=True)
    emissions, tags, mask = ragged_batch(True)
    wanted = crf(emissions, tags, mask)
    for filler in (99, -7):
        filled = torch.where(mask, tags, filler)
        torch.testing.assert_close(crf(emissions, filled, mask), wanted)
        ones = torch.ones(tags.shape)
        torch.testing.assert_close(crf(emissions, filled, mask, token_weights=ones), wanted)
        torch.testing.assert_close(crf(emissions, filled, mask, label_weights=torch.ones(4)), wanted)


# --- constraints ---------------------------------------------------------------------------------------------

TAGS = {
    "IOB1": ["O", "I-X", "B-X", "I-Y", "B-Y"],
    "IOB2": ["O", "B-X", "I-X", "B-Y", "I-Y"],
    "IOBES": ["O", "B-X", "I-X", "E-X", "S-X"],
}


def constrained(scheme: str, batch_first: bool = True, seed: int = 3, **options: Any) -> CRF:
    torch.manual_seed(seed)
    crf = CRF.from_tags(TAGS[scheme], scheme, batch_first, **options)
    for parameter in crf.parameters():
        nn.init.normal_(parameter)
    return crf


def is_legal(tags: tuple[int, ...], scheme: str) -> bool:
    return not violations([TAGS[scheme][tag] for tag in tags], scheme)


@pytest.mark.parametrize("scheme", TAGS)
@pytest.mark.parametrize("backend", ["kernel", "torch"])
def test_what_the_scheme_forbids_has_probability_zero_everywhere(scheme: str, backend: str) -> None:
    crf = constrained(scheme, backend=backend)
    emissions, _, _ = ragged_batch(True, 5, (3, 3))
    legal = [tags for tags in itertools.product(range(5), repeat=3) if is_legal(tags, scheme)]
    assert 0 < len(legal) < 125
    dist = crf.distribution(emissions)
    assert dist.count.tolist() == [len(legal)] * 2
    for b in range(2):
        p = probabilities(crf, emissions[b])
        assert {tags for tags, q in p.items() if q > 0} == set(legal)
        for tags in itertools.product(range(5), repeat=3):
            found = dist.log_prob(torch.tensor(tags).expand(2, 3))[b].item()
            assert found == (pytest.approx(math.log(p[tags]), abs=1e-5) if tags in legal else -INF)
        marginals = crf.marginals(emissions)[b]
        for t, tag in itertools.product(range(3), range(5)):
            wanted = math.fsum(q for tags, q in p.items() if tags[t] == tag)
            assert marginals[t, tag].item() == pytest.approx(wanted, abs=1e-6)
            assert (marginals[t, tag] == 0) == (wanted == 0)
        assert crf.decode(emissions)[b] == list(max(p, key=p.__getitem__))
    torch.manual_seed(0)
    drawn = {tuple(tags) for tags in crf.sample(emissions, n_samples=300).reshape(-1, 3).tolist()}
    assert drawn <= set(legal)
    kept, scores = crf.top_k(emissions, len(legal) + 1)
    assert (scores[-1] == -INF).all()
    assert {tuple(tags) for tags in kept[:-1, 0].tolist()} == set(legal)


@pytest.mark.parametrize("scheme", TAGS)
def test_the_loss_of_legal_tags_is_normalised_over_legal_tags(scheme: str) -> None:
    crf = constrained(scheme)
    emissions, _, _ = ragged_batch(True, 5, (3,))
    legal = [tags for tags in itertools.product(range(5), repeat=3) if is_legal(tags, scheme)]
    total = sum(crf(emissions, torch.tensor([tags])).exp().item() for tags in legal)
    assert total == pytest.approx(1.0, abs=1e-5)


def test_forbidden_transitions_get_no_gradient() -> None:
    crf = constrained("IOB2")
    emissions, _, _ = ragged_batch(True, 5, (4, 2))
    (-crf(emissions, torch.zeros(2, 4).long())).backward()
    assert crf.allowed_transitions is not None
    for parameter, allowed in (
        (crf.transitions, crf.allowed_transitions),
        (crf.start_transitions, crf.allowed_start),
        (crf.end_transitions, crf.allowed_end),
    ):
        assert parameter.grad is not None
        assert parameter.grad.isfinite().all()
        assert (parameter.grad[~allowed] == 0).all()  # type: ignore[index]


@pytest.mark.parametrize("weights", [{}, {"token_weights": torch.ones(2, 3)}, {"token_weights": torch.zeros(2, 3)}])
def test_forbidden_gold_tags_are_named_by_row_position_and_tag(weights: dict[str, Tensor]) -> None:
    crf = constrained("IOB2")
    tags = torch.tensor([[0, 1, 2], [0, 0, 2]])
    with pytest.raises(ConstraintError, match=r"gold tags of row 1 are forbidden by the IOB2 scheme.*position 2.*I-X"):
        crf(torch.zeros(2, 3, 5), tags, **weights)


def test_forbidden_gold_tags_are_named_at_the_start_and_beside_unknown_ones() -> None:
    crf = constrained("IOB2")
    with pytest.raises(ConstraintError, match=r"row 0.*position 0 \(I-X at the start"):
        crf(torch.zeros(1, 3, 5), torch.tensor([[2, 2, 0]]))
    with pytest.raises(ConstraintError, match=r"row 0.*position 2 \(I-Y after B-X"):
        crf(torch.zeros(1, 4, 5), torch.tensor([[UNKNOWN, 1, 4, UNKNOWN]]))


def test_the_position_of_forbidden_gold_tags_counts_masked_ones() -> None:
    crf = constrained("IOB2")
    mask = torch.tensor([[False, True, False, True]])
    with pytest.raises(ConstraintError, match=r"row 0.*position 3"):
        crf(torch.zeros(1, 4, 5), torch.tensor([[0, 0, 0, 2]]), mask)


def test_unknown_labels_under_constraints_are_summed_over_what_is_legal() -> None:
    crf = constrained("IOBES")
    emissions, _, _ = ragged_batch(True, 5, (3,))
    p = probabilities(crf, emissions[0])
    found = crf(emissions, torch.tensor([[1, UNKNOWN, UNKNOWN]]))
    wanted = math.log(math.fsum(q for tags, q in p.items() if tags[0] == 1))
    assert found.item() == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("scheme", ["plain", "PLAIN"])
def test_plain_tags_forbid_nothing(scheme: str) -> None:
    crf = CRF.from_tags(["DT", "NN", "VB"], scheme)
    assert crf.allowed_transitions is None
    assert crf.tags == ("DT", "NN", "VB")
    assert crf.decode(torch.zeros(2, 1, 3)) != []


def test_other_spellings_of_a_scheme() -> None:
    crf = CRF.from_tags(["O", "B-X", "I-X"], "bio")
    assert crf.allowed_transitions is not None
    assert not crf.allowed_transitions[0, 2]
    with pytest.raises(ValueError, match="scheme must be one of"):
        CRF.from_tags(["O"], "XYZ")


# --- weights -------------------------------------------------------------------------------------------------


def shares(crf: CRF, emissions: Tensor, tags: list[int]) -> list[float]:
    """log p(y_t | y_1..y_{t-1}, x) of one row, by enumeration."""
    p = probabilities(crf, emissions)
    prefixes = [math.fsum(q for other, q in p.items() if list(other[:t]) == tags[:t]) for t in range(len(tags) + 1)]
    return [math.log(after / before) for before, after in itertools.pairwise(prefixes)]


@both_orders
@pytest.mark.parametrize("reduction", ["none", "sum", "mean", "token_mean"])
def test_weights_of_one_change_nothing(batch_first: bool, reduction: str) -> None:
    crf = random_layer(batch_first=batch_first)
    emissions, tags, mask = ragged_batch(batch_first)
    wanted = crf(emissions, tags, mask, reduction)
    ones = {"token_weights": torch.ones(tags.shape), "label_weights": torch.ones(4)}
    for weights in ({"token_weights": ones["token_weights"]}, {"label_weights": ones["label_weights"]}, ones):
        torch.testing.assert_close(crf(emissions, tags, mask, reduction, **weights), wanted, rtol=1e-5, atol=1e-5)


@both_orders
def test_weights_multiply_each_tokens_share(batch_first: bool) -> None:
    crf = random_layer(3, batch_first)
    emissions, tags, mask = ragged_batch(batch_first, 3)
    token_weights = torch.rand(tags.shape, generator=torch.Generator().manual_seed(0))
    label_weights = torch.tensor([0.5, 2.0, 0.0])
    found = crf(emissions, tags, mask, "none", token_weights=token_weights, label_weights=label_weights)
    rows, row_tags, row_mask, row_weights = rows_of(crf, emissions, tags, mask, token_weights)
    for b in range(3):
        keep = row_mask[b]
        gold = row_tags[b][keep].tolist()
        each = shares(crf, rows[b][keep], gold)
        factors = [w * label_weights[tag].item() for w, tag in zip(row_weights[b][keep].tolist(), gold, strict=True)]
        wanted = math.fsum(share * factor for share, factor in zip(each, factors, strict=True))
        assert found[b].item() == pytest.approx(wanted, abs=1e-5)


def test_a_weight_of_zero_removes_a_share() -> None:
    crf = random_layer(3, batch_first=True)
    emissions, tags, _ = ragged_batch(True, 3, (4,))
    weights = torch.tensor([[1.0, 1.0, 0.0, 1.0]])
    each = shares(crf, emissions[0], tags[0].tolist())
    found = crf(emissions, tags, token_weights=weights)
    assert found.item() == pytest.approx(each[0] + each[1] + each[3], abs=1e-5)
    assert crf(emissions, tags, token_weights=torch.zeros(1, 4)).item() == 0.0


def test_unknown_labels_have_weight_one() -> None:
    crf = random_layer(3, batch_first=True)
    emissions, _, _ = ragged_batch(True, 3, (3,))
    tags = torch.tensor([[0, UNKNOWN, UNKNOWN]])
    twice = crf(emissions, tags, label_weights=torch.tensor([2.0, 1.0, 1.0]))
    torch.testing.assert_close(twice, 2 * crf(emissions, tags))


def test_weighted_losses_train() -> None:
    crf = random_layer(3, batch_first=True)
    emissions, tags, mask = ragged_batch(True, 3)
    scores = emissions.clone().requires_grad_()
    (-crf(scores, tags, mask, label_weights=torch.tensor([1.0, 2.0, 0.0]))).backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()
    assert (scores.grad[~mask] == 0).all()
    assert crf.transitions.grad is not None
    assert crf.transitions.grad.abs().sum() > 0


def test_weights_of_the_wrong_shape() -> None:
    crf, emissions, tags = CRF(3), torch.zeros(4, 2, 3), torch.zeros(4, 2).long()
    with pytest.raises(ScoreError, match=r"token_weights must be .* like the tags; got"):
        crf(emissions, tags, token_weights=torch.ones(3, 2))
    with pytest.raises(ScoreError, match=r"label_weights must be \(3,\); got \(2,\)"):
        crf(emissions, tags, label_weights=torch.ones(2))


def test_other_negative_labels_are_refused_with_weights_too() -> None:
    with pytest.raises(ScoreError, match=r"or be -100 \(unknown\); got -5 at row 1, position 0"):
        CRF(3)(torch.zeros(2, 2, 3), torch.tensor([[0, -5], [1, 1]]), token_weights=torch.ones(2, 2))


# --- precision -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_layer_in_half_precision(dtype: torch.dtype) -> None:
    crf = random_layer(batch_first=True).to(dtype)
    exact = copy.deepcopy(crf).double()
    emissions, tags, mask = ragged_batch(True, lengths=(9, 4, 6), dtype=dtype)
    scores = emissions.clone().requires_grad_()
    loss = -crf(scores, tags, mask, reduction="mean")
    loss.backward()
    wanted = -exact(emissions.double(), tags, mask, reduction="mean")
    assert loss.dtype == dtype
    assert loss.item() == pytest.approx(wanted.item(), rel=3 * torch.finfo(dtype).eps)
    assert scores.grad is not None
    assert scores.grad.dtype == dtype
    for gradient in (scores.grad, *(parameter.grad for parameter in crf.parameters())):
        assert gradient is not None
        assert gradient.isfinite().all()
        assert gradient.dtype == dtype
    assert crf.decode(emissions, mask) == exact.decode(emissions.double(), mask)
    assert crf.marginals(emissions, mask).dtype == dtype
    weighted = crf(emissions, tags, mask, "mean", token_weights=torch.ones(tags.shape, dtype=dtype))
    assert weighted.item() == pytest.approx(-wanted.item(), rel=0.02)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_constraints_hold_in_half_precision(dtype: torch.dtype) -> None:
    crf = constrained("IOBES").to(dtype)
    emissions = ragged_batch(True, 5, (4, 4), dtype=dtype)[0]
    assert all(is_legal(tuple(tags), "IOBES") for tags in crf.decode(emissions))
    assert crf.marginals(emissions)[:, 0, 2].tolist() == [0.0, 0.0]


def test_under_autocast() -> None:
    torch.manual_seed(0)
    linear, crf = nn.Linear(6, 4), random_layer(batch_first=True)
    inputs = torch.randn(2, 5, 6)
    tags = torch.randint(0, 4, (2, 5))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        emissions = linear(inputs)
        assert emissions.dtype == torch.bfloat16
        loss = -crf(emissions, tags, reduction="mean")
        decoded, marginals = crf.decode(emissions), crf.marginals(emissions)
    loss.backward()
    assert loss.dtype == torch.float32
    assert linear.weight.grad is not None
    assert linear.weight.grad.dtype == torch.float32
    assert linear.weight.grad.isfinite().all()
    assert marginals.dtype == torch.float32
    torch.testing.assert_close(marginals.sum(-1), torch.ones(2, 5))
    outside = -crf(emissions.detach().float(), tags, reduction="mean")
    torch.testing.assert_close(loss, outside)
    assert decoded == crf.decode(emissions.detach().float())


@pytest.mark.parametrize("backend", ["kernel", "torch"])
def test_autocast_does_not_lower_the_precision_inside(backend: str) -> None:
    """Matrix products of the recursion must not run in bfloat16 because the caller's network does."""
    crf = random_layer(batch_first=True, backend=backend)
    emissions, tags, mask = ragged_batch(True, lengths=(30, 12))
    wanted = crf(emissions, tags, mask)
    wanted.backward()
    gradient = crf.transitions.grad
    assert gradient is not None
    gradient = gradient.clone()
    crf.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = crf(emissions, tags, mask)
        found.backward()
        marginals = crf.marginals(emissions, mask)
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(crf.transitions.grad, gradient)
    torch.testing.assert_close(marginals, crf.marginals(emissions, mask))


# --- the other queries ---------------------------------------------------------------------------------------


@both_orders
def test_viterbi_is_decode_as_a_tensor(batch_first: bool) -> None:
    crf = random_layer(batch_first=batch_first)
    emissions, _, mask = ragged_batch(batch_first)
    tags, scores = crf.viterbi(emissions, mask)
    assert tags.shape == mask.shape
    assert tags.dtype == torch.long
    assert scores.shape == (3,)
    rows, row_tags, row_mask = rows_of(crf, emissions, tags, mask)
    assert [row[keep].tolist() for row, keep in zip(row_tags, row_mask, strict=True)] == crf.decode(emissions, mask)
    assert (row_tags[~row_mask] == 0).all()
    for b in range(3):
        best = tuple(row_tags[b][row_mask[b]].tolist())
        assert scores[b].item() == pytest.approx(path_score(crf, rows[b][row_mask[b]], best), rel=1e-5)


@both_orders
def test_marginals_top_k_and_samples(batch_first: bool) -> None:
    crf = random_layer(3, batch_first)
    emissions, _, mask = ragged_batch(batch_first, 3)
    marginals = crf.marginals(emissions, mask)
    assert marginals.shape == emissions.shape
    tags, scores = crf.top_k(emissions, 2, mask)
    assert tags.shape == (2, *mask.shape)
    assert scores.shape == (2, 3)
    samples = crf.sample(emissions, mask, n_samples=7)
    assert samples.shape == (7, *mask.shape)
    assert crf.sample(emissions).shape == (1, *mask.shape)
    rows, row_mask, row_marginals = rows_of(crf, emissions, mask, marginals)
    for b in range(3):
        keep = row_mask[b]
        p = probabilities(crf, rows[b][keep])
        for t, tag in itertools.product(range(int(keep.sum())), range(3)):
            wanted = math.fsum(q for each, q in p.items() if each[t] == tag)
            assert row_marginals[b, t, tag].item() == pytest.approx(wanted, abs=1e-6)
        ranked = sorted(p, key=p.__getitem__, reverse=True)
        for rank in range(2):
            (row_tags,) = rows_of(crf, tags[rank])
            assert tuple(row_tags[b][keep].tolist()) == ranked[rank]
            assert scores[rank, b].item() == pytest.approx(path_score(crf, rows[b][keep], ranked[rank]), abs=1e-5)


@both_orders
def test_span_probability(batch_first: bool) -> None:
    crf = constrained("IOB2", batch_first)
    emissions, _, mask = ragged_batch(batch_first, 5, (4, 3, 4))
    found = crf.span_probability(emissions, 1, 3, "X", mask)
    assert found.shape == (3,)
    rows, row_mask = rows_of(crf, emissions, mask)
    for b in range(3):
        p = probabilities(crf, rows[b][row_mask[b]])
        wanted = math.fsum(q for tags, q in p.items() if tags[1:3] == (1, 2) and tags[3:4] != (2,))
        assert found[b].item() == pytest.approx(wanted, abs=1e-6)


def test_span_probability_needs_names() -> None:
    with pytest.raises(ScoreError, match=r"need the tags' names; make the layer with CRF\.from_tags"):
        CRF(3).span_probability(torch.zeros(2, 1, 3), 0, 1, "X")


def test_the_distribution_behind_the_layer() -> None:
    crf = random_layer(batch_first=False)
    emissions, tags, mask = ragged_batch(False)
    dist = crf.distribution(emissions, mask)
    assert dist.batch_shape == (3,)
    assert dist.event_shape == (5,)
    torch.testing.assert_close(dist.log_prob(tags.T), crf(emissions, tags, mask, "none"))


# --- life of a module ----------------------------------------------------------------------------------------


def copies(crf: CRF) -> Iterator[CRF]:
    yield copy.deepcopy(crf)
    yield pickle.loads(pickle.dumps(crf))
    fresh = CRF.from_tags(crf.tags, crf.scheme, crf.batch_first) if crf.tags and crf.scheme else CRF(crf.num_tags, True)
    fresh.load_state_dict(crf.state_dict())
    yield fresh


@pytest.mark.parametrize("make", [lambda: random_layer(5, batch_first=True), lambda: constrained("IOBES")])
def test_copies_behave_like_the_original(make: Any) -> None:
    crf = make()
    emissions, _, mask = ragged_batch(True, 5)
    tags = torch.zeros(3, 5).long()
    for other in copies(crf):
        assert other is not crf
        assert repr(other) == repr(crf)
        assert torch.equal(other(emissions, tags, mask), crf(emissions, tags, mask))
        assert other.decode(emissions, mask) == crf.decode(emissions, mask)
        assert torch.equal(other.marginals(emissions, mask), crf.marginals(emissions, mask))


class Doubled(nn.Module):
    def forward(self, parameter: Tensor) -> Tensor:
        return 2 * parameter


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_may_be_reparametrised(name: str) -> None:
    """Ties, norms and pruning move a parameter elsewhere in the module; the attribute is what counts."""
    crf = random_layer(batch_first=True)
    emissions, tags, mask = ragged_batch(True)
    wanted = copy.deepcopy(crf)
    with torch.no_grad():
        getattr(wanted, name).mul_(2)
    nn.utils.parametrize.register_parametrization(crf, name, Doubled())
    torch.testing.assert_close(crf(emissions, tags, mask), wanted(emissions, tags, mask))
    assert crf.decode(emissions, mask) == wanted.decode(emissions, mask)


def test_parameters_may_be_given_by_a_functional_call() -> None:
    crf = random_layer(batch_first=True)
    emissions, tags, mask = ragged_batch(True)
    other = random_layer(batch_first=True, seed=8)
    found = torch.func.functional_call(crf, dict(other.named_parameters()), (emissions, tags, mask))
    torch.testing.assert_close(found, other(emissions, tags, mask))


def test_a_layer_in_double_precision() -> None:
    crf = constrained("IOB2").to(torch.float64)
    emissions = ragged_batch(True, 5, (3, 3), dtype=torch.float64)[0]
    loss = crf(emissions, torch.zeros(2, 3).long(), reduction="none")
    assert loss.dtype == torch.float64
    for b in range(2):
        assert loss[b].item() == pytest.approx(math.log(probabilities(crf, emissions[b])[(0, 0, 0)]), rel=1e-12)


def test_without_gradients() -> None:
    crf = random_layer(batch_first=True)
    emissions, tags, mask = ragged_batch(True)
    wanted = crf(emissions, tags, mask)
    with torch.no_grad():
        assert not crf(emissions, tags, mask).requires_grad
        torch.testing.assert_close(crf(emissions, tags, mask), wanted.detach())
        assert not crf.marginals(emissions, mask).requires_grad
        crf.top_k(emissions, 2, mask)
        crf.sample(emissions, mask)
    with torch.inference_mode():
        torch.testing.assert_close(crf(emissions, tags, mask), wanted.detach())
        assert crf.decode(emissions, mask) == peer_of(crf).decode(emissions, mask)
        crf.viterbi(emissions, mask)


@both_orders
def test_training_reaches_the_gold_tags(batch_first: bool) -> None:
    crf = random_layer(3, batch_first)
    emissions, tags, mask = ragged_batch(batch_first, 3)
    scores = nn.Parameter(emissions.clone())
    optimizer = torch.optim.Adam([scores, *crf.parameters()], lr=0.3)
    for _ in range(40):
        optimizer.zero_grad()
        loss = -crf(scores, tags, mask, reduction="token_mean")
        loss.backward()
        optimizer.step()
    rows, row_mask = rows_of(crf, tags, mask)
    assert loss.item() < 0.1
    assert crf.decode(scores.detach(), mask) == [row[keep].tolist() for row, keep in zip(rows, row_mask, strict=True)]


def test_torch_func_and_forward_mode_derivatives() -> None:
    """Neither can look into a kernel, so the reference answers."""
    crf, tags = CRF(3, batch_first=True), torch.tensor([[0, 1, 2, 0], [2, 2, 1, 0]])
    emissions = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    parameters = {name: parameter.detach() for name, parameter in crf.named_parameters()}

    def loss(values: dict[str, Tensor], scores: Tensor) -> Tensor:
        return -torch.func.functional_call(crf, values, (scores, tags))

    crf.zero_grad()
    (-crf(emissions, tags)).backward()
    by_parameter, by_emission = torch.func.grad(loss, argnums=(0, 1))(parameters, emissions.detach())
    torch.testing.assert_close(by_emission, emissions.grad)
    for name, parameter in crf.named_parameters():
        torch.testing.assert_close(by_parameter[name], parameter.grad)

    direction = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(1))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(emissions.detach(), direction)
        slope = torch.autograd.forward_ad.unpack_dual(-crf(dual, tags)).tangent
        assert crf.decode(dual) == crf.decode(emissions)
    torch.testing.assert_close(slope, (emissions.grad * direction).sum())


def test_tags_named_twice() -> None:
    with pytest.raises(ScoreError, match="tags must differ from one another; got O more than once"):
        CRF.from_tags(["O", "B-X", "I-X", "O"], scheme="IOB2")


def test_a_crf_shows_its_tags_and_scheme() -> None:
    shown = repr(CRF.from_tags(["O", "B-X", "I-X"], scheme="IOB2", batch_first=True))
    assert shown == "CRF(num_tags=3, tags=['O', 'B-X', 'I-X'], scheme='IOB2')"


def test_lengths_may_be_a_list_or_an_array() -> None:
    crf, emissions = CRF(3, batch_first=True), torch.randn(2, 4, 3)
    wanted = crf.decode(emissions, lengths=torch.tensor([4, 2]))
    assert crf.decode(emissions, lengths=[4, 2]) == crf.decode(emissions, lengths=np.array([4, 2])) == wanted
    with pytest.raises(ScoreError, match=r"lengths must be whole numbers of shape \(2,\)"):
        crf.decode(emissions, lengths=[4, 2.5])
    with pytest.raises(ScoreError, match="emissions must be a tensor; got ndarray"):
        crf.decode(emissions.numpy())


@pytest.mark.parametrize(
    ("tags", "scheme", "lost"),
    [
        (["O", "B-X", "I-Y"], "IOB2", "I-Y"),
        (["O", "B-X", "I-Y"], "IOBES", "B-X, I-Y"),
        (["O", "S-X", "B-Y", "I-Y"], "IOBES", "B-Y, I-Y"),
        (["O", "B-X", "I-X", "S-Y", "B-Y", "E-Y"], "IOBES", "B-X, I-X"),
    ],
)
def test_a_tag_that_no_legal_sequence_has_is_a_warning(tags: list[str], scheme: str, lost: str) -> None:
    with pytest.warns(TrellisworkWarning, match=f"no legal {scheme} sequence has {lost}:"):
        crf = CRF.from_tags(tags, scheme, batch_first=True)
    found = crf.marginals(torch.zeros(1, 5, len(tags)))[0].amax(0)
    assert [tag for tag, best in zip(tags, found.tolist(), strict=True) if best == 0] == lost.split(", ")


def test_tags_that_can_all_be_reached_are_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CRF.from_tags(["O", "B-X", "I-X", "E-X", "S-X", "S-Y"])
        CRF.from_tags(["O", "I-X", "B-X"], "IOB1")
