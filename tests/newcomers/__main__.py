"""The four paths from a fresh clone: `python -m tests.newcomers [--environment FOLDER] [--sizes 400,40,40]`.

Clones this repository, makes an environment, installs the package with the versions of constraints.txt, and follows the
pages with what is installed. A contributor also runs `make quick`, which sets up the environment of the clone. With
--environment an environment that has the package and scikit-learn is used, and contributors run no `make`.
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
from tests.newcomers.following import Installed, follow, write_files
from tests.newcomers.paths import PATHS, page_of


def run(*command: object, folder: Path) -> None:
    subprocess.run([str(part) for part in command], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def install(clone: Path, environment: Path) -> None:
    """As the pages say: torch first, at the version that is tested, then the package with what the pages use."""
    run(sys.executable, "-m", "venv", environment, folder=clone)
    pip = [environment / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "-c", "constraints.txt"]
    run(*pip, "torch", folder=clone)
    run(*pip, ".[sklearn]", folder=clone)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--environment", type=Path, help="an environment to use, in place of a new one")
    parser.add_argument("--sizes", default="400,40,40", help="sentences to train, stop and test on")
    given = parser.parse_args()
    os.environ.pop("PYTHONPATH", None)  # what is followed is what is installed
    train, dev, test = map(int, given.sizes.split(","))
    with tempfile.TemporaryDirectory() as name:
        clone = Path(name) / "clone"
        run("git", "clone", "--quiet", ROOT, clone, folder=Path(name))
        environment = given.environment or Path(name) / "environment"
        if given.environment is None:
            install(clone, environment)
        for path in PATHS:
            began, folder = time.monotonic(), Path(name) / path
            folder.mkdir()
            write_files(folder, (train, dev, test))
            n_steps = follow(page_of(path, clone), Installed(folder, environment.absolute() / "bin"))
            if path == "contributor" and given.environment is None:
                run("make", "quick", folder=clone)
            print(f"{path}: {n_steps} steps, {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
