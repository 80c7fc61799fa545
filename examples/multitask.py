"""Parts of speech, chunks and entities on one encoder, and what averaging over dropout masks does to confidence.

One network with a head for each task is compared with one network per task, trained alike; then the confidences of
each head are compared with how often it is right, with and without dropout.

    python examples/multitask.py                          # the built-in corpus: pos, chunk, entity
    python examples/multitask.py path/to/conll2000        # CoNLL-2000: pos, chunk
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from trelliswork import Sentence, read_conll
from trelliswork.data.corpus import AnnotatedSentence, builtin_corpus
from trelliswork.models import DropoutAverage, MultiTagger, Tagger, TaggerConfig, token_calibration
from trelliswork.models.taggers.networks.multi_tagger import of_tasks
from trelliswork.training import TrainingConfig, train
from trelliswork.training.progress import Progress

SETTINGS = TaggerConfig(encoder="lstm", hidden=100, dropout=0.4, hidden_dropout=0.3)
Data = tuple[tuple[str, ...], list[Sentence], list[Sentence]]


def built_in(n_train: int, n_test: int) -> Data:
    """Three layers of tags that come from one derivation."""
    corpus = builtin_corpus(sizes=(n_train, 1, n_test))
    rows = {part: [_columns(each) for each in corpus[part]] for part in ("train", "test")}
    return ("pos", "chunk", "entity"), rows["train"], rows["test"]


def _columns(sentence: AnnotatedSentence) -> Sentence:
    return Sentence(sentence.words, sentence.entities, (sentence.pos, sentence.chunks))


def conll(folder: Path, n_train: int, n_test: int) -> Data:
    """The columns of CoNLL-2000."""
    parts = [list(read_conll(folder / f"{part}.txt")) for part in ("train", "test")]
    return ("pos", "chunk"), parts[0][:n_train], parts[1][:n_test]


def main(
    data: Data | None = None,
    epochs: int = 30,
    n_masks: int = 20,
    settings: TaggerConfig = SETTINGS,
    batch_tokens: int = 300,
) -> dict[str, dict[str, float]]:
    """Train, print a table, return it."""
    torch.set_num_threads(1)
    tasks, learned, unseen = data or built_in(1000, 300)
    config = TrainingConfig(epochs=epochs, batch_tokens=batch_tokens)
    together = MultiTagger.from_data(learned, tasks, settings)
    train(together, learned, None, config, progress=Progress())
    table = {}
    for task in tasks:
        own, test = ([of_tasks(each, tasks)[task] for each in part] for part in (learned, unseen))
        alone = Tagger.from_data(own, settings)
        train(alone, own, None, config, progress=Progress())
        table[task] = {
            "alone": alone.evaluate(test)["score"],
            "together": together.heads[task].evaluate(test)["score"],
            **_calibration(together.heads[task], test, n_masks),
        }
        print(_line(task, table[task]), flush=True)
    return table


def _calibration(head: Tagger, test: list[Sentence], n_masks: int) -> dict[str, float]:
    """Score and expected calibration error of tokens under the average, and the error before."""
    average = DropoutAverage(head, n_masks)
    return {
        "averaged": average.evaluate(test)["score"],
        "ECE before": token_calibration(head, test).expected_error,
        "ECE after": token_calibration(average, test).expected_error,
    }


def _line(task: str, row: dict[str, Any]) -> str:
    return f"{task:8s}" + "  ".join(f"{name} {100 * value:.2f}" for name, value in row.items())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(conll(Path(sys.argv[1]), 8936, 2012), epochs=8, settings=replace(SETTINGS, hidden=150), batch_tokens=500)
    else:
        main()
