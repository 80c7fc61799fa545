"""What each of several processes runs in test_processes.py: `python -m tests.training.two_processes FOLDER`.

Every scenario trains the same small taggers that the test trains in one process, and leaves its losses and weights in
FOLDER, one file for each process.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import torch

from trelliswork.data.corpus import as_sentences, builtin_corpus
from trelliswork.errors import TrellisworkError
from trelliswork.models import Tagger, TaggerConfig
from trelliswork.training import TrainingConfig, train
from trelliswork.training.processes import join
from trelliswork.training.progress import Progress
from trelliswork.training.run import Run

TRAIN, DEV, _ = (as_sentences(part) for part in builtin_corpus(sizes=(40, 12, 1)).values())
NETWORK = TaggerConfig(word_dim=8, affix_dim=3, hidden=8, dropout=0.4, unknown_dropout=0.2)
SETTINGS: dict[str, Any] = dict(epochs=3, patience=3, batch_tokens=70, lr=0.02)


class Losses(Progress):
    """Remembers the mean loss after each step."""

    def __init__(self) -> None:
        self.found: list[float] = []

    def batch(self, n_tokens: int, loss: float) -> None:
        self.found.append(loss)


def trained(out: Path | None = None, *, resume: bool = False, **settings: Any) -> dict[str, Any]:
    """Losses after each step, dev scores and weights."""
    tagger, shown = Tagger.from_data(TRAIN, NETWORK), Losses()
    result = train(
        tagger, TRAIN, DEV, TrainingConfig(**{**SETTINGS, **settings}), out=out, resume=resume, progress=shown
    )
    weights = torch.cat([each.detach().flatten() for each in tagger.state_dict().values()])
    return {
        "losses": shown.found,
        "scores": [record.score for record in result.history],
        "weights": weights.tolist(),
        "interrupted": result.interrupted,
    }


def refused() -> str:
    """What each process says when a batch of one of them cannot be learned from."""
    own = Run._gradient

    def failing(self: Run, number: int, batch: list[int], n_tokens: int) -> float:
        if number == 3:
            raise TrellisworkError("batch 3 is broken")
        return own(self, number, batch, n_tokens)

    Run._gradient = failing  # type: ignore[method-assign]
    try:
        trained(epochs=1)
    except TrellisworkError as error:
        return str(error)
    finally:
        Run._gradient = own  # type: ignore[method-assign]
    return "not refused"


def interrupted(out: Path, rank: int) -> dict[str, Any]:
    """A run that Ctrl-C in the second process ends after its fourth step."""
    own = Run._step

    def pressed(self: Run, step: list[list[int]]) -> None:
        own(self, step)
        if rank == 1 and self.position.steps == 4:
            signal.raise_signal(signal.SIGINT)

    Run._step = pressed  # type: ignore[method-assign]
    try:
        return trained(out)
    finally:
        Run._step = own  # type: ignore[method-assign]


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    processes = join()
    found: dict[str, Any] = {"together": trained(folder / "together"), "refused": refused()}
    found["interrupted"] = interrupted(folder / "interrupted", processes.rank)
    found["files"] = sorted(path.name for path in folder.glob("*/config.json"))
    (folder / f"{processes.rank}.json").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
