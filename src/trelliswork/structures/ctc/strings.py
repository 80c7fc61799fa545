"""Label strings: the solvers of a distribution over all of them, and its record.

Frames are independent of one another, so sums over all paths are products over frames; the best strings are searched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import INF, NEG_INF, Array, Float, Int
from trelliswork.semirings.log import logsumexp
from trelliswork.structures.ctc import search, structure
from trelliswork.structures.ctc.solver import Kernels
from trelliswork.structures.ctc.structure import Labelling
from trelliswork.structures.record import CountingSolver, Decoded, Example, Scores, Solver, Structure
from trelliswork.structures.reference import Reference

NO_LABEL = -1
LIMIT = 100_000
SpellingState = tuple[int, int, int]  # last label, and the frames at which paths may end in it and in a blank behind it


@dataclass(frozen=True)
class Frames:
    """Scores of symbols in float64; padded frames score 0 for the blank and -inf otherwise: one path, of weight 1."""

    scores: Float[Tensor, "batch t c"]
    lengths: Int[Tensor, "batch"]
    blank: int = 0

    @staticmethod
    def of(scores: Tensor, lengths: Tensor, blank: int) -> Frames:
        """Return the frames of scores, padded ones included.

        Args:
            scores: scores of the symbols of each frame [batch, t, c].
            lengths: number of frames of each row [batch].
            blank: number of the blank.

        Returns:
            The frames in float64.
        """
        real = torch.arange(scores.shape[1], device=scores.device) < lengths[:, None]
        silence = scores.new_full((1, 1, scores.shape[2]), -INF, dtype=torch.float64)
        silence[..., blank] = 0.0
        return Frames(torch.where(real[..., None], scores.double(), silence), lengths, blank)

    def with_scores(self, scores: Tensor) -> Frames:
        return replace(self, scores=scores)

    def rows(self) -> list[Array]:
        """Return the real frames of each row."""
        frames = self.scores.detach().cpu().contiguous().numpy()
        return [row[:n] for row, n in zip(frames, self.lengths.tolist(), strict=True)]


class StringReference(CountingSolver):
    """Values are label strings [rows, t], NO_LABEL behind the last; prefix search looks at `limit` prefixes."""

    alignments: ClassVar[Callable[[Labelling], Solver]] = partial(Reference, structure)

    def __init__(self, frames: Frames, limit: int = LIMIT) -> None:
        self._frames, self._limit = frames, limit

    def log_partition(self) -> Tensor:
        """Return 0 for log probabilities."""
        return logsumexp(self._frames.scores, dim=-1).sum(-1)

    def marginals(self) -> Tensor:
        """Return p(π_t = symbol | x) [rows, t, c] over all paths; 0 at padding and where nothing is possible."""
        frames, n_frames = self._frames, self._frames.scores.shape[1]
        real = torch.arange(n_frames, device=frames.lengths.device) < frames.lengths[:, None]
        possible = torch.isfinite(self.log_partition())[:, None, None] & real[..., None]
        log_total = logsumexp(frames.scores, dim=-1)[..., None]
        normalised = torch.where(possible, frames.scores, -INF) - torch.where(log_total > -INF, log_total, 0.0)
        return normalised.exp()

    def score(self, values: Tensor) -> Tensor:
        """Return log of the summed exp scores of the paths of each string."""
        frames, named = self._frames, values >= 0
        parts = Labelling.of(frames.scores, values.clamp(min=0), frames.lengths, named.sum(1), frames.blank)
        return type(self).alignments(parts).log_partition()

    def best(self) -> Decoded:
        values, scores = self.top_k(1)
        return values[0], scores[0] > -INF

    def top_k(self, k: int) -> Decoded:
        """Search prefixes; as many as the row with the most strings has, at most k."""
        best_of_rows = [search.best_strings(row, self._frames.blank, k, self._limit) for row in self._frames.rows()]
        n_best = max([1, *map(len, best_of_rows)])
        scores = torch.tensor([[row[r][1] if r < len(row) else -INF for row in best_of_rows] for r in range(n_best)])
        strings = [row[r][0] if r < len(row) else [] for r in range(n_best) for row in best_of_rows]
        return self._pad(strings).unflatten(0, (n_best, len(best_of_rows))), scores.to(self._frames.lengths.device)

    def sample(self, n_samples: int, generator: torch.Generator | None) -> Tensor:
        """Draw paths frame by frame, and collapse them."""
        frames = self._frames
        rows, n_frames, c = frames.scores.shape
        if n_samples == 0 or rows == 0:
            return frames.lengths.new_zeros(n_samples, rows, n_frames)
        weights = frames.scores.detach().softmax(-1).reshape(rows * n_frames, c)
        drawn = torch.multinomial(weights, n_samples, replacement=True, generator=generator)
        paths = drawn.T.reshape(n_samples * rows, n_frames)
        strings = structure.collapse(paths, frames.lengths.repeat(n_samples), frames.blank)
        return self._pad(strings).unflatten(0, (n_samples, rows))

    def _pad(self, strings: list[list[int]]) -> Tensor:
        n_frames, device = self._frames.scores.shape[1], self._frames.lengths.device
        filled = [string + [NO_LABEL] * (n_frames - len(string)) for string in strings]
        return torch.tensor(filled, dtype=torch.long, device=device).reshape(len(strings), n_frames)

    def count(self) -> Tensor:
        """Return the number of label strings that have a path, each counted once."""
        n_labels = self._frames.scores.shape[2] - 1
        unforbidden = _strings_by_frames(n_labels, self._frames.scores.shape[1])
        counts = [
            unforbidden[len(row)] if (row > -INF).all() else count_strings(row > -INF, self._frames.blank, self._limit)
            for row in self._frames.rows()
        ]
        return torch.tensor(counts, dtype=torch.float64, device=self._frames.lengths.device)


class StringKernels(StringReference):
    """The paths of a known string are summed by kernel."""

    alignments = Kernels


def _strings_by_frames(n_labels: int, most: int) -> list[float]:
    """Count the strings that fit into 0..most frames. A string needs one frame a label, one more for each repeat:
    f(m) = (v - 1) f(m-1) + f(m-2) strings need exactly m."""
    exactly = [1.0, float(n_labels)]
    for m in range(2, most + 1):
        exactly.append((n_labels - 1) * exactly[m - 1] + (exactly[m - 2] if m > 2 else 0.0))
    totals, total = [], 0.0
    for each in exactly[: most + 1]:
        total += each
        totals.append(total)
    return totals


def count_strings(allowed: Array, blank: int, limit: int) -> float:
    """Count the label strings that have a path through the allowed symbols [t, c].

    Strings of one length are followed together as long as their paths may end at the same frames: each such set of
    frames is a state of the deterministic automaton of the strings. Sets of frames are the bits of whole numbers.

    Args:
        allowed: True for each allowed symbol of a frame [t, c].
        blank: number of the blank.
        limit: how many sets of frames may be followed at once; more are an error.

    Returns:
        The number of strings.
    """
    n, c = allowed.shape
    masks = [sum(1 << t for t in range(n) if allowed[t, symbol]) for symbol in range(c)]
    last = 1 << n >> 1
    layer: Counter[SpellingState] = Counter({(NO_LABEL, 0, _onwards(1 & masks[blank], masks[blank])): 1})
    total = float(n == 0)
    for _ in range(n + 1):
        total += sum(times for (_, in_label, in_blank), times in layer.items() if (in_label | in_blank) & last)
        longer: Counter[SpellingState] = Counter()
        for state, times in layer.items():
            for label in range(c):
                if label != blank and (reached := _extend(state, label, masks, blank))[1]:
                    longer[reached] += times
        if len(longer) > limit:
            raise ScoreError(
                f"these constraints leave more than {limit} kinds of label strings to count; loosen them, or count "
                "the alignments of one string with count_alignments(targets)"
            )
        layer = longer
    return total


def _extend(state: SpellingState, label: int, masks: list[int], blank: int) -> SpellingState:
    """The state with one more label, which begins a frame after the last or, first of all, with the first frame."""
    before, in_label, in_blank = state
    begins = (in_blank if label == before else in_blank | in_label) << 1 | (before == NO_LABEL)
    reached = _onwards(begins & masks[label], masks[label])
    return label, reached, _onwards(reached << 1 & masks[blank], masks[blank])


def _onwards(begins: int, mask: int) -> int:
    """Return the frames of `mask` that follow one of `begins` without a gap, these included."""
    return begins | (mask & ~(mask + begins))


def example(scores: Scores) -> Example:
    return {"log_probs": scores(2, 4, 3)}


STRUCTURE = Structure("ctc strings", StringReference, StringKernels, example, scores_by_kernel=True)


# The posterior of each label of a string, given all others.


def label_posteriors(scores: Array, labels: list[int], blank: int) -> Array:
    """Return p(ℓ_u | ℓ without place u, x) for each place u [u].

    It is p(ℓ) over the sum of p of all strings that have any label in place u, or none. They share what comes before
    and after, so that one pass over the frames sums up the paths of every label in every place. NaN stands where all of
    them are impossible.

    Args:
        scores: Log probabilities of the symbols in each frame [t, c].
        labels: The string.
        blank: The symbol that is no label.
    """  # [S4, CTC label posteriors]
    n, (t, c) = len(labels), scores.shape
    if n == 0:
        return np.zeros(0)
    before_any, before_blank = _prefixes(scores, labels, blank)  # paths of frames < i that spell labels < u
    after_any, after_blank = (each[::-1, ::-1] for each in _prefixes(scores[::-1], labels[::-1], blank))
    after_any, after_blank = after_any[:, 1:], after_blank[:, 1:]  # paths of frames >= i that spell labels > u
    begins, goes_on = before_any[:, :n, None].repeat(c, 2), after_any[:, :, None].repeat(c, 2)
    places = np.arange(n)
    begins[:, places[1:], labels[:-1]] = before_blank[:, 1:n]  # the same label again needs a blank between
    goes_on[:, places[:-1], labels[1:]] = after_blank[:, :-1]
    inside, totals = np.full((n, c), NEG_INF), np.full((n, c), NEG_INF)
    for i in range(t):
        inside = np.logaddexp(inside, begins[i]) + scores[i]
        totals = np.logaddexp(totals, inside + goes_on[i + 1])
    totals[:, blank] = [_log_prob(scores, labels[:u] + labels[u + 1 :], blank) for u in range(n)]
    with np.errstate(invalid="ignore"):
        weights = np.exp(totals - totals.max(1, keepdims=True))
        shares: Array = weights[places, labels] / weights.sum(1)
    return shares


def _prefixes(scores: Array, labels: list[int], blank: int) -> tuple[Array, Array]:
    """Return for i frames and u labels the log weight of the paths that spell these, and of those that end in a blank.

    Both are [t + 1, u + 1]; no frame spells no label, and counts as a blank.
    """
    n, t = len(labels), len(scores)
    any_end, in_blank = np.full((t + 1, n + 1), NEG_INF), np.full((t + 1, n + 1), NEG_INF)
    in_label = np.full(n + 1, NEG_INF)
    any_end[0, 0] = in_blank[0, 0] = 0.0
    again = np.array([False, False, *(a == b for a, b in pairwise(labels))][: n + 1])
    for i in range(t):
        arriving = np.where(again[1:], in_blank[i, :-1], any_end[i, :-1])
        in_label[1:] = np.logaddexp(in_label[1:], arriving) + scores[i, labels]
        in_blank[i + 1] = any_end[i] + scores[i, blank]
        any_end[i + 1] = np.logaddexp(in_blank[i + 1], in_label)
    return any_end, in_blank


def _log_prob(scores: Array, labels: list[int], blank: int) -> float:
    return float(_prefixes(scores, labels, blank)[0][-1, -1])
