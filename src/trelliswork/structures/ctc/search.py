"""The best label strings: best path, exact prefix search, and prefix search by sections.

Prefix search goes through prefixes of label strings, the heaviest first: the weight of a prefix sums over all paths
whose string begins with it, so no string below a prefix can weigh more. It is exact, and in the worst case exponential.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import NEG_INF, Array
from trelliswork.structures.ctc.path_kernels import extend_prefix, prefix_masses
from trelliswork.structures.frontier import Frontier

NO_LABEL = -1
EMPTY = -1  # the number of the prefix without labels; others are prefix * c + label
ScoredLabels = tuple[list[int], float]


class Prefix(NamedTuple):
    """A label string and the log weights of the paths of frames 0..t that collapse to it, by their last symbol."""

    labels: tuple[int, ...]
    weight: float
    in_label: Array
    in_blank: Array

    @property
    def last(self) -> int:
        return self.labels[-1] if self.labels else NO_LABEL


def total_from(scores: Array) -> Array:
    """Return the log weights of all paths of frames t.. [t + 1]."""
    top = scores.max(1)
    if scores.size and top.min() == NEG_INF:
        top = np.where(top == NEG_INF, 0.0, top)
    with np.errstate(divide="ignore"):
        frames = top + np.log(np.exp(scores - top[:, None]).sum(1))
    return np.append(np.cumsum(frames[::-1])[::-1], 0.0)


def best_strings(scores: Array, blank: int, k: int, limit: int) -> list[ScoredLabels]:
    """Return the k label strings of the highest weight, best first, with their log weights; fewer if there are fewer.

    Args:
        scores: Log weights of labels in frames [t, c].
        blank: The label that is not a symbol.
        k: Number of strings.
        limit: Largest number of prefixes to look at.
    """  # [S4.651]
    rest, c = total_from(scores), scores.shape[1]
    frontier, seen = Frontier[int, list[int]](k), list[tuple[Prefix, Array, Array]]()
    frontier.offer(float(rest[0]), EMPTY)
    for n_seen, number in enumerate(frontier):
        if n_seen == limit:
            raise ScoreError(
                f"prefix search must look at no more than limit={limit} prefixes; more than these are likely; "
                "raise the limit, cut the frames with threshold=..., or use beam_search"
            )
        parent, label = divmod(number, c)
        prefix = _empty(scores, blank) if number == EMPTY else _extended(scores, blank, label, *seen[parent])
        frontier.finish(prefix.weight, list(prefix.labels))
        masses, reaching, repeating = _continuations(scores, rest, blank, prefix)
        for next_label, mass in enumerate(masses.tolist()):
            frontier.offer(mass, n_seen * c + next_label)
        seen.append((prefix, reaching, repeating))
    return [(labels, weight) for weight, labels in frontier.best]


def _empty(scores: Array, blank: int) -> Prefix:
    """Return the prefix without a label: all frames so far are blank."""
    in_blank = np.cumsum(scores[:, blank])
    return Prefix((), float(in_blank[-1]) if len(in_blank) else 0.0, np.full(len(scores), NEG_INF), in_blank)


def _extended(scores: Array, blank: int, label: int, parent: Prefix, reaching: Array, repeating: Array) -> Prefix:
    """Return a prefix with one more label."""
    in_label, in_blank = np.empty(len(scores)), np.empty(len(scores))
    begins = repeating if label == parent.last else reaching
    weight = extend_prefix(scores, blank, label, begins, in_label, in_blank)
    return Prefix((*parent.labels, label), weight, in_label, in_blank)


def _continuations(scores: Array, rest: Array, blank: int, prefix: Prefix) -> tuple[Array, Array, Array]:
    """Return the log weight of everything that continues with each label, and where labels may begin.

    The last two are the log weights of the prefix before each frame for any other label, and for its last one again.
    """
    n, c = scores.shape
    first = 0.0 if not prefix.labels else NEG_INF  # the first label may begin with the first frame
    reaching, repeating, masses = np.full(n, first), np.full(n, first), np.empty(c)
    prefix_masses(scores, rest, blank, prefix.last, prefix.in_label, prefix.in_blank, reaching, repeating, masses)
    return masses, reaching, repeating


def best_by_sections(scores: Array, blank: int, threshold: float, limit: int) -> list[int]:
    """Return the best string, found section by section between frames that are surely blank.

    Args:
        scores: Log weights of labels in frames [t, c].
        blank: The label that is not a symbol.
        threshold: Probability of a blank above which a frame is cut out.
        limit: Largest number of prefixes to look at in each section.
    """  # [S4, threshold sectioning]
    frames = scores - total_from(scores)[:-1, None] + total_from(scores)[1:, None]  # log probabilities
    quiet = frames[:, blank] > np.log(threshold)
    labels: list[int] = []
    for is_quiet, places in itertools.groupby(range(len(scores)), key=lambda t: bool(quiet[t])):
        if not is_quiet:
            section = np.ascontiguousarray(scores[list(places)])
            for best, _ in best_strings(section, blank, 1, limit):
                labels += best
    return labels
