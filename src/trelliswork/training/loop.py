"""The training loop that every model shares.

    >>> tagger = Tagger.from_data(train_sentences)                                            # doctest: +SKIP
    >>> result = train(tagger, train_sentences, dev_sentences, TrainingConfig(epochs=5), out="model")  # doctest: +SKIP
    epoch 1: loss 0.5525, dev f1 89.84, 19,300 tokens/s, 11.0 s
    ...

A model offers `encode`, `loss`, `evaluate`, `save` and `metrics` (see `Trainable`); the loop does the rest:
batches by token budget, seeds, clipping, decay, early stopping, the best weights kept, and a clean end on
Ctrl-C.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from trelliswork.data import Sentence, token_budget_batches
from trelliswork.errors import TrellisworkError
from trelliswork.training.config import TrainingConfig
from trelliswork.training.early_stopping import BestWeights
from trelliswork.training.optimizers import make_optimizer, make_schedule
from trelliswork.training.progress import EpochRecord, Progress, make_progress

HISTORY = "history.jsonl"


class Trainable(Protocol):
    """What the loop asks of a model, besides being an `nn.Module`."""

    metrics: dict[str, Any]

    def encode(self, sentences: Sequence[Sentence], *, with_tags: bool = False) -> Sequence[Sized]:
        """Examples, made once and reused in each epoch."""

    def loss(self, batch: Any) -> Tensor:
        """The summed loss of a batch of encoded examples."""

    def evaluate(self, sentences: Sequence[Sentence]) -> dict[str, Any]:
        """Scores of the model on gold data; `score` is the one that counts and `metric` its name."""

    def check_output(self, directory: str | Path) -> None:
        """Raise `OutputError` if `save` could not write there; asked before the first epoch."""

    def save(self, directory: str | Path, *, extra: Mapping[str, str] | None = None) -> None:
        """Write the model folder."""


@dataclass
class TrainingResult:
    """How a run went: `history` per epoch, the best epoch and its score, and whether Ctrl-C ended it."""

    history: list[EpochRecord] = field(default_factory=list)
    best_epoch: int = 0
    best_score: float | None = None
    interrupted: bool = False
    note: str = ""

    @property
    def seconds(self) -> float:
        """Wall-clock time of all epochs."""
        return sum(record.seconds for record in self.history)


def train(
    model: Any,
    train: Sequence[Sentence],
    dev: Sequence[Sentence] | None,
    config: TrainingConfig | None = None,
    *,
    out: str | Path | None = None,
    progress: Progress | None = None,
    on_epoch: Callable[[EpochRecord], None] | None = None,
) -> TrainingResult:
    """Train `model` in place and leave it with its best weights, saved in `out` if given.

    Without `dev` the last epoch counts as the best. The same model, data and `config` give the same weights, bit for
    bit, on one machine's CPU. `on_epoch` is called with each record. Ctrl-C (or `KeyboardInterrupt` from `on_epoch`)
    ends the run with the best model so far; a loss that is not finite ends it with an error.
    """
    run = _Run(model, train, dev, config or TrainingConfig(), out)
    with progress or make_progress() as shown, torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.config.seed)
        try:
            run.all_epochs(shown, on_epoch)
        except KeyboardInterrupt:
            run.interrupted()
        run.finish()
        if run.result.interrupted:
            shown.note(run.result.note)
    return run.result


class _Run:
    """The state of one call of `train`."""

    def __init__(
        self,
        model: Any,
        train: Sequence[Sentence],
        dev: Sequence[Sentence] | None,
        config: TrainingConfig,
        out: str | Path | None,
    ):
        filled = [sentence for sentence in train if len(sentence)]
        if not filled:
            raise TrellisworkError("expected sentences to train on, got none; check the training data")
        self.module: nn.Module = model
        self.model: Trainable = model
        self.dev, self.config, self.out = dev, config, Path(out) if out is not None else None
        if self.out is not None:
            self.model.check_output(self.out)
        self.examples = self.model.encode(filled, with_tags=True)
        self.lengths = [len(example) for example in self.examples]
        self.best = BestWeights(config.patience)
        self.result = TrainingResult()
        self.optimizer = make_optimizer(self.module, config)
        n_steps = config.epochs * len(self._batches(1))
        self.schedule = make_schedule(self.optimizer, config, n_steps)

    def _batches(self, epoch: int) -> list[list[int]]:
        seed = self.config.seed * 1_000_003 + epoch
        return token_budget_batches(self.lengths, self.config.batch_tokens, seed=seed, bucket=2000)

    def all_epochs(self, shown: Progress, on_epoch: Callable[[EpochRecord], None] | None) -> None:
        """Epoch after epoch, until the last or until patience runs out."""
        for epoch in range(1, self.config.epochs + 1):
            began = time.perf_counter()
            shown.start_epoch(epoch, self.config.epochs, sum(self.lengths))
            loss = self._one_epoch(epoch, shown)
            rate = sum(self.lengths) / (time.perf_counter() - began)
            scores = self.model.evaluate(self.dev) if self.dev else {}
            seconds = time.perf_counter() - began
            record = EpochRecord(epoch, loss, scores.get("score"), scores.get("metric", ""), rate, seconds)
            self._keep(record, scores)
            shown.epoch(record)
            if on_epoch is not None:
                on_epoch(record)
            if self.dev and self.best.exhausted:
                self.result.note = f"stopped: no better dev {record.metric} for {self.config.patience} epochs"
                shown.note(self.result.note)
                return

    def _one_epoch(self, epoch: int, shown: Progress) -> float:
        """Every example once; the mean loss per token."""
        self.module.train()
        total_loss, total_tokens = 0.0, 0
        for step, batch in enumerate(self._batches(epoch), 1):
            n_tokens = sum(self.lengths[i] for i in batch)
            loss = self._step([self.examples[i] for i in batch], n_tokens)
            if not math.isfinite(loss):
                raise TrellisworkError(self._explain_bad_loss(loss, epoch, step))
            total_loss, total_tokens = total_loss + loss, total_tokens + n_tokens
            shown.batch(n_tokens, total_loss / total_tokens)
        return total_loss / total_tokens

    def _step(self, examples: list[Sized], n_tokens: int) -> float:
        """One update by the gradient of the mean loss per token; a bad loss changes nothing."""
        loss = self.model.loss(examples)
        value = loss.item()
        if math.isfinite(value):
            self.optimizer.zero_grad()
            (loss / n_tokens).backward()
            nn.utils.clip_grad_norm_(self.module.parameters(), self.config.clip)
            self.optimizer.step()
            self.schedule.step()
        return value

    def _explain_bad_loss(self, loss: float, epoch: int, step: int) -> str:
        kept = ""
        if self.out is not None and self.best.score is not None:
            kept = f"; the best model, of epoch {self.best.epoch}, is in {self.out}"
        return (
            f"expected a finite loss, got {loss} in epoch {epoch}, batch {step}; "
            f"lower the learning rate (now {self.config.learning_rate:g}) or clip harder{kept}"
        )

    def _keep(self, record: EpochRecord, scores: dict[str, Any]) -> None:
        """Remember the epoch, and save the model if it is the best so far."""
        self.result.history.append(record)
        score = record.score if record.score is not None else float(record.epoch)
        if self.best.offer(score, self.module):
            self.result.best_epoch, self.result.best_score = record.epoch, record.score
            self.model.metrics["dev"] = scores
            if self.dev:
                self._save()

    def interrupted(self) -> None:
        """Word what Ctrl-C leaves behind."""
        self.result.interrupted = True
        place = f" saved in {self.out}" if self.out is not None else " kept"
        which = f"the best model (epoch {self.best.epoch})" if self.result.history else "the model as it stood"
        self.result.note = f"interrupted: {which} is{place}"

    def finish(self) -> None:
        """Leave the model with its best weights, on disk too."""
        self.best.restore(self.module)
        self.module.eval()
        self._save()

    def _save(self) -> None:
        self.model.metrics["training"] = {
            "epochs": len(self.result.history),
            "best_epoch": self.result.best_epoch,
            "seconds": round(self.result.seconds, 2),
            "settings": self.config.to_dict(),
        }
        if self.out is not None:
            lines = [json.dumps(record.to_dict()) + "\n" for record in self.result.history]
            self.model.save(self.out, extra={HISTORY: "".join(lines)})
