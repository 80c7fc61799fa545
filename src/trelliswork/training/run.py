"""The state of one call of `train`, and its steps."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn

from trelliswork.data import Sentence, token_budget_batches
from trelliswork.data.json_values import JsonObject
from trelliswork.errors import ConstraintError, ModelError, ScoreError, TrellisworkError
from trelliswork.training.averaging import BestWeights, averages_in, make_average
from trelliswork.training.checkpoint import Checkpoint, Position, random_state, restore, tensors_of, values_of
from trelliswork.training.config import TrainingConfig
from trelliswork.training.exclusive import HISTORY
from trelliswork.training.failures import (
    BadBatchError,
    BadValueError,
    explaining_memory,
    explaining_weights,
    fits,
    half_precision,
    refuse_bad_value,
)
from trelliswork.training.interrupts import Interrupts
from trelliswork.training.objectives import TextReader, Trainable, make_objective
from trelliswork.training.processes import join
from trelliswork.training.progress import EpochRecord, Progress
from trelliswork.training.result import TrainingResult, earlier_run, fingerprint, refuse_differences
from trelliswork.training.schedules import GradualUnfreezing, make_optimizer, make_schedule
from trelliswork.training.shares import sharing

LONGEST_SHARE = 0.05  # of the time, at most, goes into checkpoints within epochs


class Run:
    """Model, data, optimizer and all that changes with each step.

    Args:
        model: The model to train.
        train: Sentences to train on.
        dev: Sentences to choose the best epoch by.
        config: Settings of training.
        out: The folder for the model and the checkpoints.
    """

    def __init__(
        self,
        model: Trainable,
        train: Sequence[Sentence],
        dev: Sequence[Sentence] | None,
        config: TrainingConfig,
        out: str | Path | None,
    ):
        self.processes = join()
        out = out if self.processes.is_first else None  # one process writes
        self.module = cast(nn.Module, model)
        self.model = model
        self.sentences = [sentence for sentence in train if fits(sentence, config)]
        self.n_left_out = sum(map(bool, map(len, train))) - len(self.sentences)
        self.dev, self.config, self.out = dev, config, Path(out) if out is not None else None
        self._check_data()
        if self.out is not None:
            self.model.check_output(self.out)
        self.checkpoint = Checkpoint(self.out) if self.out is not None else None
        self.objective = make_objective(config.objective, self.model)
        self.pieces = model.in_order(self.sentences, config) if isinstance(model, TextReader) else None
        if self.pieces is not None and self.batches_per_step > 1:
            problem = "a text is read in order by one process, with one batch in a step"
            raise TrellisworkError(f"{problem}; got {self.batches_per_step} batches; set accumulate to 1")
        self.examples = self.model.encode(self.sentences, with_tags=True) if self.pieces is None else self.pieces
        self.lengths = [len(example) for example in self.examples]
        self.best = BestWeights(config.patience)
        self.result = TrainingResult()
        self.position = Position()
        self.unfreezing = GradualUnfreezing(self.module) if config.unfreeze else None
        self.optimizer = make_optimizer(self.module, config)
        self.schedule = make_schedule(self.optimizer, config, config.epochs * len(self._steps(1)))
        self.average = make_average(self.module, config)
        self.random: dict[str, Tensor] = {}

    def _check_data(self) -> None:
        if not self.sentences:
            long = f" ({self.n_left_out} over max_sentence_length)" if self.n_left_out else ""
            raise TrellisworkError(f"expected sentences to train on, got none{long}; check the training data")
        if self.dev is not None and not any(map(len, self.dev)):
            raise TrellisworkError(
                "expected dev sentences to stop early on, got none; check the dev data, or train without it (dev=None)"
            )

    def _steps(self, epoch: int) -> list[list[list[int]]]:
        """Return the batches of an epoch, `accumulate` of them in each process to a step.

        Batches of a step have sentences of about the same length: no process waits long for the others.
        """
        if self.pieces is not None:
            return [[[i]] for i in range(len(self.examples))]
        seed, together = self.config.seed * 1_000_003 + epoch, self.batches_per_step
        batches = token_budget_batches(self.lengths, self.config.batch_tokens, seed=seed, bucket=self.config.bucket)
        if together == 1:
            return [[batch] for batch in batches]
        batches.sort(key=lambda batch: max(self.lengths[i] for i in batch))
        steps = [batches[i : i + together] for i in range(0, len(batches), together)]
        random.Random(seed).shuffle(steps)
        return steps

    @property
    def batches_per_step(self) -> int:
        """Of all processes together."""
        return self.config.accumulate * self.processes.size

    # Beginning and end

    def begin(self, shown: Progress, resume: bool) -> None:
        """Begin from the checkpoint, if that is wanted and there is one; else from the start, all processes alike."""
        if self.processes.is_first:
            self._begin(shown, resume)
        if not self.processes.alone:
            state = self.processes.from_first((tensors_of(self), values_of(self), self.best.weights))
            restore(self, *state)
        if (prepare := getattr(self.model, "begin_training", None)) is not None:
            prepare(self.sentences, self.dev or (), self.position.epoch, shown.note)

    def _begin(self, shown: Progress, resume: bool) -> None:
        self.random = random_state()
        if self.n_left_out:
            shown.note(f"{self.n_left_out} sentences over {self.config.max_sentence_length} tokens are left out")
        if self.checkpoint is None:
            return
        self.fingerprint = fingerprint(self.module, self.sentences, self.dev, self.config)
        if not resume:
            self.checkpoint.clear()
        elif self.checkpoint.exists:
            n_threads = self._resume(self.checkpoint)
            shown.note(f"resumed in epoch {self.position.epoch}, after {self.position.steps} of its steps")
            if n_threads != torch.get_num_threads():
                now = torch.get_num_threads()
                shown.note(
                    f"the run had {n_threads} threads and has {now}: rounding differs, so the weights will differ too"
                )
        elif (before := earlier_run(self.checkpoint.out, self.module, self.config)) is not None:
            self._go_on(before, self.checkpoint.out)
            done = f"finished after {len(before.history)} epochs"
            shown.note(f"{done}: going on to {self.config.epochs} from its best model, with a new optimizer")
        self._checkpoint_at = time.monotonic() + self.config.checkpoint_every

    def _resume(self, checkpoint: Checkpoint) -> int:
        """Go on from a checkpoint; return the number of threads that it was made with."""
        tensors, values = checkpoint.read()
        try:
            refuse_differences(values["fingerprint"], self.fingerprint, str(self.out))
            best = checkpoint.read_best(values["best_epoch"]) if values["best_epoch"] else {}
            restore(self, tensors, values, best)
            self._in_steps_of(int(values.get("batches_per_step", self.batches_per_step)))
            n_threads = int(values.get("threads", torch.get_num_threads()))
        except (KeyError, TypeError, RuntimeError) as error:
            problem = "written by another version; train again without --resume"
            raise ModelError(f"{checkpoint.folder}: {problem}") from error
        self._write_history("w", self.result.history)
        return n_threads

    def _in_steps_of(self, before: int) -> None:
        """After a change of the number of processes, a step has more or fewer batches than those `before`."""
        if before != self.batches_per_step:
            n_steps = len(self._steps(self.position.epoch))
            self.position.steps = min(n_steps, self.position.steps * before // self.batches_per_step)
            self.schedule.go_to((self.position.epoch - 1) * n_steps + self.position.steps)

    def _go_on(self, before: TrainingResult, folder: Path) -> None:
        """Take the best model of a run that was finished, as if the next epoch were one of its own."""
        stored = type(self.model).load(folder)
        try:
            self.module.load_state_dict(cast(nn.Module, stored).state_dict())
        except RuntimeError as error:
            problem = "expected the data that the model there was trained on, got words or tags of other data"
            raise ModelError(f"{folder}: {problem}; give the same, or start from it with --init") from error
        self.result, n_epochs = before, len(before.history)
        self.model.metrics["dev"] = stored.metrics.get("dev", {})
        score = before.best_score if before.best_score is not None else float(before.best_epoch)
        state = {"score": score, "epoch": before.best_epoch, "epochs_offered": n_epochs}
        self.best.load(state, {name: tensor.detach().clone() for name, tensor in self.module.state_dict().items()})
        self.position = Position(epoch=n_epochs + 1)
        self.schedule.go_to(n_epochs * len(self._steps(1)))
        self.checkpoint_best()

    def write_checkpoint(self) -> None:
        """Leave all that the next step depends on on disk."""
        if self.checkpoint is not None:
            began = time.monotonic()
            self.checkpoint.write(tensors_of(self), {**values_of(self), "fingerprint": self.fingerprint})
            every, took = self.config.checkpoint_every, time.monotonic() - began
            self._checkpoint_at = began + (max(every, took / LONGEST_SHARE) if every else 0)

    def interrupted(self) -> None:
        """Word what Ctrl-C leaves behind."""
        self.write_checkpoint()
        self.result.interrupted = True
        place = f" saved in {self.out}; resume to go on" if self.out is not None else " kept"
        which = f"the best model (epoch {self.best.epoch})" if self.result.history else "the model as it stood"
        self.result.note = f"interrupted: {which} is{place}"

    def rescue(self, error: BadBatchError) -> str:
        """Keep the last good model after a batch that stopped the run; say where it is."""
        if isinstance(error, BadValueError) and not self.best.epoch:
            self.abandon()
            return "; no epoch was finished, so no model is kept"
        self.finish()
        if self.out is None:
            return ""
        which = f"the best model, of epoch {self.best.epoch}," if self.best.epoch else "the model as it stood"
        return f"; {which} is in {self.out}"

    def abandon(self) -> None:
        """Leave nothing of this run on disk; a model that was there before stays."""
        self._end_learning()
        if self.checkpoint is not None:
            self.checkpoint.clear()

    def finish(self) -> None:
        """Leave the model with its best weights, on disk too; a finished run needs no checkpoint."""
        self._end_learning()
        self._save()
        self._write_history("w", self.result.history)
        if self.checkpoint is not None and not self.result.interrupted:
            self.checkpoint.clear()

    def _end_learning(self) -> None:
        if self.unfreezing is not None:
            self.unfreezing.end()
        self.best.restore(self.module)
        self.module.eval()
        if (end := getattr(self.model, "end_training", None)) is not None:
            end()

    # Epochs

    def all_epochs(self, shown: Progress, interrupts: Interrupts) -> None:
        """Epoch after epoch, until the last or until patience runs out."""
        while self.position.epoch <= self.config.epochs and not self._out_of_patience:
            shown.epoch(self._one_epoch(shown, interrupts))
        if self._out_of_patience:
            metric = self.result.history[-1].metric
            self.result.note = f"stopped: no better dev {metric} for {self.config.patience} epochs"
            shown.note(self.result.note)

    @property
    def _out_of_patience(self) -> bool:
        return bool(self.dev and self.result.history and self.best.exhausted)

    def _one_epoch(self, shown: Progress, interrupts: Interrupts) -> EpochRecord:
        """Carry out the rest of the epoch, then evaluate."""
        at, n_tokens = self.position, sum(self.lengths)
        began = time.perf_counter() - at.seconds
        shown.start_epoch(at.epoch, self.config.epochs, n_tokens)
        shown.batch(at.tokens, at.mean_loss)
        if self.unfreezing is not None:
            self.unfreezing.begin_epoch(at.epoch)
        if (begin := getattr(self.model, "begin_epoch", None)) is not None:
            begin(at.epoch, self.config.epochs)
        self.module.train()
        steps = self._steps(at.epoch)
        for step in steps[at.steps :]:
            with interrupts.undivided():
                before = at.tokens
                self._step(step)
                at.seconds = time.perf_counter() - began
            shown.batch(at.tokens - before, at.mean_loss)
            if self.checkpoint is not None and time.monotonic() >= self._checkpoint_at:
                self.write_checkpoint()
        return self._end_epoch(n_tokens, began, interrupts)

    def _end_epoch(self, n_tokens: int, began: float, interrupts: Interrupts) -> EpochRecord:
        at = self.position
        with self._averaged():
            scores = self._evaluate()
            seconds = time.perf_counter() - began
            rate = n_tokens / max(at.seconds, 1e-9)
            record = EpochRecord(at.epoch, at.mean_loss, scores.get("score"), scores.get("metric", ""), rate, seconds)
            with interrupts.undivided():
                self._keep(record, scores)
        with interrupts.undivided():
            self.write_checkpoint()
        return record

    def _evaluate(self) -> JsonObject:
        if not self.dev:
            return {}
        try:
            with sharing(self.processes.in_shares):
                return self.model.evaluate(self.dev)
        except (ScoreError, ConstraintError) as error:
            place = f"after epoch {self.position.epoch}, batch {self.position.steps}"
            raise BadValueError(
                f"expected finite scores of the dev sentences {place}, found some that are not; "
                f"lower the learning rate (now {self.config.learning_rate:g}) or clip harder"
            ) from error

    def _averaged(self) -> AbstractContextManager[None]:
        return nullcontext() if self.average is None else self.average.applied()

    # Steps

    def _step(self, step: list[list[int]]) -> None:
        """One update by the gradient of the mean loss per token; a bad batch changes nothing."""
        at = self.position
        n_tokens = sum(self.lengths[i] for batch in step for i in batch)
        self.optimizer.zero_grad(set_to_none=True)
        first = at.steps * self.batches_per_step
        own = self.processes.share(list(enumerate(step, first)))
        loss = self.processes.summed(lambda: sum(self._gradient(number, batch, n_tokens) for number, batch in own))
        self.processes.sum_gradients(self.module.parameters())
        norm = nn.utils.clip_grad_norm_(self.module.parameters(), self.config.clip)
        last = self._sentences(step[-1])
        refuse_bad_value("gradient", norm.item(), self._place, last, self.config)
        self.optimizer.step()
        self.schedule.step()
        if self.average is not None and averages_in(at.epoch, self.config):
            self.average.update()
        at.steps, at.loss, at.tokens = at.steps + 1, at.loss + loss, at.tokens + n_tokens
        self.random = random_state()

    def _gradient(self, number: int, batch: list[int], n_tokens: int) -> float:
        """Add the gradient of a batch to the others of its step; return its loss.

        Where a step has several batches, each of them has random numbers of its own, by its `number` in the epoch: they
        are the same whichever process has the batch.
        """
        if self.batches_per_step > 1:
            torch.manual_seed((self.config.seed * 1_000_003 + self.position.epoch) * 1_000_003 + number)
        sentences, config = self._sentences(batch), self.config
        with explaining_memory(self._place, sentences, config):
            with self._precision(), explaining_weights(self.module, self._place, sentences, config):
                loss = self.objective([self.examples[i] for i in batch])
            value = loss.item()
            refuse_bad_value("loss", value, self._place, sentences, config)
            (loss / n_tokens).backward()
        return value

    def _sentences(self, batch: list[int]) -> list[Sentence]:
        """Return the sentences of a batch, for messages."""
        if self.pieces is not None:
            return [sentence for i in batch for sentence in self.pieces[i].sentences]
        return [self.sentences[i] for i in batch]

    @property
    def _place(self) -> str:
        name = "batch" if self.config.accumulate == 1 else "step"
        return f"epoch {self.position.epoch}, {name} {self.position.steps + 1}"

    def _precision(self) -> AbstractContextManager[None]:
        if self.config.precision != "bf16":
            return nullcontext()
        return half_precision(next(self.module.parameters()).device.type)

    # Keeping

    def _keep(self, record: EpochRecord, scores: JsonObject) -> None:
        """Remember the epoch, and save the model if it is the best so far."""
        self.result.history.append(record)
        self.position = Position(epoch=record.epoch + 1)
        score = record.score if record.score is not None else float(record.epoch)
        if self.best.offer(score, self.module):
            self.result.best_epoch, self.result.best_score = record.epoch, record.score
            self.model.metrics["dev"] = scores
            if self.dev:
                self._save()
            self.checkpoint_best()
        self._write_history("w" if record.epoch == 1 else "a", [record])

    def checkpoint_best(self) -> None:
        """Leave the best weights on disk, for the checkpoints that name them."""
        if self.checkpoint is not None:
            self.checkpoint.write_best(self.best.epoch, self.best.weights)

    def _save(self) -> None:
        self.model.metrics["training"] = {
            "epochs": len(self.result.history),
            "best_epoch": self.result.best_epoch,
            "seconds": round(self.result.seconds, 2),
            "settings": self.config.to_dict(),
        }
        if self.out is not None:
            self.model.save(self.out)

    def _write_history(self, mode: str, records: Sequence[EpochRecord]) -> None:
        """One line of JSON an epoch, as they come."""
        if self.out is not None:
            self.out.mkdir(parents=True, exist_ok=True)
            with (self.out / HISTORY).open(mode, encoding="utf-8") as file:
                file.writelines(json.dumps(record.to_dict()) + "\n" for record in records)
