"""Interleaved timing: every candidate is measured in every round, in a new order, so that drifting clocks and what a
neighbour leaves behind hit all alike."""

from __future__ import annotations

import gc
import math
import random
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch

SPIN_SECONDS = 0.25  # OpenMP workers spin for up to 0.2 s after their work and would slow whoever comes next


@dataclass(frozen=True)
class Candidate:
    """Something to time: `call` runs once, with torch set to `threads` threads."""

    name: str
    call: Callable[[], object]
    threads: int = 1


Samples = dict[tuple[str, int], list[float]]  # (name, threads) -> milliseconds of a call in each round, NaN if left out


def sample(candidates: list[Candidate], rounds: int = 21, sample_ms: float = 25.0) -> Samples:
    """Milliseconds of one call, all candidates in every round.

    A sample starts with a call that is not timed: the candidate before has left the caches and the allocator to its
    own liking. Fast calls are repeated inside a sample until it takes about `sample_ms`; slow ones (over a second) get
    fewer rounds, spread evenly.
    """
    repeats, samples = {}, {(each.name, each.threads): list[float]() for each in candidates}
    for each in candidates:
        once = min(_time(each, 1) for _ in range(2))
        repeats[each.name, each.threads] = max(1, int(sample_ms / max(once, 1e-3)))
    gc.collect()
    gc.disable()
    try:
        for turn in range(rounds):
            for each in random.Random(turn).sample(candidates, len(candidates)):
                key = each.name, each.threads
                slow = bool(samples[key]) and samples[key][0] > 1000
                samples[key].append(math.nan if slow and turn % 5 else _time(each, repeats[key]))
    finally:
        gc.enable()
        torch.set_num_threads(1)
    return samples


def median(values: Iterable[float]) -> float:
    return statistics.median(value for value in values if not math.isnan(value))


def ratio(these: list[float], those: list[float]) -> float:
    """How many times as long as `those` `these` take, as the median over rounds: a slow spell of the machine hits both
    sides of a round and leaves it alone."""
    return median(this / that for this, that in zip(these, those, strict=True))


def _time(candidate: Candidate, repeats: int) -> float:
    torch.set_num_threads(candidate.threads)
    if repeats > 1:
        candidate.call()
    begin = time.perf_counter()
    for _ in range(repeats):
        candidate.call()
    elapsed = time.perf_counter() - begin
    if candidate.threads > 1:
        time.sleep(SPIN_SECONDS)
    return elapsed * 1000 / repeats
