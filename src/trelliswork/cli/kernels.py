"""Compiling the kernels at a moment that is announced, rather than in the middle of something."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from trelliswork.lazy import named
from trelliswork.models.taggers.features.kernels import likelihood
from trelliswork.models.taggers.features.tagger import ANSWERING, FEATURE_MODELS, rehearse
from trelliswork.runtime.kernel_math import first_not_a_score
from trelliswork.structures.chain import kernels as chain_kernels
from trelliswork.structures.chain import likelihood_kernels, path_kernels

NEEDS_TORCH = "trelliswork.cli.compiling"  # imported when it is called
_SECONDS = {"segments": 30, FEATURE_MODELS: 20}  # about; others take 10


class Rehearsed(Protocol):
    """A model or a recipe, as far as its kernels go."""

    @property
    def uses_chains(self) -> bool: ...

    def own_kernels(self) -> dict[str, list[Any]]: ...

    def rehearse(self) -> None: ...


def prepare_kernels(owner: Rehearsed | None = None, *, quiet: bool = False) -> None:
    """Make sure that the kernels are compiled, with a line on standard error when that takes time.

    Those of chains, unless the owner does without, and the others that it calls.
    """
    if (owner is None or owner.uses_chains) and not kernels_are_cached():
        _announced("kernels", 10, named(f"{NEEDS_TORCH}:compile_kernels"), quiet)
    if owner is not None:
        _prepare(owner.own_kernels(), owner.rehearse, quiet)


def prepare_network_kernels(*, quiet: bool = False) -> None:
    """Those of every network."""
    for network in named(f"{NEEDS_TORCH}:small_networks")():
        prepare_kernels(network, quiet=quiet)


def prepare_feature_kernels(*, quiet: bool = False) -> None:
    """The same for those that learn from features, which need no torch."""
    _prepare({FEATURE_MODELS: [likelihood.loss_and_gradient, *ANSWERING]}, rehearse, quiet)


def _prepare(kernels: dict[str, list[Any]], compile_them: Callable[[], None], quiet: bool) -> None:
    missing = [what for what, own in kernels.items() if not all(map(_is_cached, own))]
    if missing:
        seconds = max(_SECONDS.get(what, 10) for what in missing)
        _announced(f"kernels of {' and '.join(missing)}", seconds, compile_them, quiet)


def _announced(what: str, about: int, compile_them: Callable[[], None], quiet: bool) -> None:
    if not quiet:
        print(f"compiling {what} for this machine, once (about {about} s) ...", file=sys.stderr, flush=True)
    began = time.perf_counter()
    compile_them()
    if not quiet:
        print(f"{what} compiled in {time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)


def kernels_are_cached() -> bool:
    """Whether every kernel that the commands call is in the cache on disk, compiled from the present source."""
    return all(_is_cached(kernel) for kernel in _entry_kernels())


def _entry_kernels() -> Iterator[Any]:
    """Kernels that stand for all that `compile_kernels` reaches, the last one it compiles among them."""
    yield from (chain_kernels.forward_scaled, chain_kernels.backward_scaled, first_not_a_score)
    yield from (likelihood_kernels.forward_rows, likelihood_kernels.backward_rows)
    yield from (path_kernels.path_scores, path_kernels.decode_rows, path_kernels.best_paths, path_kernels.top_paths)


def _is_cached(kernel: Any) -> bool:
    """Whether there is machine code of a kernel for this processor; true where nothing is compiled at all."""
    held = getattr(kernel, "_cache", None)
    return held is None or held.holds_any(kernel.targetctx.codegen())  # None: numba is switched off
