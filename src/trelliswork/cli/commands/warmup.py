"""`trelliswork warmup`: compile the kernels now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Annotated

import typer

from trelliswork.lazy import named


def warmup(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Structures (chain, projective, ...) and models (crf, bilstm-crf, ...); all models if none is given.",
            show_default=False,
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Compile the kernels of every structure, not only those the commands use.")
    ] = False,
    listed: Annotated[
        bool, typer.Option("--list", help="Compile nothing; list which kernels are shipped, cached or missing.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")] = False,
) -> None:
    """Compile kernels ahead of time, in parallel.

    Compiled kernels are cached next to the package, or in NUMBA_CACHE_DIR,
    and only compiled again after an upgrade.

    \b
    Example:
      trelliswork warmup crf
      trelliswork warmup --all
      trelliswork warmup --list
    """
    if listed:
        print("\n".join(_kernel_table()))
        return
    named("trelliswork.cli.compiling:warm_up")(names or [], every=every, quiet=quiet)  # imports numba


def _kernel_table() -> Iterator[str]:
    """Yield a row for each folder of kernels, and what the columns add up to."""
    rows, total = dict[str, Counter[str]](), Counter[str]()
    for entry in named("trelliswork.runtime.entries:read_entries")():  # imports numba
        place, state = entry.module.removeprefix("trelliswork.").rpartition(".")[0], Counter([entry.state])
        rows[place] = rows.get(place, Counter()) + state
        total += state
    states = ("cached", "shipped", "missing")
    yield f"{'kernels of':34}" + "".join(f"{state:>9}" for state in states)
    for place, counts in [*sorted(rows.items()), ("all", total)]:
        yield f"{place:34}" + "".join(f"{counts[state]:9,}" for state in states)
