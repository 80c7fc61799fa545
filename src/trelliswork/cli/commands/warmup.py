"""`trelliswork warmup`: compile the kernels now."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Annotated

import typer

from trelliswork.cli.compiling import compile_kernels, small_networks
from trelliswork.cli.kernels import ANNOUNCER, announce_compiling
from trelliswork.cli.messages import NOTE, say
from trelliswork.distributions.registry import distribution_of, exercise
from trelliswork.errors import TrellisworkError
from trelliswork.models.taggers.features.tagger import rehearse
from trelliswork.plugins import plugins_of
from trelliswork.structures.registry import STRUCTURES


def warmup(
    every: Annotated[
        bool, typer.Option("--all", help="Compile the kernels of every structure, not only those the commands use.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")] = False,
) -> None:
    """Compile all kernels ahead of time.

    Compiled kernels are cached next to the package, or in NUMBA_CACHE_DIR,
    and only compiled again after an upgrade.

    \b
    Example:
      trelliswork warmup
      trelliswork warmup --all
    """
    announce_compiling(quiet=quiet)
    before = ANNOUNCER.seconds
    for what, compile_them in (_everything() if every else {"chains": compile_kernels}).items():
        began = time.perf_counter()
        compile_them()
        if every and not quiet:
            print(f"{what}: ready after {time.perf_counter() - began:.1f} s", flush=True)
    if ANNOUNCER.seconds == before and not every and not quiet:
        print("kernels are compiled already; nothing to do")


def _exercise_foreign(name: str) -> None:
    """A structure of another package; one that is broken does not stop the others."""
    try:
        exercise(distribution_of(name)._structure)
    except TrellisworkError as error:
        say(f"{NOTE}{error}")


def _everything() -> dict[str, Callable[[], None]]:
    """What calls the kernels of networks, of feature models and of every structure."""
    networks = {f"network of {type(each).__name__}": each.rehearse for each in small_networks()}
    structures = {each.name: partial(exercise, each) for each in STRUCTURES}
    structures |= {
        name: partial(_exercise_foreign, name) for name in plugins_of("structures") if name not in structures
    }
    return {"chains": compile_kernels, **networks, "feature models": rehearse, **structures}
