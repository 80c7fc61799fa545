"""The hidden Markov model: p(states, observations), normalised at each step; given observations, a linear chain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from trelliswork.distributions.base import Backend, resolve_backend
from trelliswork.distributions.checks import check_tensor
from trelliswork.distributions.hmm_inputs import (
    check_log_probs,
    check_observations,
    check_same_lengths,
    check_smoothing,
    check_states,
    pad,
)
from trelliswork.distributions.linear_chain import LinearChain
from trelliswork.draw.notebook import Rich
from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import INF, Float, Int


class Fit(NamedTuple):
    """A fitted model, and log p(observations) before each update and after the last."""

    model: HMM
    log_likelihoods: list[float]


class HMM(Rich):
    """p(y, x) = Π_t p(y_t | y_{t-1}) p(x_t | y_t), p(y_1 | y_0) = initial, by log-probabilities.

    Rabiner (1989), "A Tutorial on Hidden Markov Models and Selected Applications in Speech Recognition".

    It is the chain with scores θ_ij = ln p(j | i) and μ_oi = ln p(o | i), for which Z = 1. `posterior(x)` is
    that chain with x filled in, a `LinearChain` over states with every query; its log Z is ln p(x). Each distribution
    must sum to one; -inf is a probability of 0. Observations are whole numbers [batch, n]; a negative one (-100) is
    missing and summed over. All results are differentiable by the parameters.

    >>> model = HMM(initial, transitions, emissions)          # logs; or HMM.from_scores(...), HMM.from_tagged(...)
    >>> model.log_prob(x, lengths), model.viterbi(x, lengths), model.posterior(x, lengths).marginals

    Args:
        initial: log p(y_1) [c].
        transitions: log p(y_t | y_{t-1}) [c, c], indexed [from, to].
        emissions: log p(x_t | y_t) [c, v].
        backend: "kernel", "torch" or "auto".
    """  # [S4.69; S4.71-72]

    def __init__(
        self,
        initial: Float[Tensor, "c"],
        transitions: Float[Tensor, "c c"],
        emissions: Float[Tensor, "c v"],
        *,
        backend: Backend = "auto",
    ):
        self.initial, self.transitions, self.emissions = check_log_probs(initial, transitions, emissions)
        resolve_backend(backend, self.initial.device)  # an error for one that does not exist
        self.backend = backend

    @staticmethod
    def from_scores(initial: Tensor, transitions: Tensor, emissions: Tensor, *, backend: Backend = "auto") -> HMM:
        """Return any scores, normalised: initial [c], each row of transitions [from, to] and of emissions [c, v].

        Args:
            initial: [c].
            transitions: [c, c], from and to.
            emissions: [c, v].
            backend: "kernel", "torch" or "auto".
        """
        named = {"initial": initial, "transitions": transitions, "emissions": emissions}
        for name, scores in named.items():
            check_tensor(name, scores)
            if not scores.dtype.is_floating_point:
                raise ScoreError(f"{name} must be floating point; got {scores.dtype}; call .float() on them")
        return HMM(*(torch.log_softmax(scores, -1) for scores in named.values()), backend=backend)

    @staticmethod
    def from_tagged(
        states: Sequence[Sequence[int]],
        observations: Sequence[Sequence[int]],
        n_states: int,
        n_symbols: int,
        smoothing: float = 0.0,
    ) -> HMM:
        """Return the most likely model of sequences whose states are known.

        Relative frequencies, each count + `smoothing`.

        Args:
            states: the states of each sequence, whole numbers below `n_states`.
            observations: the symbols of each sequence, as many as it has states, below `n_symbols`.
            n_states: the number of states.
            n_symbols: the number of symbols.
            smoothing: what is added to every count, so that nothing has probability 0.

        Returns:
            The model, its log-probabilities in float64.
        """
        check_smoothing(smoothing)
        tags, lengths = pad(states)
        symbols, other_lengths = pad(observations)
        check_same_lengths(lengths, other_lengths)
        valid = torch.arange(tags.shape[1]) < lengths[:, None]
        check_states(tags, valid, n_states)
        check_observations(symbols, lengths, n_symbols)
        seen = valid & (symbols >= 0)
        counts = (
            torch.bincount(tags[:, 0], minlength=n_states),
            _count_pairs(tags[:, :-1][valid[:, 1:]], tags[:, 1:][valid[:, 1:]], n_states, n_states),
            _count_pairs(tags[seen], symbols[seen], n_states, n_symbols),
        )
        return HMM(*(_frequencies(count.double() + smoothing) for count in counts))

    @staticmethod
    def naive_bayes(prior: Float[Tensor, "c"], emissions: Float[Tensor, "c v"], *, backend: Backend = "auto") -> HMM:
        """Return p(y) Π_k p(x_k | y): one class for all observations, a state that never changes.

        p(y | x) is `posterior(x).marginals[:, 0]`: a softmax of scores linear in the counts of x. Any weights
        of classes and symbols, exp(θ·f) normalised over all y and x of one length, are such a model too.

        Args:
            prior: log p(y) of each class.
            emissions: log p(x_k | y) of each symbol, given the class.
            backend: "kernel", "torch" or "auto".

        Returns:
            A model of c states whose state never changes.
        """  # [S4.67; S4.68; S4.70]
        stay = torch.full((len(prior), len(prior)), -INF, dtype=prior.dtype, device=prior.device).fill_diagonal_(0.0)
        return HMM(prior, stay, emissions, backend=backend)

    # --- queries ---------------------------------------------------------------------------------------------

    @property
    def n_states(self) -> int:
        return self.emissions.shape[0]

    @property
    def n_symbols(self) -> int:
        return self.emissions.shape[1]

    def posterior(
        self, observations: Int[Tensor, "batch n"], lengths: Int[Tensor, "batch"] | None = None
    ) -> LinearChain:
        """Return p(states | observations), a chain whose log Z is ln p(observations)."""  # [S4.83-86]
        check_observations(observations, lengths, self.n_symbols)
        emitted = self.emissions.T[observations.clamp(0, self.n_symbols - 1)]
        emitted = torch.where((observations < 0)[..., None], 0.0, emitted)
        return LinearChain(emitted, self.transitions, self.initial, lengths=lengths, backend=self.backend)

    def log_prob(
        self, observations: Int[Tensor, "batch n"], lengths: Int[Tensor, "batch"] | None = None
    ) -> Float[Tensor, "batch"]:
        """Return ln p(x), the states summed over by the forward recursion."""  # [S4.83-86; S4.88-93]
        return self.posterior(observations, lengths).log_partition

    def joint_log_prob(
        self,
        states: Int[Tensor, "batch n"],
        observations: Int[Tensor, "batch n"],
        lengths: Int[Tensor, "batch"] | None = None,
    ) -> Float[Tensor, "batch"]:
        """Return ln p(y, x); -inf if the model cannot produce them.

        Args:
            states: [batch, n].
            observations: symbols [batch, n].
            lengths: [batch], the positions of each row that count; all if not given.

        Returns:
            [batch].
        """  # [S4.69]
        return self.posterior(observations, lengths).score(states)

    def viterbi(
        self, observations: Int[Tensor, "batch n"], lengths: Int[Tensor, "batch"] | None = None
    ) -> Int[Tensor, "batch n"]:
        """Return the most probable states."""  # [S4.100-103]
        return self.posterior(observations, lengths).argmax

    def sample(
        self, batch: int, n: int, *, generator: torch.Generator | None = None
    ) -> tuple[Int[Tensor, "batch n"], Int[Tensor, "batch n"]]:
        """Return states and observations, drawn step by step.

        Args:
            batch: the number of sequences.
            n: their length.
            generator: of the random numbers; torch's own if not given.

        Returns:
            States [batch, n] and symbols [batch, n].
        """  # [S4.69]
        if batch < 1 or n < 1:
            raise ScoreError(f"batch and n must be at least 1; got {batch} and {n}")
        initial, transitions, emissions = (part.detach().double().exp() for part in self.parameters)
        state = torch.multinomial(initial.expand(batch, -1), 1, generator=generator)
        states = [state]
        for _ in range(n - 1):
            states.append(torch.multinomial(transitions[states[-1][:, 0]], 1, generator=generator))
        drawn = torch.cat(states, 1)
        symbols = torch.multinomial(emissions[drawn.flatten()], 1, generator=generator)
        return drawn, symbols.view_as(drawn)

    @property
    def parameters(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.initial, self.transitions, self.emissions

    # --- learning --------------------------------------------------------------------------------------------

    def expected_counts(
        self, observations: Int[Tensor, "batch n"], lengths: Int[Tensor, "batch"] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
        """Return ln p(x) summed over rows, and E[how often each start, transition and emission is used | x].

        A count is the derivative of ln p(x) by the log-probability of what it counts: one backward pass.
        """  # [S4.116-120]
        check_observations(observations, lengths, self.n_symbols)
        with torch.inference_mode(False), torch.enable_grad():  # clones of inference tensors are ordinary ones
            leaves = [part.detach().clone().double().requires_grad_() for part in self.parameters]
            observations, lengths = observations.clone(), None if lengths is None else lengths.clone()
            total = HMM._make_unchecked(*leaves, backend=self.backend).log_prob(observations, lengths).sum()
            initial, transitions, emissions = torch.autograd.grad(total, leaves, allow_unused=True)
        return total.detach(), (initial, torch.zeros_like(leaves[1]) if transitions is None else transitions, emissions)

    def fit(
        self,
        sequences: Sequence[Sequence[int] | Tensor],
        n_iterations: int = 20,
        *,
        smoothing: float = 0.0,
        tolerance: float = 0.0,
    ) -> Fit:
        """Run Baum-Welch from this model on: expected counts, then relative frequencies of them, `n_iterations` times.

        ln p(x) never falls (with `smoothing` s, ln p(x) + s Σ ln parameter does not). What is impossible stays so, and
        what no sequence reaches stays as it is. Ends early if ln p(x) grows by no more than `tolerance`.

        Args:
            sequences: observations of each, of any lengths.
            n_iterations: the most iterations.
            smoothing: what is added to each expected count.
            tolerance: the gain in ln p(x) at which it ends.

        Returns:
            The model, and ln p(x) before each update and after the last.
        """
        check_smoothing(smoothing)
        if n_iterations < 0:
            raise ScoreError(f"n_iterations must be at least 0; got {n_iterations}")
        observations, lengths = (each.to(self.initial.device) for each in pad(sequences))
        model, history = self, list[float]()
        for _ in range(n_iterations):
            total, counts = model.expected_counts(observations, lengths)
            history.append(total.item())
            if history[-1] == -INF:
                raise ScoreError("the model gives a sequence no probability; start from one that allows all of them")
            if len(history) > 1 and tolerance > 0 and history[-1] - history[-2] <= tolerance:
                return Fit(model, history)
            model = model._update(counts, smoothing)
        history.append(float(model.log_prob(observations, lengths).double().sum()))
        return Fit(model, history)

    def _update(self, counts: tuple[Tensor, Tensor, Tensor], smoothing: float) -> HMM:
        parts = []
        for count, old in zip(counts, self.parameters, strict=True):
            old = old.detach()
            smooth = torch.where(old > -INF, count + smoothing, 0.0)
            parts.append(
                torch.where(smooth.sum(-1, keepdim=True) > 0, _frequencies(smooth), old.double()).to(old.dtype)
            )
        return HMM._make_unchecked(*parts, backend=self.backend)

    @staticmethod
    def _make_unchecked(initial: Tensor, transitions: Tensor, emissions: Tensor, *, backend: Backend) -> HMM:
        """Make a model unchecked: derivatives are taken by each entry, so rows need not be watched to sum to one."""
        model = object.__new__(HMM)
        model.initial, model.transitions, model.emissions, model.backend = initial, transitions, emissions, backend
        return model

    def __repr__(self) -> str:
        return f"HMM(n_states={self.n_states}, n_symbols={self.n_symbols})"


def _count_pairs(first: Tensor, second: Tensor, n_first: int, n_second: int) -> Tensor:
    return torch.bincount(first * n_second + second, minlength=n_first * n_second).view(n_first, n_second)


def _frequencies(counts: Float[Tensor, "*rows m"]) -> Float[Tensor, "*rows m"]:
    """Log relative frequencies; a row without any count is uniform."""
    total = counts.sum(-1, keepdim=True)
    even = torch.full_like(counts, 1.0 / counts.shape[-1])
    return torch.where(total > 0, counts / torch.where(total > 0, total, 1.0), even).log()
