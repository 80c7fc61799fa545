"""Our own parsers, from file to file as `trelliswork predict` does it, under the rules of the peers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from served import commands

from benchmarks.tagged_file import tag_file
from trelliswork.models import load
from trelliswork.runtime.threads import use_threads


def train(source: str, model: str) -> None:
    raise SystemExit("our own parsers are trained by `trelliswork train`; give the folder of one")


def parser(model: str, source: str, target: str) -> Callable[[], object]:
    use_threads(1)
    loaded = load(model)
    return lambda: tag_file(loaded, Path(source), Path(target))


if __name__ == "__main__":
    commands(train, parser)
