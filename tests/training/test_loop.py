"""The training loop: stops early, survives Ctrl-C, refuses a loss that is not finite."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from trelliswork.data import Sentence
from trelliswork.errors import OutputError, TrellisworkError
from trelliswork.training import EpochRecord, TrainingConfig, train
from trelliswork.training.optimizers import make_optimizer
from trelliswork.training.progress import BarProgress, LineProgress, Progress
from trelliswork.training.schedules import make_schedule

SENTENCES = [Sentence(("a",) * n, ("O",) * n, file="toy.conll", line=line) for line, n in enumerate((1, 2, 3, 4), 4)]


class Toy(nn.Module):
    """Minimizes (w - 1)^2 per token; its dev scores are dictated, and each saved weight is remembered."""

    def __init__(self, scores: Sequence[float] = (), losses: Mapping[int, float] | None = None):
        super().__init__()
        self.w = nn.Parameter(torch.tensor(3.0))
        self.scores, self.losses = list(scores), dict(losses or {})
        self.metrics: dict[str, Any] = {}
        self.n_losses = 0
        self.weights_at_evaluation: list[float] = []
        self.saved: list[float] = []

    def encode(self, sentences: Sequence[Sentence], *, with_tags: bool = False) -> list[Sentence]:
        assert with_tags
        return list(sentences)

    def loss(self, batch: Sequence[Sentence]) -> Tensor:
        self.n_losses += 1
        forced = self.losses.get(self.n_losses)
        return (self.w - 1) ** 2 * sum(map(len, batch)) if forced is None else self.w * forced

    def evaluate(self, sentences: Sequence[Sentence]) -> dict[str, Any]:
        self.weights_at_evaluation.append(self.w.item())
        return {"score": self.scores[len(self.weights_at_evaluation) - 1], "metric": "f1"}

    def check_output(self, directory: str | Path) -> None:
        if Path(directory).is_file():
            raise OutputError("a file in the way")

    def save(self, directory: str | Path, *, extra: Mapping[str, str] | None = None) -> None:
        self.saved.append(self.w.item())
        Path(directory).mkdir(exist_ok=True)
        for name, text in (extra or {}).items():
            (Path(directory) / name).write_text(text)


def run(toy: Toy, dev: list[Sentence] | None = SENTENCES, **settings: Any) -> Any:
    extra = {name: settings.pop(name) for name in ("out", "on_epoch") if name in settings}
    config = TrainingConfig(**{"epochs": 6, "patience": 2, "batch_tokens": 4, "lr": 0.05, **settings})
    return train(toy, SENTENCES, dev, config, progress=Progress(), **extra)


def test_stops_after_patience_and_keeps_the_best_weights() -> None:
    toy = Toy(scores=[0.2, 0.7, 0.6, 0.7, 0.9, 0.9])
    result = run(toy)
    assert (len(result.history), result.best_epoch, result.best_score) == (4, 2, 0.7)
    assert toy.w.item() == toy.weights_at_evaluation[1] != toy.weights_at_evaluation[-1]
    assert not toy.training
    assert "no better dev f1 for 2 epochs" in result.note


def test_runs_to_the_end_while_scores_rise() -> None:
    result = run(Toy(scores=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]))
    assert (len(result.history), result.best_epoch, result.note) == (6, 6, "")


def test_without_dev_data_the_last_epoch_is_kept() -> None:
    toy = Toy()
    result = run(toy, dev=None)
    assert (result.best_epoch, result.best_score) == (6, None)
    assert abs(toy.w.item() - 1) < 2
    assert result.history[0].loss > result.history[-1].loss


def test_ctrl_c_saves_the_best_so_far(tmp_path: Path) -> None:
    def interrupt(record: EpochRecord) -> None:
        if record.epoch == 3:
            raise KeyboardInterrupt

    toy = Toy(scores=[0.2, 0.7, 0.6])
    result = run(toy, out=tmp_path / "m", on_epoch=interrupt)
    assert result.interrupted
    assert result.note == f"interrupted: the best model (epoch 2) is saved in {tmp_path / 'm'}; resume to go on"
    assert toy.w.item() == toy.saved[-1] == toy.weights_at_evaluation[1]
    lines = (tmp_path / "m" / "history.jsonl").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == [1, 2, 3]


def test_ctrl_c_in_the_first_epoch_still_ends_cleanly(tmp_path: Path) -> None:
    class Impatient(Toy):
        def loss(self, batch: Sequence[Sentence]) -> Tensor:
            if self.n_losses == 2:
                raise KeyboardInterrupt
            return super().loss(batch)

    toy = Impatient()
    result = run(toy, out=tmp_path / "m")
    assert result.interrupted
    assert result.history == []
    assert len(toy.saved) == 1
    assert "the model as it stood" in result.note


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_bad_loss_stops_with_a_sentence_and_leaves_the_weights_finite(bad: float, tmp_path: Path) -> None:
    n_batches = 3
    toy = Toy(scores=[0.5, 0.6], losses={n_batches + 2: bad})
    with pytest.raises(TrellisworkError) as caught:
        run(toy, out=tmp_path / "m")
    assert str(caught.value) == (
        f"expected a finite loss, got {bad} in epoch 2, batch 2 (2 sentences of up to 2 tokens, the first "
        "at toy.conll:4); lower the learning rate (now 0.05) or clip harder; "
        f"the best model, of epoch 1, is in {tmp_path / 'm'}"
    )
    assert toy.w.item() == toy.saved[-1] == toy.weights_at_evaluation[0]


def test_an_output_that_cannot_be_written_is_refused_before_training(tmp_path: Path) -> None:
    (tmp_path / "m").write_text("")
    toy = Toy()
    with pytest.raises(OutputError, match="a file in the way"):
        run(toy, out=tmp_path / "m")
    assert toy.n_losses == 0


def test_nothing_to_train_on() -> None:
    with pytest.raises(TrellisworkError, match="expected sentences to train on, got none"):
        train(Toy(), [Sentence(())], None, progress=Progress())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"optimizer": "lbfgs"}, "optimizer must be one of adamw, adam, sgd, momentum; got 'lbfgs'"),
        ({"objective": "mse"}, "objective must be one of likelihood, local, perceptron, margin, risk; got 'mse'"),
        ({"warmup": 1.0}, r"warmup must lie in \[0, 1\); got 1.0"),
        ({"max_sentence_length": 0}, "max_sentence_length must be at least 1, or None for no limit; got 0"),
        ({"checkpoint_every": -1.0}, "decay_rate and checkpoint_every must not be negative"),
        ({"epochs": 0}, "epochs must be at least 1; got 0"),
        ({"lr": -1.0}, "lr and clip must be positive"),
    ],
)
def test_bad_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(TrellisworkError, match=message):
        TrainingConfig(**settings)


def test_sgd_divides_the_rate_by_the_fan_in_and_decay_reaches_zero() -> None:
    network = nn.Sequential(nn.Embedding(9, 5), nn.Linear(5, 2))
    config = TrainingConfig(optimizer="sgd", lr=1.0)
    optimizer = make_optimizer(network, config)
    schedule = make_schedule(optimizer, config, n_steps=4)
    rates = []
    for _ in range(5):
        rates.append([group["lr"] for group in optimizer.param_groups])
        optimizer.step()
        schedule.step()
    assert rates[0] == pytest.approx([1.0, 0.2])
    assert rates[2] == pytest.approx([0.5, 0.1])
    assert rates[4] == pytest.approx([0.0, 0.0])


def test_l2_pulls_towards_zero() -> None:
    free, held = Toy(), Toy()
    run(free, dev=None, optimizer="sgd", lr=0.3, epochs=30, decay="constant")
    run(held, dev=None, optimizer="sgd", lr=0.3, epochs=30, decay="constant", l2=2.0)
    assert free.w.item() == pytest.approx(1.0, abs=1e-3)
    assert held.w.item() == pytest.approx(0.5, abs=1e-3)  # 2 (w - 1) + 2 w = 0


def test_plain_lines_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    train(Toy(), SENTENCES, None, TrainingConfig(epochs=2), progress=LineProgress(stream))
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("epoch 1: loss ")
    assert "tokens/s" in lines[0]


def test_the_bar_takes_the_same_calls() -> None:
    train(Toy(scores=[0.5, 0.6]), SENTENCES, SENTENCES, TrainingConfig(epochs=2), progress=BarProgress())
