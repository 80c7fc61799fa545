"""One pass of supar's training over a file: losses of heads and labels by themselves, Adam, batches of 5,000 tokens."""

from __future__ import annotations

from collections.abc import Callable

from served import commands
from supar_parser import batches, built, train


def learner(model: str, source: str, target: str) -> Callable[[], object]:
    parser = built(target, source)
    loader = batches(parser, source)
    return lambda: parser._train(loader)


if __name__ == "__main__":
    commands(train, learner)
