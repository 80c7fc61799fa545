"""Connectionist temporal classification: a distribution over label strings, given scores of frames."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, Unpack

import torch
from torch import Tensor
from torch.distributions import constraints, register_kl

from trelliswork.distributions.base import Backend, StructuredDistribution
from trelliswork.distributions.centring import centred
from trelliswork.distributions.checks import Lengths, allowed_values, flat_lengths, require_finite_totals
from trelliswork.distributions.costs import not_negative, weighted_sum
from trelliswork.distributions.ctc_alignment import CTCAlignment
from trelliswork.distributions.ctc_inputs import Strings, check_beam, check_frames, check_models, check_scores
from trelliswork.distributions.segment_values import Nested, nested
from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import INF, Bool, Float, Int
from trelliswork.semirings.log import log_ratio
from trelliswork.structures.ctc import beam, search, structure
from trelliswork.structures.ctc.strings import LIMIT, STRUCTURE, Frames

MOST_STRINGS = 4096  # for answers that need each of them


class Aligned(NamedTuple):
    """A forced alignment: the symbol of each frame, where each label lies, and the path's score."""

    paths: Tensor  # [*batch, t]
    spans: Nested  # one list of (start, end, symbol, score) a row
    scores: Tensor  # [*batch]


class Decoded(NamedTuple):
    """A label string that was found, and its score: of the frames, and of the models where there are any."""

    labels: list[int]
    score: float


class CTC(StructuredDistribution[Nested]):
    """p(ℓ | x) over label strings ℓ: the probability of all paths, a symbol a frame, that collapse to ℓ.

    Graves, Fernández, Gomez and Schmidhuber (2006), "Connectionist Temporal Classification: Labelling Unsegmented
    Sequence Data with Recurrent Neural Networks".

    Collapsing merges repeated symbols, then drops blanks. `log_probs` are log probabilities of the symbols at each
    frame; other scores are taken as they are and normalised frame by frame, which changes nothing for those that
    are normalised. A score of -inf forbids a symbol there. Frames from `lengths` on are not read.

    Values are label strings: a padded tensor [*batch, u] with `target_lengths`, or one list of labels a row. Questions
    about the alignments of known strings are answered by `given(targets)`.

    >>> ctc = CTC(logits.log_softmax(-1), lengths=lengths)
    >>> loss = -ctc.log_prob(targets, target_lengths).mean()
    >>> ctc.best_path(), ctc.prefix_search(), ctc.align(targets).spans

    Args:
        log_probs: log probabilities of the symbols at each frame [*batch, t, c].
        lengths: the number of frames of each row; None if all rows are full.
        blank: the number of the blank.
        backend: "kernel", "torch" or "auto".
        validate_args: whether scores are checked; None as torch.distributions does.
    """  # [S4.649-650]

    _structure = STRUCTURE
    _noun = "label string"
    _advice = "allow at least one symbol in each frame"
    _limit = LIMIT

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
        super().__init__(log_probs, batch_shape, [t], backend)
        if validate_args is None or validate_args:
            check_scores(log_probs.reshape(-1, t, c), self._real)

    # --- the frames ------------------------------------------------------------------------------------------

    @cached_property
    def _real(self) -> Bool[Tensor, "rows t"]:
        return torch.arange(self.event_shape[0], device=self.log_probs.device) < self._lengths[:, None]

    @cached_property
    def _parts(self) -> Frames:
        return Frames.of(self.log_probs.reshape(-1, *self.log_probs.shape[-2:]), self._lengths, self.blank)

    @property
    def _solved(self) -> tuple[Frames, int]:
        return self._parts, self._limit

    def _centred(self) -> CTC:
        return self._like(centred(self.log_probs, 1), self.lengths, self._limit)

    def _divided(self, t: float) -> CTC:
        return self._like(self.log_probs / t, self.lengths)

    def _like(self, log_probs: Tensor, lengths: Tensor, limit: int = LIMIT) -> CTC:
        """Return other frames, or another limit of the search."""
        made = CTC(log_probs, lengths=lengths, blank=self.blank, backend=self.backend, validate_args=False)
        made._limit = limit
        return made

    # --- probabilities ---------------------------------------------------------------------------------------

    def given(self, targets: Strings, target_lengths: Lengths | None = None) -> CTCAlignment:
        """Return the alignments of these label strings: occupancies, entropy, k best, samples and all other queries."""
        return CTCAlignment(
            self.log_probs, targets, lengths=self.lengths, target_lengths=target_lengths, blank=self.blank,
            backend=self.backend,
        )  # fmt: skip

    def score(self, value: Strings, target_lengths: Lengths | None = None) -> Float[Tensor, "*batch"]:
        """Return log of the summed exp scores of all paths of label strings.

        Log p(ℓ | x) for scores that are normalised.
        """
        return self._batched(self.given(value, target_lengths)._log_z)

    def log_prob(self, value: Strings, target_lengths: Lengths | None = None) -> Float[Tensor, "*batch"]:
        """Return log p(ℓ | x); -inf, with gradient 0, for a string that does not fit into its frames.

        The gradient by log probabilities is occupancy - y.
        """  # [S4.650, 657-658; S4, CTC gradient]
        return self._batched(log_ratio(self.given(value, target_lengths)._log_z, self._log_z))

    @property
    def marginals(self) -> Float[Tensor, "*batch t c"]:
        """p(π_t = symbol | x) over all paths: the normalised frames; 0 at padding. See `occupancies` for one string."""
        return self._batched(self._posteriors)

    def occupancies(self, targets: Strings, target_lengths: Lengths | None = None) -> Float[Tensor, "*batch t c"]:
        """Return p(π_t = symbol | ℓ, x): the derivative of log p(ℓ | x) by frame scores, for known label strings."""
        return self.given(targets, target_lengths).marginals

    def expected(self, costs: Float[Tensor, "*batch t c"]) -> Float[Tensor, "*batch"]:
        """Return E[Σ_t costs[t, π_t]] over all paths."""
        return self._batched(self._expected(self._costs(costs)))

    def _costs(self, costs: Tensor) -> tuple[Tensor]:
        if costs.shape != self.log_probs.shape:
            raise ScoreError(f"costs must be {tuple(self.log_probs.shape)}, one a symbol; got {tuple(costs.shape)}")
        return (costs.reshape(self._parts.scores.shape),)

    def entropy(self) -> Float[Tensor, "*batch"]:
        """Return H(p) of the label strings, in nats: exact, and an error where there are more than 4,096 of them.

        Strings share frames but no parts, so no recursion sums over them: each is looked at.
        """
        given = self._centred()
        (log_probs,) = given._every_log_prob("the entropy", given)
        return self._batched(-weighted_sum(log_probs.exp().T, log_probs.T, 1))

    def _every_log_prob(self, what: str, *asked: CTC) -> list[Tensor]:
        """Return log p of every label string of each row [strings, rows], for each distribution.

        -inf behind the last string of a row.
        """
        self._require_possible()
        most = float(self.count.max()) if self._lengths.numel() else 1.0
        if most > MOST_STRINGS:
            raise ScoreError(
                f"{what} of label strings needs every one of them: at most {MOST_STRINGS} a row; got {most:.3g}; ask "
                "given(targets) about the alignments of one string, path_entropy() about paths, or estimate it with "
                "sample() and log_prob()"
            )
        values, scores = self._solver.top_k(int(most))
        exists = scores > -INF
        return [
            torch.where(exists, torch.stack([log_ratio(dist._score_rows(each), dist._log_z) for each in values]), -INF)
            for dist in asked
        ]

    def path_entropy(self) -> Float[Tensor, "*batch"]:
        """Return H of the paths, in nats.

        The sum of the frames' entropies. That of label strings is at most as large.
        """
        given = self._centred()
        return self._batched(not_negative(given._log_z - given._expected((given._parts.scores,))))

    def count_alignments(self, targets: Strings, target_lengths: Lengths | None = None) -> Float[Tensor, "*batch"]:
        """Return the number of paths that collapse to these strings: C(T + U - R, 2U) for U labels of which R
        repeat the one before (erratum 36)."""  # [S4, number of alignments]
        return self.given(targets, target_lengths).count

    # --- decoding --------------------------------------------------------------------------------------------

    def best_path(self) -> Nested:
        """Return the string of the best path; fast, not always the best string."""  # [S4, best path decoding]
        self._require_possible()
        return self._nested(structure.collapse(self._parts.scores.detach().argmax(-1), self._lengths, self.blank))

    def prefix_search(self, *, threshold: float | None = None, limit: int = LIMIT) -> Nested:
        """Return the most probable label string of each row, exactly.

        The search is exponential where the frames are undecided, and stops with an error after `limit` prefixes. With a
        `threshold` (say 0.9999) rows are cut at frames whose probability of a blank is above it, each section is solved
        exactly and the strings are joined: far faster on long inputs, and close where those frames are indeed blank.
        """  # [S4.651; S4, prefix search]
        self._require_possible()
        if threshold is None:
            return self._like(self.log_probs, self.lengths, limit).argmax
        if not 0.0 < threshold < 1.0:
            raise ScoreError(f"threshold must be a probability between 0 and 1; got {threshold}; try 0.9999")
        rows = [search.best_by_sections(row, self.blank, threshold, limit) for row in self._parts.rows()]
        return self._nested(rows)

    def top_k(self, k: int, *, limit: int = LIMIT) -> tuple[Nested, Float[Tensor, "k *batch"]]:
        """Return the k most probable label strings and their scores, best first, by prefix search.

        Exact; all strings are different.

        Where a row has fewer, its best one is repeated with a score of -inf.
        """
        return super(CTC, self._like(self.log_probs, self.lengths, limit)).top_k(k)

    def _n_best(self, k: int) -> int:
        return k  # the search ends by itself

    def _written(self, values: Tensor) -> Nested:
        strings = [[label for label in row if label >= 0] for row in values.reshape(-1, values.shape[-1]).tolist()]
        return nested(strings, values.shape[:-1])

    def beam_search(
        self,
        width: int = 16,
        *,
        k: int = 1,
        symbol_threshold: float = -INF,
        beam_threshold: float = INF,
        **models: Unpack[beam.ModelOptions],
    ) -> Nested:
        """Return the k best strings of a beam of `width` strings, each row a list of (labels, score), best first.

        Args:
            width: how many strings the beam holds after each frame.
            k: how many strings to return, fewer if the beam has fewer.
            symbol_threshold: symbols whose log probability in a frame is below it (say -5) are not tried there, unless
                they are the best.
            beam_threshold: strings that score more than this (say 10) below the best one so far are dropped.
            models: models whose scores are added to log p(ℓ | x): `scorer` is a language model over labels and
                `word_scorer` one over the words of `lexicon`, each with `start()`, `score(state, symbol) -> (log p,
                state)` and `final(state)`; their log probabilities are multiplied by `scorer_weight` and `word_weight`,
                and each label adds `label_bonus`. With a lexicon only its words are spelt.

        Returns:
            For each row at most k pairs (labels, score), best first. With a beam that holds all strings the search is
            exact; the two thresholds make it faster and less thorough.
        """
        check_beam(width, k, symbol_threshold, beam_threshold)
        added = beam.Models(**models)
        check_models(added, self.log_probs.shape[-1], self.blank)
        self._require_possible()
        find = beam.fast_beam_search if added.in_kernel and self.backend == "kernel" else beam.beam_search
        size = beam.Size(width, beam_threshold)
        rows = [
            [
                Decoded(labels, score - z)
                for labels, score in find(beam.likely_symbols(row, symbol_threshold), self.blank, size, k, added)
            ]
            for row, z in zip(self._parts.rows(), self._log_z.detach().tolist(), strict=True)
        ]
        return self._nested(rows)

    def _nested(self, rows: Nested) -> Nested:
        return nested(rows, self.batch_shape)

    def _require_possible(self) -> None:
        log_z = self._log_z.detach()
        require_finite_totals(log_z)
        self._require_values(log_z > -INF)

    # --- alignment and constraints ---------------------------------------------------------------------------

    def align(self, targets: Strings, target_lengths: Lengths | None = None) -> Aligned:
        """Return the best path of each known string, exactly, whatever ties and repeats there are.

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
            log_probs = torch.where(allowed_values(partial, log_probs, real, ("symbols", "paths")), log_probs, -INF)
        return self._like(log_probs, self.lengths)

    # --- torch.distributions ---------------------------------------------------------------------------------

    @property
    def support(self) -> constraints.Constraint:
        """Of padded label strings."""
        return constraints.independent(constraints.integer_interval(0, self.log_probs.shape[-1] - 1), 1)

    def expand(self, batch_shape: Sequence[int], _instance: object = None) -> CTC:
        """Return the same distribution in a larger batch shape, without copying scores."""
        shape = torch.Size(batch_shape)
        return self._like(self.log_probs.expand(*shape, *self.log_probs.shape[-2:]), self.lengths.expand(shape))

    def __repr__(self) -> str:
        t, c = self.log_probs.shape[-2:]
        shape = tuple(self.batch_shape)
        return f"CTC(batch_shape={shape}, t={t}, c={c}, blank={self.blank}, backend={self.backend!r})"


@register_kl(CTC, CTC)
def _kl(p: CTC, q: CTC) -> Tensor:
    """Return KL(p || q), exact as `CTC.entropy` is; +inf where p allows a string that q forbids."""
    same = p.log_probs.shape == q.log_probs.shape and p.blank == q.blank and torch.equal(p._lengths, q._lengths)
    if not same:
        raise ScoreError(f"KL needs the same shape, lengths and blank; got {p!r} and {q!r}")
    given = p._centred()
    mine, its = given._every_log_prob("the divergence", given, q._centred())
    some, forbids = mine > -INF, ((mine > -INF) & (its == -INF)).any(0)
    divergence = weighted_sum(mine.exp().T, torch.where(some, mine - its, 0.0).T, 1)
    return p._batched(torch.where(forbids, INF, not_negative(divergence)))
