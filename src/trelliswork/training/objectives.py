"""What training makes small. A model gives the distribution of a batch and its gold value, an objective the loss.

likelihood   -log p(gold), the model's own `loss`, on its fast path
local        -log p of each tag given the gold one before it, normalised token by token (chains only)
perceptron   the score of the best value less that of gold
margin       the same, where every value but gold is helped by its cost
risk         the expected cost

The cost of a value is the number of tokens that have another label than gold or, of segments, lie in a segment that
gold does not have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor

from trelliswork.distributions import LinearChain, SemiMarkov
from trelliswork.distributions.local import locally_normalised
from trelliswork.errors import TrellisworkError
from trelliswork.training.trainable import Trainable

if TYPE_CHECKING:
    from jaxtyping import Float

Structure: TypeAlias = LinearChain | SemiMarkov


def local(found: Structure, gold: Tensor) -> Float[Tensor, " batch"]:
    """-log p of the tags where each is a softmax given the one before it, as in a maximum-entropy Markov model."""
    if not isinstance(found, LinearChain):
        raise TrellisworkError(
            "the objective local needs a tag for each token, got segments; train a tagger, or choose another objective"
        )
    return -locally_normalised(found).score(gold)


def perceptron(found: Structure, gold: Tensor) -> Float[Tensor, " batch"]:
    """max_y score(y) - score(gold): its gradient steps towards gold and away from the prediction [S4.221]."""
    return _best_score(found) - found.score(gold)


def margin(found: Structure, gold: Tensor) -> Float[Tensor, " batch"]:
    """max_y (score(y) + cost(y)) - score(gold), never below 0."""
    costs = costs_of(found, gold)
    scores = found.emissions if isinstance(found, LinearChain) else found.segments
    return _best_score(_with_scores(found, scores + costs)) - found.score(gold)


def risk(found: Structure, gold: Tensor) -> Float[Tensor, " batch"]:
    """Σ_y p(y) cost(y)."""
    return found.expected(costs_of(found, gold))


OBJECTIVES: dict[str, Callable[[Structure, Tensor], Tensor]] = {
    "local": local,
    "perceptron": perceptron,
    "margin": margin,
    "risk": risk,
}


def make_objective(name: str, model: Trainable) -> Callable[[Any], Tensor]:
    """From a batch of encoded examples to its summed loss."""
    if name == "likelihood":
        return model.loss
    objective, scored = OBJECTIVES[name], getattr(model, "scored", None)
    if scored is None:
        raise TrellisworkError(
            f"the objective {name} needs a model with a distribution to score (a method `scored`), "
            f'got a {type(model).__name__}; use objective="likelihood"'
        )
    return lambda batch: objective(*scored(batch)).sum()


def costs_of(found: Structure, gold: Tensor) -> Tensor:
    """The cost of each label of each token [batch, n, c], or of each segment [batch, n, k, c]."""
    if isinstance(found, LinearChain):
        right = torch.nn.functional.one_hot(gold.clamp(min=0), found.emissions.shape[-1])
        return (1 - right).to(found.emissions.dtype) * found.valid[..., None]
    parts = found.to_parts(gold)
    n_tokens = torch.arange(1, parts.shape[-2] + 1, device=parts.device, dtype=parts.dtype)
    return (1 - parts) * n_tokens[:, None]


def _best_score(found: Any) -> Float[Tensor, " batch"]:
    return found.score(found.argmax)


def _with_scores(found: Any, scores: Tensor) -> Structure:
    return found._like(scores, found.transitions, found.start, found.end)
