"""Compile every entry kernel for the levels of this kind of machine: `python -m trelliswork.runtime.build`.

A wheel made afterwards carries the kernels, and nothing is compiled where it is installed with the versions that it was
built with. The kernels of one level take minutes; they are compiled by as many processes as there are cores.
"""

from __future__ import annotations

import argparse
import lzma
import os
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from trelliswork.runtime.compile_all import compile_all
from trelliswork.runtime.entries import Entry, read_entries, read_uses
from trelliswork.runtime.shipped import FOLDER, SUFFIX, Level, levels, supported_levels
from trelliswork.runtime.threads import n_cores
from trelliswork.writing import atomic_write


def entries_of(level: Level) -> list[Entry]:
    """Return what is built for a level: everything for the lowest, for a better one what structures and commands call.

    The rest runs by the lowest level there, which keeps a wheel below 25 MB.
    """
    uses = read_uses()
    return [entry for entry in read_entries() if level == levels()[-1] or uses[entry].calls]


def build_level(level: Level, entries: Sequence[Entry], n_processes: int, folder: Path = FOLDER) -> Path:
    """Bring the folder of a level up to date: compile what is missing, remove what is no longer listed.

    Args:
        level: the instructions that the processor may use.
        entries: the kernels to compile.
        n_processes: how many processes compile.
        folder: where the folders of all levels lie.

    Returns:
        The folder of the level.
    """
    place = folder / level.name
    place.mkdir(parents=True, exist_ok=True)
    names = {entry: _file_name(entry) for entry in entries}
    for left_over in set(os.listdir(place)) - set(names.values()):
        (place / left_over).unlink()
    missing = [entry for entry, name in names.items() if not (place / name).exists()]
    with tempfile.TemporaryDirectory() as cache:
        settings = {**level.settings, "NUMBA_CACHE_DIR": cache}
        pack(compile_all(missing, n_processes, settings=settings, note=partial(_show, level)), place)
    return place


def pack(files: Mapping[Entry, Path | None], place: Path, preset: int = 9) -> None:
    """Write compressed copies of files of the cache under the names that wheels have.

    Args:
        files: the compiled file of each kernel; None is an error.
        place: the folder to write to.
        preset: how hard to compress, 0 to 9.
    """
    for entry, file in files.items():
        if file is None:
            raise RuntimeError(f"{entry.module}:{entry.name} was compiled, but not kept")
        with atomic_write(place / _file_name(entry), "wb") as packed:
            packed.write(lzma.compress(file.read_bytes(), preset=preset))


def _file_name(entry: Entry) -> str:
    return f"{entry.dispatcher._cache.shipped_name(entry.signature)}{SUFFIX}"


def _show(level: Level, ready: int, n_kernels: int) -> None:
    print(f"\r{level.name}: {ready} of {n_kernels} kernels", end="\n" * (ready == n_kernels), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--levels", default="all", help="names with commas, `all`, or `best`: the best that this machine supports"
    )
    parser.add_argument("--processes", type=int, default=n_cores())
    given = parser.parse_args()
    known = {level.name: level for level in levels()}
    chosen = {"all": list(known), "best": [level.name for level in supported_levels()[:1]]}.get(
        given.levels, given.levels.split(",")
    )
    if unknown := set(chosen) - set(known):
        parser.error(f"expected levels among {', '.join(known)}, got {', '.join(sorted(unknown))}")
    for name in chosen:
        entries = entries_of(known[name])
        folder = build_level(known[name], entries, given.processes)
        size = sum(file.stat().st_size for file in folder.iterdir())
        print(f"{name}: {len(entries)} kernels, {size / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    main()
