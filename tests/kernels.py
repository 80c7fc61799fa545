"""Compile what the tests call, with all cores, before they begin: `python -m tests.kernels`.

Two processes that run tests would wait for each other: both soon want the same kernel.
"""

from __future__ import annotations

from trelliswork.runtime.compile_all import compile_all
from trelliswork.runtime.entries import read_entries


def note(ready: int, n_kernels: int) -> None:
    """Say how far it is, a few times."""
    if ready % 50 == 0 or ready == n_kernels:
        print(f"{ready} of {n_kernels} kernels are compiled", flush=True)


if __name__ == "__main__":
    compile_all([entry for entry in read_entries() if entry.state == "missing"], note=note)
