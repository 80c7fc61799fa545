"""Compile every entry kernel for the levels of this kind of machine: `python -m trelliswork.runtime.build`.

A wheel made afterwards carries the kernels, and nothing is compiled where it is installed with the versions that it was
built with. The kernels of one level take minutes; they are compiled by as many processes as there are cores.
"""

from __future__ import annotations

import argparse
import lzma
import multiprocessing
import os
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from trelliswork.runtime.entries import Entry, read_entries
from trelliswork.runtime.shipped import FOLDER, SUFFIX, Level, levels, supported_levels
from trelliswork.writing import atomic_write


def compile_entry(entry: Entry) -> tuple[str, bytes]:
    """Compile a kernel for the processor of the environment; return the name and the content of its file."""
    dispatcher, signature = entry.dispatcher, entry.signature
    dispatcher.compile(signature)
    file = dispatcher._cache.file(signature, dispatcher.targetctx.codegen())
    return dispatcher._cache.shipped_name(signature), lzma.compress(file.read_bytes(), preset=9)


def compiled(level: Level, entries: Sequence[Entry], n_processes: int) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a level as they are ready. Processes share what helpers they compile."""
    with tempfile.TemporaryDirectory() as helpers:
        os.environ |= {**level.settings, "NUMBA_CACHE_DIR": helpers}  # read by numba when a process starts
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(n_processes, mp_context=context) as pool:
            yield from pool.map(compile_entry, entries)


def build_level(level: Level, entries: Sequence[Entry], n_processes: int, folder: Path = FOLDER) -> Path:
    """Bring the folder of a level up to date: compile what is missing, remove what is no longer listed."""
    place = folder / level.name
    place.mkdir(parents=True, exist_ok=True)
    names = {entry: f"{entry.dispatcher._cache.shipped_name(entry.signature)}{SUFFIX}" for entry in entries}
    for left_over in set(os.listdir(place)) - set(names.values()):
        (place / left_over).unlink()
    missing = [entry for entry, name in names.items() if not (place / name).exists()]
    for number, (name, content) in enumerate(compiled(level, missing, n_processes), 1):
        with atomic_write(place / f"{name}{SUFFIX}", "wb") as file:
            file.write(content)
        print(f"\r{level.name}: {number} of {len(missing)} kernels", end="", flush=True)
    print()
    return place


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--levels", default="all", help="names with commas, `all`, or `best`: the best that this machine supports"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    known = {level.name: level for level in levels()}
    chosen = {"all": list(known), "best": [level.name for level in supported_levels()[:1]]}.get(
        given.levels, given.levels.split(",")
    )
    if unknown := set(chosen) - set(known):
        parser.error(f"expected levels among {', '.join(known)}, got {', '.join(sorted(unknown))}")
    entries = list(read_entries())
    for name in chosen:
        folder = build_level(known[name], entries, given.processes)
        size = sum(file.stat().st_size for file in folder.iterdir())
        print(f"{name}: {len(entries)} kernels, {size / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    main()
