"""Every path from a fresh clone: `python -m tests.newcomers [--environment FOLDER] [--sizes 400,40,40] [--only PATH]`.

Clones this repository, makes an environment, installs the package with the versions of constraints.txt, and follows the
pages with what is installed, with no kernels compiled before. One who reads only `--help` also runs the demo that it
proposes; a contributor runs `make quick`, which sets up the environment of the clone. With --environment an
environment that has the package, scikit-learn and the server is used, and contributors run no `make`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.docs.documents import ROOT
from tests.newcomers.corpora import cut_names
from tests.newcomers.following import Installed, follow, steps_of_help
from tests.newcomers.paths import PATHS, page_of


def run(*command: object, folder: Path) -> None:
    subprocess.run([str(part) for part in command], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def install(clone: Path, environment: Path) -> None:
    """As the pages say: torch first, at the version that is tested, then the package with what the pages use."""
    run(sys.executable, "-m", "venv", environment, folder=clone)
    pip = [environment / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "-c", "constraints.txt"]
    run(*pip, "torch", folder=clone)
    run(*pip, ".[sklearn,web]", folder=clone)


def walk(path: str, folder: Path, sizes: tuple[int, int, int], environment: Path, clone: Path) -> int:
    """Follow one path in its own folder; return the number of steps."""
    folder.mkdir()
    PATHS[path].write_files(folder, sizes)
    runner = Installed(folder, environment.absolute() / "bin")
    n_steps = follow(page_of(path, clone) or steps_of_help(runner), runner)
    if path == "help only":
        runner.shell("trelliswork demo")
    if path == "practitioner with Dutch":
        assert cut_names(folder) == []
    return n_steps


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--environment", type=Path, help="an environment to use, in place of a new one")
    parser.add_argument("--sizes", default="400,40,40", help="sentences to train, stop and test on")
    parser.add_argument("--only", choices=sorted(PATHS), help="one path")
    given = parser.parse_args()
    for name in ("PYTHONPATH", "NUMBA_CACHE_DIR"):  # what is followed is what is installed, on a new machine
        os.environ.pop(name, None)
    train, dev, test = map(int, given.sizes.split(","))
    with tempfile.TemporaryDirectory() as name:
        clone = Path(name) / "clone"
        run("git", "clone", "--quiet", ROOT, clone, folder=Path(name))
        environment = given.environment or Path(name) / "environment"
        if given.environment is None:
            install(clone, environment)
        for path in [given.only] if given.only else PATHS:
            began = time.monotonic()
            n_steps = walk(path, Path(name) / path.replace(" ", "-"), (train, dev, test), environment, clone)
            if path == "contributor" and given.environment is None:
                run("make", "quick", folder=clone)
            print(f"{path}: {n_steps} steps, {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
