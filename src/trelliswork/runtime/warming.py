"""Compiling on request what structures and models will call."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

from trelliswork.errors import TrellisworkError
from trelliswork.runtime.compile_all import compile_all
from trelliswork.runtime.entries import Entry, read_entries, read_uses


def warmup(*names: str, n_processes: int | None = None) -> int:
    """Compile the kernels of structures and models now, in parallel processes, and return how many were missing.

    Names are those of structures, such as `chain`, and of models that `train --model` knows, such as `crf`; without
    any, all kernels are compiled. Compiled kernels are kept on this machine, so that this is worth doing once. Nothing
    else in the library starts processes.

        >>> import trelliswork as tw
        >>> tw.warmup("chain") >= 0
        True
    """
    missing = missing_of(read_entries(*calls_of(names)))
    compile_all(missing, n_processes)
    return len(missing)


def calls_of(names: Collection[str]) -> set[str]:
    """Return the calls of the list of entries that have some names."""
    calls = set[str]().union(*(use.calls for use in read_uses().values()))
    known = set(map(_name_of, calls))
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            fix = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(known))}"
            raise TrellisworkError(f"expected the name of a structure or a model, got {name!r}; {fix}")
    return {call for call in calls if _name_of(call) in names}


def _name_of(call: str) -> str:
    return call.removeprefix("train ").removeprefix("predict ")


def missing_of(entries: Iterable[Entry]) -> list[Entry]:
    """Return those that are neither cached on this machine nor shipped."""
    return [entry for entry in entries if entry.state == "missing"]
