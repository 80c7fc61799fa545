"""Objectives of training. A model gives the distribution of a batch and its gold value, an objective the loss.

likelihood   -log p(gold), the model's own `loss`, on its fast path
local        -log p of each tag given the gold one before it, or of each head alone, normalised token by token
perceptron   the score of the best value less that of gold
margin       the same, where every value but gold is helped by its cost
risk         the expected cost

The cost of a value is the number of tokens that have another label (of trees: another head or label) than gold or, of
segments, lie in a segment that gold does not have; of constituency trees, it is the number of nodes that gold lacks.

Collins (2002), Discriminative training methods for hidden Markov models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any, Protocol, Self, TypeAlias, runtime_checkable

import torch
from torch import Tensor

from trelliswork.data import Sentence
from trelliswork.data.json_values import JsonObject
from trelliswork.distributions import LinearChain, SemiMarkov, SpanTree
from trelliswork.distributions.dependency_tree import DependencyTree
from trelliswork.distributions.local import locally_normalised
from trelliswork.errors import TrellisworkError
from trelliswork.runtime.arrays import INF, Float
from trelliswork.training.config import TrainingConfig

Batch: TypeAlias = Any  # encoded examples, each model having a type of its own
Structure: TypeAlias = LinearChain | SemiMarkov | DependencyTree | SpanTree


def local(structure: Structure, gold: Tensor) -> Float[Tensor, " batch"]:
    """Return -log p of the tags where each is a softmax given the one before it, as in a maximum-entropy Markov model.

    Of trees, each word chooses its head, and the label of the arc, alone: Dozat and Manning (2017), Deep biaffine
    attention for neural dependency parsing.
    """
    if isinstance(structure, DependencyTree):
        return _heads_alone(structure, gold)
    if not isinstance(structure, LinearChain):
        raise TrellisworkError(
            "the objective local needs a tag for each token, got segments; train a tagger, or choose another objective"
        )
    return -locally_normalised(structure).score(gold)


def perceptron(structure: Structure, gold: Tensor) -> Float[Tensor, " batch"]:
    """Return max_y score(y) - score(gold): its gradient steps towards gold and away from the prediction."""
    # [S4.221]
    return _best_score(structure) - structure.score(gold)


def margin(structure: Structure, gold: Tensor) -> Float[Tensor, " batch"]:
    """Return max_y (score(y) + cost(y)) - score(gold), never below 0."""
    return _best_score(_cost_augmented(structure, costs_of(structure, gold))) - structure.score(gold)


def risk(structure: Structure, gold: Tensor) -> Float[Tensor, " batch"]:
    """Return Σ_y p(y) cost(y), the expected cost."""
    return structure.expected(costs_of(structure, gold))


OBJECTIVES: dict[str, Callable[[Structure, Tensor], Tensor]] = {
    "local": local,
    "perceptron": perceptron,
    "margin": margin,
    "risk": risk,
}


def make_objective(name: str, model: Trainable) -> Callable[[Batch], Tensor]:
    """Return the function that gives the summed loss of a batch of encoded examples."""
    if name == "likelihood":
        return model.loss
    objective, scored = OBJECTIVES[name], getattr(model, "scored", None)
    if scored is None:
        raise TrellisworkError(
            f"the objective {name} needs a model with a distribution to score (a method `scored`), "
            f'got a {type(model).__name__}; use objective="likelihood"'
        )

    def loss(batch: Batch) -> Tensor:
        # what a model learns in addition to the structure, such as tags, adds to the loss
        structure, gold, *more = scored(batch)
        return sum(more, objective(structure, gold).sum())

    return loss


def costs_of(structure: Structure, gold: Tensor) -> Tensor:
    """Return the cost of each label of each token [batch, n, c], of each segment [batch, n, k, c], of each arc or span.

    Costs of arcs are shaped like the scores of their labels, or like those of arcs without labels.
    """
    if isinstance(structure, LinearChain):
        right = torch.nn.functional.one_hot(gold.clamp(min=0), structure.emissions.shape[-1])
        return (1 - right).to(structure.emissions.dtype) * structure.valid[..., None]
    if isinstance(structure, DependencyTree):
        return _costs_of_arcs(structure, gold)
    if isinstance(structure, SpanTree):
        return 1 - structure.to_parts(gold)
    parts = structure.to_parts(gold)
    n_tokens = torch.arange(1, parts.shape[-2] + 1, device=parts.device, dtype=parts.dtype)
    return (1 - parts) * n_tokens[:, None]


def _costs_of_arcs(structure: DependencyTree, gold: Tensor) -> Tensor:
    costs = torch.ones_like(structure.arcs if structure.labels is None else structure.labels)
    pairs = gold[..., None] if structure.labels is None else gold
    words = torch.arange(1, structure.n + 1, device=gold.device)
    rows = torch.arange(len(gold), device=gold.device)[:, None]
    costs[(rows, pairs[..., 0], words, *pairs[..., 1:].unbind(-1))] = 0
    return costs


def _heads_alone(structure: DependencyTree, gold: Tensor) -> Float[Tensor, " batch"]:
    """Return -Σ_m log p(head of m, label of m), a softmax over all heads (and labels) of m alone."""
    n, labels = structure.n, structure.labels
    scores = structure.arcs if labels is None else structure.arcs[..., None] + labels
    places = torch.arange(n + 1, device=gold.device)
    real = torch.nn.functional.pad(structure.valid, (1, 0), value=True)[..., None] & (places[:, None] != places)
    scores = scores.masked_fill(~real if labels is None else ~real[..., None], -INF)
    by_word = scores.transpose(1, 2)[:, 1:].flatten(2).log_softmax(-1)  # [batch, n, (n+1) * labels]
    chosen = gold if labels is None else gold[..., 0] * labels.shape[-1] + gold[..., 1]
    log_probs = by_word.gather(-1, chosen[..., None])[..., 0]
    return -log_probs.masked_fill(~structure.valid, 0.0).sum(-1)


def _best_score(structure: Structure) -> Float[Tensor, " batch"]:
    return structure.score(structure.argmax)


def _cost_augmented(structure: Structure, costs: Tensor) -> Structure:
    """Return the same structure with scores raised by the costs."""
    if isinstance(structure, DependencyTree):
        if structure.labels is None:
            return structure._like(structure.arcs + costs, None, structure.lengths)
        return structure._like(structure.arcs, structure.labels + costs, structure.lengths)
    if isinstance(structure, SpanTree):
        return structure._like(structure.spans + costs, structure.lengths)
    if isinstance(structure, LinearChain):
        return structure._like(structure.emissions + costs, structure.transitions, structure.start, structure.end)
    return structure._like(structure.segments + costs, structure.transitions, structure.start, structure.end)


# What the loop asks of a model.


class TextPiece(Sized, Protocol):
    """Batch of a text that is read in order: its length in tokens, and the sentences that it begins in."""

    @property
    def sentences(self) -> Sequence[Sentence]: ...


@runtime_checkable
class TextReader(Protocol):
    """A model that reads a text in order and carries a state from each batch to the next."""

    def in_order(self, sentences: Sequence[Sentence], training: TrainingConfig) -> Sequence[TextPiece] | None:
        """Return the batches of every epoch, or None if sentences are read alone, in batches of like length."""

    def carried(self) -> dict[str, Tensor]:
        """Return what the next batch depends on, for a checkpoint."""

    def carry(self, tensors: Mapping[str, Tensor]) -> None:
        """Put back what `carried` returned."""


class Trainable(Protocol):
    """Protocol of a model that the loop can train, which is also an `nn.Module`.

    Objectives other than the likelihood also ask for `scored`: the distribution of a batch and its gold value, and the
    loss of what is learned in addition, if there is any. A model whose loss is not the same in all epochs has
    `begin_epoch(epoch, n_epochs)`, which is called before each of them. One that prepares something for all epochs has
    `begin_training(train, dev, epoch, note)`, called once before the `epoch` that comes first, and `end_training()`.
    One that reads a text in order is a `TextReader`.
    """

    metrics: JsonObject

    def encode(self, sentences: Sequence[Sentence], *, with_tags: bool = False) -> Sequence[Sized]:
        """Return examples, made once and reused in each epoch."""

    def loss(self, batch: Batch) -> Tensor:
        """Return the summed loss of a batch of encoded examples."""

    def evaluate(self, sentences: Sequence[Sentence]) -> JsonObject:
        """Return scores of the model on gold data; `score` is the one that counts and `metric` its name."""

    def check_output(self, directory: str | Path) -> None:
        """Raise `OutputError` if `save` could not write there; asked before the first epoch."""

    def save(self, directory: str | Path, *, extra: Mapping[str, str] | None = None) -> None:
        """Write the model folder."""

    @classmethod
    def load(cls, directory: str | Path) -> Self:
        """Return the model of a folder; asked for when a finished run goes on."""
