"""`trelliswork warmup`: compile the kernels now."""

from __future__ import annotations

from typing import Annotated

import typer


def warmup(quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing.")] = False) -> None:
    """Compile the kernels now, so that no later command has to.

    They are kept on disk, beside the package or in NUMBA_CACHE_DIR, and
    compiled again only after an upgrade.

    \b
    Example:
      trelliswork warmup
    """
    from trelliswork.cli.kernels import kernels_are_cached, prepare_kernels

    ready = kernels_are_cached()
    prepare_kernels(quiet=quiet)
    if ready and not quiet:
        print("kernels are compiled already; nothing to do")
