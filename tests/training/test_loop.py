"""The training loop: stops early, survives Ctrl-C, refuses a loss that is not finite."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from trelliswork.data import Sentence
from trelliswork.data.corpus import as_sentences, builtin_corpus
from trelliswork.errors import OutputError, TrellisworkError
from trelliswork.models import Tagger, TaggerConfig
from trelliswork.training import EpochRecord, Parts, TrainingConfig, make_progress, train, train_seeds
from trelliswork.training.failures import half_precision
from trelliswork.training.progress import BarProgress, LineProgress, Progress
from trelliswork.training.schedules import make_optimizer, make_schedule
from trelliswork.training.tensorboard import TensorBoardProgress

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
    out, shown = settings.pop("out", None), make_progress(False, on_epoch=settings.pop("on_epoch", None))
    config = TrainingConfig(**{"epochs": 6, "patience": 2, "batch_tokens": 4, "lr": 0.05, **settings})
    return train(toy, SENTENCES, dev, config, out=out, progress=shown)


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
        (
            {"optimizer": "lbfgs"},
            "optimizer must be one of adamw, adam, sgd, momentum, nesterov, adagrad, rmsprop; got 'lbfgs'",
        ),
        ({"objective": "mse"}, "objective must be one of likelihood, local, perceptron, margin, risk; got 'mse'"),
        ({"warmup": 1.0}, r"warmup must lie in \[0, 1\); got 1.0"),
        ({"max_sentence_length": 0}, "max_sentence_length must be at least 1, or None for no limit; got 0"),
        ({"checkpoint_every": -1.0}, "checkpoint_every must be at least 0; got -1.0"),
        ({"epochs": 0}, "epochs must be at least 1; got 0"),
        ({"lr": -1.0}, "lr must be above 0 and finite; got -1.0; leave it out for that of the optimizer"),
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


def test_accumulated_batches_make_the_same_step_as_one_batch() -> None:
    small, large = Toy(), Toy()
    run(small, dev=None, epochs=2, optimizer="momentum", batch_tokens=4, accumulate=100)
    run(large, dev=None, epochs=2, optimizer="momentum", batch_tokens=100)
    assert small.n_losses > large.n_losses == 2
    assert small.w.item() == pytest.approx(large.w.item())


@pytest.mark.parametrize("average", ["ema", "swa"])
def test_averaged_weights_are_evaluated_and_kept(average: Any) -> None:
    plain, toy = Toy(scores=[0.1, 0.2, 0.3, 0.4]), Toy(scores=[0.1, 0.2, 0.3, 0.4])
    run(plain, epochs=4)
    run(toy, epochs=4, average=average)
    assert toy.weights_at_evaluation[-1] > plain.weights_at_evaluation[-1], "an average lags behind on the way down"
    assert toy.w.item() == toy.weights_at_evaluation[-1]


def test_a_gradient_that_is_not_finite_stops_too(tmp_path: Path) -> None:
    class Steep(Toy):
        def loss(self, batch: Sequence[Sentence]) -> Tensor:
            return super().loss(batch) + (0 * self.w).sqrt()  # 0, with a slope of 0 times infinity

    toy = Steep()
    with pytest.raises(
        TrellisworkError,
        match=r"expected a finite gradient, got nan in epoch 1, batch 1 .*; no epoch was finished, so no",
    ):
        run(toy, out=tmp_path / "m", checkpoint_every=0)
    assert toy.w.item() == 3.0
    assert not (tmp_path / "m" / "checkpoint").exists() and not (tmp_path / "m" / "config.json").exists()


@pytest.mark.parametrize(
    ("error", "batch_tokens", "message"),
    [
        (
            MemoryError(),
            100,
            r"the longest of 4 tokens at toy.conll:7; lower batch_tokens \(now 100\), or set max_sent",
        ),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"), 4, "1 sentence, "),
    ],
)
def test_too_little_memory_names_the_longest_sentence(error: Exception, batch_tokens: int, message: str) -> None:
    class Large(Toy):
        def loss(self, batch: Sequence[Sentence]) -> Tensor:
            if max(map(len, batch)) == 4:
                raise error
            return super().loss(batch)

    with pytest.raises(TrellisworkError, match=message) as caught:
        run(Large(), dev=None, batch_tokens=batch_tokens)
    assert "set max_sentence_length below 4, or split the sentence" in str(caught.value)


def test_other_errors_pass_unchanged() -> None:
    class Broken(Toy):
        def loss(self, batch: Sequence[Sentence]) -> Tensor:
            raise RuntimeError("shapes do not fit")

    with pytest.raises(RuntimeError, match="shapes do not fit"):
        run(Broken())


def test_long_sentences_are_left_out_and_counted() -> None:
    stream, toy = io.StringIO(), Toy()
    config = TrainingConfig(epochs=1, max_sentence_length=2, batch_tokens=1)
    train(toy, SENTENCES, None, config, progress=LineProgress(stream))
    assert toy.n_losses == 2
    assert stream.getvalue().startswith("2 sentences over 2 tokens are left out\n")
    with pytest.raises(TrellisworkError, match=r"got none \(1 over max_sentence_length\)"):
        train(toy, SENTENCES[2:3], None, config, progress=Progress())


@pytest.mark.parametrize("dev", [[], [Sentence(())]])
def test_an_empty_dev_set_is_refused(dev: list[Sentence]) -> None:
    with pytest.raises(TrellisworkError, match="expected dev sentences to stop early on, got none; check the dev data"):
        run(Toy(), dev=dev)


def test_history_is_written_as_it_goes(tmp_path: Path) -> None:
    history, n_lines = tmp_path / "m" / "history.jsonl", []
    (tmp_path / "m").mkdir()
    history.write_text("of an older run\n")
    run(Toy(), dev=None, out=tmp_path / "m", on_epoch=lambda _: n_lines.append(len(history.read_text().splitlines())))
    assert n_lines == [1, 2, 3, 4, 5, 6]


def test_tensorboard_gets_loss_score_and_speed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points: list[tuple[str, float, int]] = []

    class SummaryWriter:
        def __init__(self, folder: str) -> None:
            assert folder == str(tmp_path)

        def add_scalar(self, name: str, value: float, step: int) -> None:
            points.append((name, value, step))

        def close(self) -> None:
            points.append(("closed", 0.0, 0))

    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", SimpleNamespace(SummaryWriter=SummaryWriter))
    stream = io.StringIO()
    config = TrainingConfig(epochs=2, batch_tokens=4)
    scores = Toy(scores=[0.5, 0.6])
    train(scores, SENTENCES, SENTENCES, config, progress=TensorBoardProgress(LineProgress(stream), tmp_path))
    assert len(stream.getvalue().splitlines()) == 2
    assert [step for name, _, step in points if name == "loss/so far"][-1] == 20
    assert [(value, step) for name, value, step in points if name == "dev/f1"] == [(0.5, 1), (0.6, 2)]
    assert points[-1][0] == "closed"
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(TrellisworkError, match=r'install it with pip install "trelliswork\[tensorboard\]"'):
        TensorBoardProgress(Progress(), tmp_path)


def test_several_seeds_have_a_mean_and_a_deviation(tmp_path: Path) -> None:
    dev = {4: [0.5, 0.7], 5: [0.9, 0.8], 6: [0.2, 0.5]}
    made: list[int] = []

    def make_model(seed: int) -> Toy:
        made.append(seed)
        return Toy(scores=[*dev[seed], 0.25])

    config = TrainingConfig(epochs=2, seed=4)
    parts = Parts(SENTENCES, SENTENCES, SENTENCES)
    result = train_seeds(make_model, parts, config, out=tmp_path, progress=Progress, seeds=3)
    assert made == [4, 5, 6]
    assert result.scores("dev") == [0.7, 0.9, 0.5] and result.scores("test") == [0.25] * 3
    assert (result.mean("dev"), result.deviation("dev")) == pytest.approx((0.7, 0.2))
    assert [row.best_epoch for row in result.rows] == [2, 1, 2]
    lines = result.table().splitlines()
    assert lines[0].split() == ["seed", "dev", "f1", "test", "f1", "best", "epoch", "seconds"]
    assert lines[-2].split() == ["mean", "70.00", "25.00"] and lines[-1].split() == ["+/-", "20.00", "0.00"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["seed-4", "seed-5", "seed-6"]
    with pytest.raises(TrellisworkError, match="expected one seed or more, all different; got 0"):
        train_seeds(make_model, Parts(SENTENCES), seeds=0)


def test_bf16_trains_the_network_in_half_precision_and_the_chain_in_full() -> None:
    sentences = as_sentences(builtin_corpus(sizes=(20, 1, 1))["train"])
    tagger = Tagger.from_data(sentences, TaggerConfig(word_dim=8, affix_dim=4, hidden=16))
    kinds = []
    tagger.scorer.register_forward_hook(lambda _, __, scores: kinds.append(scores.dtype))
    config = TrainingConfig(epochs=3, precision="bf16", batch_tokens=100, lr=0.01)
    history = train(tagger, sentences, None, config, progress=Progress()).history
    assert set(kinds) == {torch.bfloat16}
    assert {parameter.dtype for parameter in tagger.parameters()} == {torch.float32}
    assert history[-1].loss < 0.8 * history[0].loss


def test_a_processor_that_refuses_bf16_is_a_sentence() -> None:
    with pytest.raises(TrellisworkError, match="announces it and refuses; train with"), half_precision("cpu"):
        raise RuntimeError("could not create a primitive")
    with pytest.raises(RuntimeError, match="something else"), half_precision("cpu"):
        raise RuntimeError("something else")


class Watched(Toy):
    """Remembers the lengths in each batch."""

    def loss(self, batch: Sequence[Sentence]) -> Tensor:
        self.lengths = [*getattr(self, "lengths", []), {len(each) for each in batch}]
        return super().loss(batch)


def test_lengths_are_mixed_in_a_batch_if_few_sentences_are_sorted_together() -> None:
    """Batches of two: all of one length if all sentences are sorted, about half of them if pairs are."""
    sentences = [Sentence(("a",) * n, ("O",) * n) for n in (3, 4) for _ in range(20)]
    alike = {}
    for bucket in (100, 2):
        toy = Watched()
        train(toy, sentences, None, TrainingConfig(epochs=1, batch_tokens=8, bucket=bucket))
        alike[bucket] = sum(len(lengths) == 1 for lengths in toy.lengths) / len(toy.lengths)
    assert alike[100] == 1 and alike[2] < 0.9
