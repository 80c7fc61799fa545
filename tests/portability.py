"""`make portability`: both commands in fresh clones, in either order; the demo and a part of the tests under other
processors and threads.

Takes about an hour on two cores. Each variant runs in a temporary clone of HEAD without the sibling data; the last
lines of a failed run are printed.

python -m tests.portability                      # everything
python -m tests.portability "no AVX-512" ...     # some variants
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from llvmlite import binding

from tests.docs.documents import ROOT

# What depends on the processor, and what a user sees of it; of the contract, each query of each structure once.
TESTS = (
    "--quick tests/contract tests/docs/test_tutorials.py tests/structures/test_chain_kernels.py "
    "tests/structures/test_segment_kernels.py tests/structures/test_tree_kernels.py tests/nn/test_every_part.py "
    "tests/nn/test_crf.py tests/cli/test_train.py tests/runtime/test_compilation.py"
)


class Variant(NamedTuple):
    """Commands for fresh clones, with settings of the environment; without copies they share one that is set up."""

    commands: tuple[str, ...]
    settings: Mapping[str, str] = MappingProxyType({})
    copies: int = 0


def without(prefix: str) -> str:
    """The features of this processor, with those that begin like this switched off."""
    features = dict(binding.get_host_cpu_features())
    return ",".join(f"{'+' if on and not name.startswith(prefix) else '-'}{name}" for name, on in features.items())


SOME = ("make demo", f".venv/bin/python -m pytest -n 2 {TESTS}")
VARIANTS = {
    "demo, then test": Variant(("make demo", "make test"), copies=1),
    "test, then demo": Variant(("make test", "make demo"), copies=1),
    "generic processor": Variant(SOME, {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}),
    "no AVX-512": Variant(SOME, {"NUMBA_CPU_FEATURES": without("avx512")}),
    "torch without vector units": Variant(SOME, {"ATEN_CPU_CAPABILITY": "default"}),
    "1 OpenMP thread": Variant(SOME, {"OMP_NUM_THREADS": "1"}),
    "4 OpenMP threads": Variant(SOME, {"OMP_NUM_THREADS": "4"}),
    "two copies at once": Variant(SOME, copies=2),
}


def clone(folder: Path) -> Path:
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
    return folder


def run(commands: tuple[str, ...], settings: Mapping[str, str], folder: Path) -> str:
    """The last lines of the first command that fails; empty if all pass."""
    for command in commands:
        done = subprocess.run(
            command, shell=True, cwd=folder, env={**os.environ, **settings}, capture_output=True, text=True, check=False
        )
        if done.returncode:
            return "\n".join([f"$ {command}", *(done.stdout + done.stderr).splitlines()[-40:]])
        print(f"    {command.split(' --quick')[0]}: {done.stdout.strip().splitlines()[-1]}", flush=True)
    return ""


def passes(name: str, variant: Variant, shared: Path) -> bool:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor() as pool:
        folders = [clone(Path(place) / f"copy{i}" / "trelliswork") for i in range(variant.copies)]
        kernels = {} if folders else {"NUMBA_CACHE_DIR": place}  # none are compiled yet
        settings = {**variant.settings, **kernels}
        failures = [*pool.map(lambda folder: run(variant.commands, settings, folder), folders or [shared])]
    failed = [text for text in failures if text]
    print(
        f"{name}: {'FAILED' if failed else 'passed'} in {time.monotonic() - began:.0f} s", *failed, sep="\n", flush=True
    )
    return not failed


def main(names: list[str]) -> int:
    with tempfile.TemporaryDirectory() as place:
        shared = clone(Path(place) / "trelliswork")
        results = [passes(name, VARIANTS[name], shared) for name in names or VARIANTS]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
