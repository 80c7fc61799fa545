"""`trelliswork warmup`: compile the kernels now."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from trelliswork.cli.kernels import (
    kernels_are_cached,
    prepare_feature_kernels,
    prepare_kernels,
    prepare_network_kernels,
)
from trelliswork.distributions.registry import exercise
from trelliswork.structures.registry import STRUCTURES


def warmup(
    every: Annotated[bool, typer.Option("--all", help="Those of every structure, not only of the commands.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing.")] = False,
) -> None:
    """Compile the kernels now, so that no later command has to.

    They are kept on disk, beside the package or in NUMBA_CACHE_DIR, and
    compiled again only after an upgrade.

    \b
    Example:
      trelliswork warmup
      trelliswork warmup --all
    """
    ready = kernels_are_cached()
    prepare_kernels(quiet=quiet)
    if every:
        _exercise_all(quiet)
    elif ready and not quiet:
        print("kernels are compiled already; nothing to do")


def _exercise_all(quiet: bool) -> None:
    """Every structure in turn, with the seconds that it took."""
    prepare_network_kernels(quiet=quiet)
    prepare_feature_kernels(quiet=quiet)
    for structure in STRUCTURES:
        began = time.perf_counter()
        exercise(structure)
        if not quiet:
            print(f"{structure.name}: ready after {time.perf_counter() - began:.1f} s", flush=True)
