"""One pass of our biaffine parser's training over a file: the exact likelihood of trees, AdamW, the same batches."""

from __future__ import annotations

from collections.abc import Callable

from our_parser import train
from served import commands

from trelliswork.data.treebank import read_treebank
from trelliswork.models.catalogue import entry_of
from trelliswork.models.parsers.dependency.biaffine import BiaffineParser
from trelliswork.models.parsers.dependency.config import ParserConfig
from trelliswork.runtime.threads import use_threads
from trelliswork.training import TrainingConfig
from trelliswork.training import train as learn
from trelliswork.training.progress import Progress

BATCH = 5000


def learner(model: str, source: str, target: str) -> Callable[[], object]:
    use_threads(1)
    _, sentences = read_treebank(source)
    parser = BiaffineParser.from_data(sentences, ParserConfig(**entry_of("biaffine").values, min_count=2))
    return lambda: learn(parser, sentences, None, TrainingConfig(epochs=1, batch_tokens=BATCH), progress=Progress())


if __name__ == "__main__":
    commands(train, learner)
