"""Connectionist temporal classification: a distribution over label strings, given scores of frames."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.distributions import constraints, register_kl

from trelliswork.distributions.base import (
    Backend,
    StructuredDistribution,
    check_sample_shape,
    padded,
    require_finite_totals,
    resolve_backend,
    weighted_sum,
)
from trelliswork.distributions.ctc_alignment import CTCAlignment
from trelliswork.distributions.ctc_inputs import Strings, allowed_frames, check_frames, check_scores, flat_lengths
from trelliswork.distributions.segment_values import nested
from trelliswork.errors import ConstraintError, ScoreError
from trelliswork.semirings.log import log_ratio, logsumexp
from trelliswork.structures.ctc import beam, search, structure
from trelliswork.structures.ctc.beam import Scorer
from trelliswork.structures.ctc.lexicon import Lexicon

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

INF = float("inf")
LIMIT = 100_000


class Aligned(NamedTuple):
    """A forced alignment: the symbol of each frame, where each label lies, and the path's score."""

    paths: Tensor  # [*batch, t]
    spans: list[Any]  # one list of (start, end, symbol, score) a row
    scores: Tensor  # [*batch]


class Decoded(NamedTuple):
    """A label string that was found, and its score: of the frames, and of the models where there are any."""

    labels: list[int]
    score: float


class CTC(StructuredDistribution):
    """p(ℓ | x) over label strings ℓ: the probability of all paths, a symbol a frame, that collapse to ℓ [S4.649-650].

    Collapsing merges repeated symbols, then drops blanks. `log_probs` are log probabilities of the symbols at each
    frame; other scores are taken as they are and normalised frame by frame, which changes nothing for those that
    are normalised. A score of -inf forbids a symbol there. Frames from `lengths` on are not read.

    Values are label strings: a padded tensor [*batch, u] with `target_lengths`, or one list of labels a row. Questions
    about the alignments of known strings are answered by `given(targets)`.

    >>> ctc = CTC(logits.log_softmax(-1), lengths=lengths)
    >>> loss = -ctc.log_prob(targets, target_lengths).mean()
    >>> ctc.best_path(), ctc.prefix_search(), ctc.align(targets).spans
    """

    def __init__(
        self,
        log_probs: Float[Tensor, "*batch t c"],
        *,
        lengths: Int[Tensor, "*batch"] | Sequence[int] | None = None,
        blank: int = 0,
        backend: Backend = "auto",
        validate_args: bool | None = None,
    ):
        check_frames(log_probs, int(blank))
        self.log_probs, self.blank = log_probs, int(blank)
        batch_shape, (t, c) = log_probs.shape[:-2], log_probs.shape[-2:]
        self._lengths = flat_lengths("lengths", lengths, batch_shape, t, log_probs.device)
        self.backend = resolve_backend(backend, log_probs.device)
        super().__init__(batch_shape, torch.Size([t]), validate_args=False)
        if validate_args is None or validate_args:
            check_scores(log_probs.reshape(-1, t, c), self._real)

    # --- the frames ------------------------------------------------------------------------------------------

    @property
    def lengths(self) -> Int[Tensor, "*batch"]:
        """Frames of each row."""
        return self._lengths.reshape(self.batch_shape)

    @cached_property
    def _real(self) -> Bool[Tensor, "rows t"]:
        return torch.arange(self.event_shape[0], device=self.log_probs.device) < self._lengths[:, None]

    @cached_property
    def _frames(self) -> Float[Tensor, "rows t c"]:
        """Flat rows in float64; padded frames score 0 for the blank and -inf otherwise: one path, of weight 1."""
        scores = self.log_probs.reshape(-1, *self.log_probs.shape[-2:]).double()
        silence = torch.full_like(scores[:1, :1].detach(), -INF)
        silence[..., self.blank] = 0.0
        return torch.where(self._real[..., None], scores, silence)

    @property
    def _log_z(self) -> Float[Tensor, "rows"]:
        """Frames are independent of one another: 0 for log probabilities."""
        return logsumexp(self._frames, dim=-1).sum(-1)

    @property
    def dtype(self) -> torch.dtype:
        return self.log_probs.dtype

    def _divided(self, t: float) -> CTC:
        return CTC(
            self.log_probs / t, lengths=self.lengths, blank=self.blank, backend=self.backend, validate_args=False
        )

    # --- probabilities ---------------------------------------------------------------------------------------

    def given(self, targets: Strings, target_lengths: Any = None) -> CTCAlignment:
        """The alignments of these label strings: occupancies, entropy, k best, samples and all other queries."""
        return CTCAlignment(
            self.log_probs, targets, lengths=self.lengths, target_lengths=target_lengths, blank=self.blank,
            backend=self.backend,
        )  # fmt: skip

    def score(self, value: Strings, target_lengths: Any = None) -> Float[Tensor, "*batch"]:
        """log of the summed exp scores of all paths of label strings; log p(ℓ | x) for scores that are normalised."""
        return self._batched(self.given(value, target_lengths)._log_z)

    def log_prob(self, value: Strings, target_lengths: Any = None) -> Float[Tensor, "*batch"]:
        """log p(ℓ | x) [S4.650, 657-658]; -inf, with gradient 0, for a string that does not fit into its frames.

        The gradient by log probabilities is occupancy - y [S4, CTC gradient].
        """
        return self._batched(log_ratio(self.given(value, target_lengths)._log_z, self._log_z))

    @property
    def marginals(self) -> Float[Tensor, "*batch t c"]:
        """p(π_t = symbol | x) over all paths: the normalised frames; 0 at padding. See `occupancies` for one string."""
        possible = torch.isfinite(self._log_z)[:, None, None] & self._real[..., None]
        log_total = logsumexp(self._frames, dim=-1)[..., None]
        normalised = torch.where(possible, self._frames, -INF) - torch.where(log_total > -INF, log_total, 0.0)
        return self._batched(normalised.exp())

    def occupancies(self, targets: Strings, target_lengths: Any = None) -> Float[Tensor, "*batch t c"]:
        """p(π_t = symbol | ℓ, x): the derivative of log p(ℓ | x) by frame scores, for known label strings."""
        return self.given(targets, target_lengths).marginals

    def expected(self, costs: Float[Tensor, "*batch t c"]) -> Float[Tensor, "*batch"]:
        """E[Σ_t costs[t, π_t]] over all paths."""
        if costs.shape != self.log_probs.shape:
            raise ScoreError(f"costs must be {tuple(self.log_probs.shape)}, one a symbol; got {tuple(costs.shape)}")
        marginals = self.marginals.double().reshape(self._frames.shape)
        return self._batched(weighted_sum(marginals, costs.double().reshape(self._frames.shape), 1))

    def entropy(self) -> Tensor:
        """Impossible: the strings are too many, and share paths in no way that a recursion could follow."""
        raise ScoreError(
            "the entropy over label strings has no tractable algorithm; ask given(targets).entropy() for that over the "
            "alignments of a string, path_entropy() for that over paths, or estimate it with sample() and log_prob()"
        )

    def path_entropy(self) -> Float[Tensor, "*batch"]:
        """H of the paths, in nats: the sum of the frames' entropies. That of label strings is at most as large."""
        marginals = self.marginals.double().reshape(self._frames.shape)
        return self._batched(self._log_z - weighted_sum(marginals, self._frames, 1))

    def count_alignments(self, targets: Strings, target_lengths: Any = None) -> Float[Tensor, "*batch"]:
        """How many paths collapse to these strings [S4, number of alignments]: C(T + U - R, 2U) for U labels of which R
        repeat the one before (erratum 36)."""
        return self.given(targets, target_lengths).count

    @property
    def count(self) -> Float[Tensor, "*batch"]:
        """How many label strings fit into the frames, in float64, where no symbol is forbidden.

        A string needs a frame for each label and one between equal neighbours.
        """
        if bool((self.log_probs.reshape(self._frames.shape)[self._real] == -INF).any()):
            raise ScoreError(
                "label strings cannot be counted where symbols are forbidden by -inf: many paths share a string; "
                "count without constraints, or the alignments of one string with count_alignments(targets)"
            )
        n_labels = self.log_probs.shape[-1] - 1
        counts = _strings_by_frames(n_labels, self.event_shape[0])
        return torch.tensor([counts[n] for n in self._lengths.tolist()], dtype=torch.float64).reshape(self.batch_shape)

    # --- decoding --------------------------------------------------------------------------------------------

    def best_path(self) -> list[Any]:
        """The string that the best path collapses to [S4, best path decoding]; fast, not always the best string."""
        self._require_possible()
        return self._nested(structure.collapse(self._frames.detach().argmax(-1), self._lengths, self.blank))

    def prefix_search(self, *, threshold: float | None = None, limit: int = LIMIT) -> list[Any]:
        """The most probable label string of each row [S4.651], exactly [S4, prefix search].

        The search is exponential where the frames are undecided, and stops with an error after `limit` prefixes. With a
        `threshold` (say 0.9999) rows are cut at frames whose probability of a blank is above it, each section is solved
        exactly and the strings are joined: far faster on long inputs, and close where those frames are indeed blank.
        """
        self._require_possible()
        if threshold is None:
            return self._nested([found[0][0] for found in self._search(1, limit)])
        if not 0.0 < threshold < 1.0:
            raise ScoreError(f"threshold must be a probability between 0 and 1; got {threshold}; try 0.9999")
        rows = [search.best_by_sections(row, self.blank, threshold, limit) for row in self._arrays()]
        return self._nested(rows)

    @property
    def argmax(self) -> list[Any]:
        """The most probable label string, by prefix search."""
        return self.prefix_search()

    def top_k(self, k: int, *, limit: int = LIMIT) -> tuple[list[Any], Float[Tensor, "k *batch"]]:
        """The k most probable label strings and their scores, best first, by prefix search: exact, no duplicates.

        Where a row has fewer, its best one is repeated with a score of -inf.
        """
        if k < 1:
            raise ScoreError(f"k must be at least 1; got {k}; ask for one best string or more")
        self._require_possible()
        found = self._search(k, limit)
        n_best = max(map(len, found), default=1)
        ranks = [[row[r if r < len(row) else 0][0] for row in found] for r in range(n_best)]
        exists = torch.tensor([[r < len(row) for row in found] for r in range(n_best)], dtype=torch.bool)
        values = [self._nested(rank) for rank in ranks]
        scores = torch.stack([self.given(value)._log_z for value in values])
        return padded((values, self._batched(torch.where(exists.to(scores.device), scores, -INF), n_best)), k)

    def beam_search(
        self,
        width: int = 16,
        *,
        k: int = 1,
        scorer: Scorer | None = None,
        scorer_weight: float = 1.0,
        lexicon: Lexicon | None = None,
        word_scorer: Scorer | None = None,
        word_weight: float = 1.0,
        label_bonus: float = 0.0,
    ) -> list[Any]:
        """The k best strings that a beam of `width` strings finds, each row a list of (labels, score), best first.

        `scorer` is a language model over labels, `word_scorer` one over the words of `lexicon`, each with `start()`,
        `score(state, symbol) -> (log p, state)` and `final(state)`; their log probabilities are added to log p(ℓ | x)
        with these weights, `label_bonus` for each label. With a lexicon only its words are spelt. With a beam that
        holds all strings the search is exact.
        """
        if width < 1 or k < 1:
            raise ScoreError(f"width and k must be at least 1; got {width} and {k}")
        if word_scorer is not None and lexicon is None:
            raise ScoreError("a word_scorer reads words; got no lexicon to spell them; give lexicon=Lexicon({...})")
        c = self.log_probs.shape[-1]
        if lexicon is not None and (wrong := [x for x in lexicon.labels if not 0 <= x < c or x == self.blank]):
            raise ScoreError(
                f"a lexicon must spell with labels in 0..{c - 1}, not with the blank, {self.blank}; got {min(wrong)}"
            )
        models = beam.Models(scorer, scorer_weight, word_scorer, word_weight, lexicon, label_bonus)
        self._require_possible()
        log_z = self._log_z.detach().tolist()
        rows = [
            [Decoded(labels, score - z) for labels, score in beam.beam_search(row, self.blank, width, k, models)]
            for row, z in zip(self._arrays(), log_z, strict=True)
        ]
        return self._nested(rows)

    def sample(self, sample_shape: Sequence[int] = (), generator: torch.Generator | None = None) -> Any:
        """Exact independent samples, nested as [*sample_shape, *batch]: paths are drawn, and collapsed."""
        shape = check_sample_shape(sample_shape)
        self._require_possible()
        rows, t, c = self._frames.shape
        weights = self._frames.detach().softmax(-1).reshape(rows * t, c)
        n_samples = shape.numel()
        if n_samples == 0 or rows == 0:
            return nested([], torch.Size([*shape, *self.batch_shape]))
        drawn = torch.multinomial(weights, n_samples, replacement=True, generator=generator)
        paths = drawn.T.reshape(n_samples * rows, t)
        strings = structure.collapse(paths, self._lengths.repeat(n_samples), self.blank)
        return nested(strings, torch.Size([*shape, *self.batch_shape]))

    def _search(self, k: int, limit: int) -> list[list[search.Found]]:
        return [search.best_strings(row, self.blank, k, limit) for row in self._arrays()]

    def _arrays(self) -> list[Any]:
        """The real frames of each row."""
        frames = self._frames.detach().cpu().contiguous().numpy()
        return [row[:n] for row, n in zip(frames, self._lengths.tolist(), strict=True)]

    def _nested(self, rows: list[Any]) -> list[Any]:
        return nested(rows, self.batch_shape)

    def _require_possible(self) -> None:
        log_z = self._log_z.detach()
        require_finite_totals(log_z)
        possible = log_z > -INF
        if not bool(possible.all()):
            row = int((~possible).nonzero()[0])
            raise ConstraintError(
                f"row {row} has no label string with a score above -inf; allow at least one symbol in each frame"
            )

    # --- alignment and constraints ---------------------------------------------------------------------------

    def align(self, targets: Strings, target_lengths: Any = None) -> Aligned:
        """Forced alignment: the best path of each known string, exactly, whatever ties and repeats there are.

        >>> ctc.align([[7, 7, 2]]).spans
        [[(2, 5, 7, -0.1), (6, 7, 7, -0.3), (7, 9, 2, -0.2)]]
        """
        alignments = self.given(targets, target_lengths)
        paths = alignments.argmax
        return Aligned(paths, alignments.spans(paths), alignments.score(paths))

    def constrain(self, partial: Bool[Tensor, "*batch t c"] | Int[Tensor, "*batch t"] | None = None) -> CTC:
        """Only the paths that agree: every other symbol scores -inf. Strings keep the weight of their remaining paths.

        `partial` is True for each allowed symbol of a frame, or holds symbols, -100 (any negative) where unknown.
        """
        log_probs = self.log_probs
        if partial is not None:
            real = self._real.reshape(*self.batch_shape, *self.event_shape)
            log_probs = torch.where(allowed_frames(partial, log_probs, real), log_probs, -INF)
        return CTC(log_probs, lengths=self.lengths, blank=self.blank, backend=self.backend, validate_args=False)

    # --- torch.distributions ---------------------------------------------------------------------------------

    @property
    def support(self) -> Any:
        """Of padded label strings."""
        return constraints.independent(constraints.integer_interval(0, self.log_probs.shape[-1] - 1), 1)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> CTC:
        """The same distribution in a larger batch shape, without copying scores."""
        shape = torch.Size(batch_shape)
        return CTC(
            self.log_probs.expand(*shape, *self.log_probs.shape[-2:]), lengths=self.lengths.expand(shape),
            blank=self.blank, backend=self.backend, validate_args=False,
        )  # fmt: skip

    def __repr__(self) -> str:
        t, c = self.log_probs.shape[-2:]
        shape = tuple(self.batch_shape)
        return f"CTC(batch_shape={shape}, t={t}, c={c}, blank={self.blank}, backend={self.backend!r})"


def _strings_by_frames(n_labels: int, most: int) -> list[float]:
    """How many strings fit into 0..most frames. A string needs one frame a label, one more for each repeat:
    f(m) = (v - 1) f(m-1) + f(m-2) strings need exactly m."""
    exactly = [1.0, float(n_labels)]
    for m in range(2, most + 1):
        exactly.append((n_labels - 1) * exactly[m - 1] + (exactly[m - 2] if m > 2 else 0.0))
    totals, total = [], 0.0
    for each in exactly[: most + 1]:
        total += each
        totals.append(total)
    return totals


@register_kl(CTC, CTC)
def _kl(p: CTC, q: CTC) -> Tensor:
    raise ScoreError(
        "the divergence between distributions over label strings has no tractable algorithm; compare the alignments of "
        "a string with kl_divergence(p.given(targets), q.given(targets)), or estimate it with p.sample() and log_prob()"
    )
