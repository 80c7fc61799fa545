"""A chain whose states are finer than its labels: every state belongs to one label, and answers are about labels.

With latent variables a state is (label, z), and p(labels) sums over all z; in a chain of second order a
state is (label before, label), and each labelling has one path of states.
"""  # [S4.128-131]

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from trelliswork.distributions.linear_chain import LinearChain
from trelliswork.distributions.ranking import padded
from trelliswork.distributions.spans import Span
from trelliswork.runtime.arrays import INF, Bool, Float, Int
from trelliswork.semirings.log import log_ratio

TRIED = 8  # state paths that are looked at for each of the k best labellings


class GroupedChain:
    """`states` is a chain over states, `label_of` [c] the label of each; values are labels [batch, n].

    `argmax` is the labelling of the best path of states: the best one itself where each labelling has one path, else
    one whose probability is not far below it. `best_by_token` takes the most probable label of each token.

    >>> states = LinearChain(torch.zeros(1, 2, 4), torch.zeros(4, 4))
    >>> GroupedChain(states, torch.tensor([0, 0, 0, 1])).marginals
    tensor([[[0.7500, 0.2500],
             [0.7500, 0.2500]]])

    Args:
        states: a chain over the states.
        label_of: the label of each state [c].
        one_path_each: whether every labelling has a single path of states.
    """  # [S4.128-130]

    def __init__(self, states: LinearChain, label_of: Int[Tensor, "c"], *, one_path_each: bool = False) -> None:
        self.states, self.label_of, self.one_path_each = states, label_of, one_path_each
        self.n_labels = int(label_of.max()) + 1

    @property
    def batch_shape(self) -> torch.Size:
        return self.states.batch_shape

    @property
    def event_shape(self) -> torch.Size:
        return self.states.event_shape

    @property
    def log_partition(self) -> Float[Tensor, "batch"]:
        """log Z over all paths of states."""
        return self.states.log_partition

    @property
    def marginals(self) -> Float[Tensor, "batch n labels"]:
        """p(label at t | x): the posteriors of its states added up."""
        of_states = self.states.marginals
        empty = of_states.new_zeros(*of_states.shape[:-1], self.n_labels)
        return empty.index_add(-1, self.label_of, of_states)

    @property
    def argmax(self) -> Int[Tensor, "batch n"]:
        """The labels of the best path of states."""
        return self._labels(self.states.argmax)

    @property
    def best_by_token(self) -> Int[Tensor, "batch n"]:
        """The label of highest posterior at each token: the fewest wrong labels to be expected."""
        return self.marginals.argmax(-1)

    def log_prob(self, value: Int[Tensor, "*samples batch n"]) -> Float[Tensor, "*samples batch"]:
        """Return log p(labels | x), summed over their paths of states."""  # [S4.131]
        rows = value.reshape(-1, *value.shape[-2:])
        log_z = self.states._log_z
        log_probs = [log_ratio(self.constrain(each).states._log_z, log_z) for each in rows]
        return torch.stack(log_probs).reshape(value.shape[:-1]).clamp(max=0.0).to(self.states.dtype)

    def score(self, value: Int[Tensor, "*samples batch n"]) -> Float[Tensor, "*samples batch"]:
        """Return log of the summed exp scores of the paths of states."""
        return self.log_prob(value) + self.log_partition

    def top_k(self, k: int) -> tuple[Int[Tensor, "k batch n"], Float[Tensor, "k batch"]]:
        """Return k labellings and their scores, best first.

        Exact where each labelling has one path; else the best of those that the best paths of states spell out.
        """
        if self.one_path_each:
            paths, scores = self.states.top_k(k)
            return self._labels(paths), scores
        paths, scores = self.states.top_k(self.states._n_best(TRIED * k))
        values = self._labels(paths)
        exact = torch.where(scores > -INF, self.score(values), -INF)
        for rank in range(1, len(values)):  # a labelling counts once
            seen = (values[:rank] == values[rank]).all(-1) & (exact[:rank] > -INF)
            exact[rank] = torch.where(seen.any(0), -INF, exact[rank])
        best, order = exact.sort(dim=0, descending=True, stable=True)
        picked = values.gather(0, order[:k, :, None].expand(-1, -1, values.shape[-1]))
        return padded((picked, best[:k]), k)

    def sample(
        self, sample_shape: Sequence[int] = (), generator: torch.Generator | None = None
    ) -> Int[Tensor, "*samples batch n"]:
        """Return exact independent samples."""
        return self._labels(self.states.sample(sample_shape, generator))

    def constrain(self, partial: Int[Tensor, "batch n"] | Bool[Tensor, "batch n labels"]) -> GroupedChain:
        """Return only the labellings that agree; `partial` as in `LinearChain.constrain`."""
        if partial.dtype == torch.bool:
            allowed = partial[..., self.label_of]
        else:
            allowed = (partial[..., None] == self.label_of) | (partial[..., None] < 0)
        return GroupedChain(self.states.constrain(allowed), self.label_of, one_path_each=self.one_path_each)

    def expected(self, costs: Tensor, **kinds: Tensor) -> Float[Tensor, "batch"]:
        """Return E[Σ costs of the labels].

        Costs are those of `LinearChain.expected`, of labels in the place of tags.
        """
        return self.states.expected(**self._of_states(costs=costs, **kinds))

    def variance(self, costs: Tensor, **kinds: Tensor) -> Float[Tensor, "batch"]:
        """Return Var[Σ costs of the labels]; never below 0."""
        return self.states.variance(**self._of_states(costs=costs, **kinds))

    def _of_states(self, **costs: Tensor) -> dict[str, Tensor]:
        """Return costs of labels as costs of states."""
        by_state = {name: each[..., self.label_of] for name, each in costs.items()}
        return {name: each[..., self.label_of, :] if name == "transitions" else each for name, each in by_state.items()}

    def log_prob_of_set(self, partial: Tensor) -> Float[Tensor, "batch"]:
        """Return log p(the labels agree with `partial` | x)."""
        return log_ratio(self.constrain(partial).states._log_z, self.states._log_z).to(self.states.dtype)

    def span_probabilities(
        self, spans: Sequence[Sequence[Span]], *, tags: Sequence[str], scheme: str = "IOB2"
    ) -> list[Float[Tensor, "spans"]]:
        """Return the probability of each row's spans (start, end, label); `tags` names the labels.

        Args:
            spans: for each row its spans (start, end, label), end exclusive.
            tags: the name of each label of the chain, such as B-PER.
            scheme: the scheme of these names, such as IOB2.

        Returns:
            For each row the probabilities of its spans.
        """
        names = [tags[label] for label in self.label_of.tolist()]
        return self.states.span_probabilities(spans, tags=names, scheme=scheme)

    def _labels(self, paths: Int[Tensor, "*samples batch n"]) -> Int[Tensor, "*samples batch n"]:
        return torch.where(self.states.valid, self.label_of[paths], 0)


TagDistribution = LinearChain | GroupedChain
