"""The best label strings: best path, exact prefix search, and prefix search by sections.

Prefix search goes through prefixes of label strings, the heaviest first: the weight of a prefix sums over all paths
whose string begins with it, so no string below a prefix can weigh more. It is exact, and in the worst case exponential.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass

import numpy as np

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import NEG_INF, Array
from trelliswork.structures.ctc.path_kernels import extend_prefix, prefix_masses

NO_LABEL = -1
Found = tuple[list[int], float]


@dataclass(frozen=True)
class Prefix:
    """A label string and the log weights of the paths of frames 0..t that collapse to it, by their last symbol."""

    labels: tuple[int, ...]
    weight: float
    in_label: Array
    in_blank: Array

    @property
    def last(self) -> int:
        return self.labels[-1] if self.labels else NO_LABEL


Waiting = tuple[float, int, Prefix | None, int, Array]  # minus the weight, order, parent, label, where it may begin


def total_from(scores: Array) -> Array:
    """[t + 1]: the log weight of all paths of frames t.."""
    top = scores.max(1)
    if scores.size and top.min() == NEG_INF:
        top = np.where(top == NEG_INF, 0.0, top)
    with np.errstate(divide="ignore"):
        frames = top + np.log(np.exp(scores - top[:, None]).sum(1))
    return np.append(np.cumsum(frames[::-1])[::-1], 0.0)


def best_strings(scores: Array, blank: int, k: int, limit: int) -> list[Found]:
    """The k label strings of the highest weight, best first, with their log weights.

    Fewer if there are fewer. `limit` is the largest number of prefixes to look at.
    """  # [S4.651]
    rest = total_from(scores)
    found: list[Found] = []
    order = itertools.count()  # among equals the one that was seen first
    # Only what is below the k-th best string can be dropped: a prefix is at least as heavy as all that begins with it.
    waiting: list[Waiting] = [(-float(rest[0]), next(order), None, NO_LABEL, np.empty(0))]
    for n_seen in itertools.count():
        if not waiting or (len(found) == k and -waiting[0][0] <= found[-1][1]):
            return found
        if n_seen == limit:
            raise ScoreError(
                f"prefix search must look at no more than limit={limit} prefixes; more than these are likely; "
                "raise the limit, cut the frames with threshold=..., or use beam_search"
            )
        _, _, parent, label, reaching = heapq.heappop(waiting)
        prefix = _empty(scores, blank) if parent is None else _extended(scores, blank, parent, label, reaching)
        if prefix.weight > NEG_INF:
            found = sorted([*found, (list(prefix.labels), prefix.weight)], key=lambda each: -each[1])[:k]
        for mass, next_label, reached in _continuations(scores, rest, blank, prefix):
            if len(found) < k or mass > found[-1][1]:
                heapq.heappush(waiting, (-mass, next(order), prefix, next_label, reached))
    raise AssertionError("the search returns")


def _empty(scores: Array, blank: int) -> Prefix:
    """No label yet: all frames so far are blank."""
    in_blank = np.cumsum(scores[:, blank])
    return Prefix((), float(in_blank[-1]) if len(in_blank) else 0.0, np.full(len(scores), NEG_INF), in_blank)


def _extended(scores: Array, blank: int, parent: Prefix, label: int, reaching: Array) -> Prefix:
    in_label, in_blank = np.empty(len(scores)), np.empty(len(scores))
    weight = extend_prefix(scores, blank, label, reaching, in_label, in_blank)
    return Prefix((*parent.labels, label), weight, in_label, in_blank)


def _continuations(scores: Array, rest: Array, blank: int, prefix: Prefix) -> list[tuple[float, int, Array]]:
    """(log weight of everything that goes on with the label, label, where it may begin) for each label."""
    n, c = scores.shape
    first = 0.0 if not prefix.labels else NEG_INF  # the first label may begin with the first frame
    reaching, repeating, masses = np.full(n, first), np.full(n, first), np.empty(c)
    prefix_masses(scores, rest, blank, prefix.last, prefix.in_label, prefix.in_blank, reaching, repeating, masses)
    return [(float(masses[k]), k, repeating if k == prefix.last else reaching) for k in range(c) if masses[k] > NEG_INF]


def best_by_sections(scores: Array, blank: int, threshold: float, limit: int) -> list[int]:
    """Frames whose probability of a blank is above the threshold are cut out; the best string of each section between
    them is found exactly, and the strings are joined."""  # [S4, threshold sectioning]
    frames = scores - total_from(scores)[:-1, None] + total_from(scores)[1:, None]  # log probabilities
    quiet = frames[:, blank] > np.log(threshold)
    labels: list[int] = []
    for is_quiet, places in itertools.groupby(range(len(scores)), key=lambda t: bool(quiet[t])):
        if not is_quiet:
            section = np.ascontiguousarray(scores[list(places)])
            found = best_strings(section, blank, 1, limit)
            labels += found[0][0] if found else []
    return labels
