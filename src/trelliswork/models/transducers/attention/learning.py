"""Objectives of attention models: the likelihood, own symbols as inputs, or own targets and their costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from trelliswork.metrics.strings import edit_distances
from trelliswork.models.transducers.attention.answering import AttentionSearch, ReadSources
from trelliswork.models.transducers.network import EncodedPair
from trelliswork.nn.decoders.base import Step, Unrolled
from trelliswork.runtime.arrays import Float

Loss = Callable[[AttentionSearch, Sequence[EncodedPair]], "Float[Tensor, '']"]


def likelihood(network: AttentionSearch, pairs: Sequence[EncodedPair]) -> Tensor:
    """Return -log p(target | source), where the decoder reads the true symbols."""  # [S4.24; S2, seq2seq]
    inputs, outputs, mask = network.given(pairs)
    read = network.read(pairs)
    unrolled = network.decoder(read.memory, network.embed(inputs))
    return network.target_loss(read, unrolled, outputs, mask)


def scheduled(network: AttentionSearch, pairs: Sequence[EncodedPair]) -> Tensor:
    """Return the loss where the decoder now and then reads a symbol of its own, drawn from its distribution.

    Bengio et al. (2015), Scheduled sampling for sequence prediction with recurrent neural networks.
    """
    inputs, outputs, mask = network.given(pairs)
    read = network.read(pairs)
    state, steps, symbols = network.decoder.initial(read.memory, inputs.shape[1]), [], inputs[:, :1]
    for t in range(inputs.shape[1]):
        step = network.decoder.step(read.memory, state, network.embed(symbols))
        steps.append(step)
        state = step.state
        if t + 1 < inputs.shape[1]:
            symbols = _mixed(network, read, step, inputs[:, t + 1 : t + 2])
    unrolled = Unrolled(torch.cat([each.hidden for each in steps], 1), torch.cat([each.weights for each in steps], 1))
    return network.target_loss(read, unrolled, outputs, mask)


def _mixed(network: AttentionSearch, read: ReadSources, step: Step, gold: Tensor) -> Tensor:
    """Return the true symbols, with a share of the network's own."""
    if not network.training or network.own_share == 0:
        return gold
    with torch.no_grad():
        log_probs = network.symbol_log_probs(read, Unrolled(step.hidden, step.weights))
        own = torch.multinomial(log_probs[:, 0].exp(), 1)
    return torch.where(torch.rand(gold.shape, device=gold.device) < network.own_share, own, gold)


def risk(network: AttentionSearch, pairs: Sequence[EncodedPair]) -> Tensor:
    """Return Σ_y Q(y) cost(y) over drawn targets and the true one, Q(y) ∝ p(y | source)^sharpness.

    The cost is the edit distance over the length of the true target. Shen et al. (2016), Minimum risk training for
    neural machine translation.
    """
    drawn, owners = _drawn(network, pairs, with_gold=True)
    log_p = log_probs_of(network, drawn)
    costs = _costs(network, drawn, pairs, owners)
    by_owner = log_p.new_full((len(pairs), network.config.n_candidates + 1), -torch.inf)
    places = _places(owners)
    by_owner = by_owner.index_put((torch.tensor(owners), places), network.config.sharpness * log_p)
    shares = by_owner.softmax(1)[torch.tensor(owners), places]
    return (shares * costs).sum()


def reinforce(network: AttentionSearch, pairs: Sequence[EncodedPair]) -> Tensor:
    """Return -(reward - baseline) log p of drawn targets; the baseline of each is the mean reward of the others.

    Williams (1992), Simple statistical gradient-following algorithms for connectionist reinforcement learning. The
    value is a surrogate: its gradient is that of the expected cost.
    """
    drawn, owners = _drawn(network, pairs, with_gold=False)
    log_p = log_probs_of(network, drawn)
    rewards = -_costs(network, drawn, pairs, owners).view(len(pairs), -1)
    n = rewards.shape[1]
    baseline = (rewards.sum(1, keepdim=True) - rewards) / (n - 1)
    return -((rewards - baseline).flatten() * log_p).sum() / n


def log_probs_of(network: AttentionSearch, pairs: Sequence[EncodedPair]) -> Float[Tensor, " batch"]:
    """Return ln p(target | source), differentiable."""
    inputs, outputs, mask = network.given(pairs)
    read = network.read(pairs)
    unrolled = network.decoder(read.memory, network.embed(inputs))
    return (network.target_log_probs(read, unrolled, outputs) * mask).sum(1)


def _drawn(
    network: AttentionSearch, pairs: Sequence[EncodedPair], *, with_gold: bool
) -> tuple[list[EncodedPair], list[int]]:
    """Draw targets for each source; return them and the source of each; for the risk, none twice and the true one."""
    with network.evaluating():
        samples = network.samples(pairs, network.config.n_candidates)
    drawn, owners = [], []
    for i, (pair, own_samples) in enumerate(zip(pairs, samples, strict=True)):
        targets = [pieces for pieces, _ in own_samples]
        if with_gold:
            targets = list(dict.fromkeys([tuple(() if pair.target is None else pair.target.tolist()), *targets]))
        drawn += [EncodedPair(pair.source, torch.tensor(each, dtype=torch.long), pair.symbols) for each in targets]
        owners += [i] * len(targets)
    return drawn, owners


def _costs(
    network: AttentionSearch, drawn: Sequence[EncodedPair], gold: Sequence[EncodedPair], owners: Sequence[int]
) -> Tensor:
    """Return the edit distance of each target to the true one, over the length of that."""
    right = [_spelled(pair) for pair in gold]
    distances = edit_distances([(_spelled(each), right[i]) for each, i in zip(drawn, owners, strict=True)])
    shares = [d / max(1, len(right[i])) for d, i in zip(distances, owners, strict=True)]
    return torch.tensor(shares, device=network.device)


def _spelled(pair: EncodedPair) -> tuple[str, ...]:
    """Return the numbers of the target as symbols."""
    return () if pair.target is None else tuple(map(str, pair.target.tolist()))


def _places(owners: Sequence[int]) -> Tensor:
    """Return the number of each target among those of its source."""
    seen: dict[int, int] = {}
    places = []
    for owner in owners:
        places.append(seen.get(owner, 0))
        seen[owner] = places[-1] + 1
    return torch.tensor(places)


LOSSES: dict[str, Loss] = {"likelihood": likelihood, "scheduled": scheduled, "risk": risk, "reinforce": reinforce}
