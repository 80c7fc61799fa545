"""Compiling the kernels at a moment that is announced, rather than in the middle of something."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any


def prepare_kernels(*, quiet: bool = False) -> None:
    """Make sure that the kernels are compiled, with a line on standard error when that takes time."""
    if not kernels_are_cached():
        _announced("kernels", "10 s", compile_kernels, quiet)


def prepare_feature_kernels(*, quiet: bool = False) -> None:
    """The same for those that learn from features, which need no torch."""
    from trelliswork.models.feature_crf import kernels, online_kernels

    if not all(map(_is_cached, (kernels.loss_and_gradient, online_kernels.best_labels))):
        _announced("kernels of feature models", "20 s", compile_feature_kernels, quiet)


def _announced(what: str, about: str, compile_them: Callable[[], float], quiet: bool) -> None:
    if not quiet:
        print(f"compiling {what} for this machine, once (about {about}) ...", file=sys.stderr, flush=True)
    seconds = compile_them()
    if not quiet:
        print(f"{what} compiled in {seconds:.1f} s", file=sys.stderr, flush=True)


def kernels_are_cached() -> bool:
    """Whether every kernel that the commands call is in the cache on disk, compiled from the present source."""
    return all(_is_cached(kernel) for kernel in _entry_kernels())


def compile_kernels() -> float:
    """Call every kernel once on a small chain; returns the seconds it took."""
    import torch

    from trelliswork.nn import CRF

    began = time.perf_counter()
    tags = ["O", "B-X", "I-X"]
    crf = CRF.from_tags(tags, scheme="IOB2", batch_first=True)
    emissions = torch.zeros(2, 3, len(tags), requires_grad=True)
    mask = torch.tensor([[True, True, True], [True, True, False]])
    crf(emissions, torch.zeros(2, 3, dtype=torch.long), mask).backward()
    with torch.no_grad():
        crf.decode(emissions, mask)
        chain = crf.distribution(emissions, mask)
        chain.constrain(torch.full((2, 3), -100)).argmax  # noqa: B018, the query is what compiles
        chain.marginals  # noqa: B018
        chain.span_probabilities([[(0, 1, "X")], []], tags=tags, scheme="IOB2")
        chain.top_k(2)
    return time.perf_counter() - began


def compile_feature_kernels() -> float:
    """Learn from two sentences and tag them; returns the seconds it took."""
    from trelliswork.data import Sentence
    from trelliswork.models import FeatureTagger, LearningConfig

    began = time.perf_counter()
    sentences = [Sentence(("Ann", "sings"), ("B-X", "O")), Sentence(("Stop",), ("O",))]
    FeatureTagger.fit(sentences, LearningConfig(max_iterations=2)).tag(sentences)
    return time.perf_counter() - began


def _entry_kernels() -> Iterator[Any]:
    """Kernels that stand for all that `compile_kernels` reaches, the last one it compiles among them."""
    from trelliswork.structures.chain import kernels, likelihood_kernels, path_kernels
    from trelliswork.structures.kernel_math import first_not_a_score

    yield from (kernels.forward_scaled, kernels.backward_scaled, first_not_a_score)
    yield from (likelihood_kernels.forward_rows, likelihood_kernels.backward_rows)
    yield from (path_kernels.path_scores, path_kernels.decode_rows, path_kernels.best_paths, path_kernels.top_paths)


def _is_cached(kernel: Any) -> bool:
    """Whether the index of a kernel lists a version for this processor; true where nothing is compiled at all."""
    index = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
    if index is None:  # numba is switched off
        return True
    try:
        processor = kernel.targetctx.codegen().magic_tuple()
        return any(key[1] == processor for key in index._load_index())
    except Exception:  # an index that cannot be read is as good as none
        return False
