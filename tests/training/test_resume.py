"""A run that was killed goes on as if nothing had happened: the same weights, byte for byte."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from trelliswork.cli.main import run
from trelliswork.data import Sentence
from trelliswork.data.corpus import as_sentences, builtin_corpus, write_corpus
from trelliswork.errors import ModelError, OutputError, TrellisworkError
from trelliswork.models import Tagger, TaggerConfig
from trelliswork.training import TrainingConfig, train
from trelliswork.training.checkpoint import Checkpoint
from trelliswork.training.progress import Progress
from trelliswork.training.run import Run

TRAIN, DEV, _ = (as_sentences(part) for part in builtin_corpus(sizes=(24, 8, 1)).values())
NETWORK = TaggerConfig(word_dim=8, affix_dim=3, hidden=8, dropout=0.5, unknown_dropout=0.2)
EVERY_STEP: dict[str, Any] = dict(epochs=3, patience=3, batch_tokens=120, lr=0.02, checkpoint_every=0.0)


class Killed(BaseException):
    """Ends a run without any of its own endings, as a kill does."""


class Notes(Progress):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def start(out: Path, *, resume: bool = False, network: TaggerConfig = NETWORK, **settings: Any) -> Any:
    data = {"train": TRAIN, "dev": DEV} | {name: settings.pop(name) for name in ("train", "dev") if name in settings}
    tagger = Tagger.from_data(data["train"], network)
    config = TrainingConfig(**{**EVERY_STEP, **settings})
    shown = Notes()
    result = train(tagger, data["train"], data["dev"], config, out=out, resume=resume, progress=shown)
    return result, shown.notes


def weights(out: Path) -> bytes:
    return (out / "weights.safetensors").read_bytes()


@contextmanager
def killed_at(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, call: int, *, after: bool = False
) -> Iterator[None]:
    """Inside, the run is killed before (or after) the given call of a function."""
    own, n_calls = getattr(owner, name), 0

    def killing(*arguments: Any, **options: Any) -> Any:
        nonlocal n_calls
        n_calls += 1
        if n_calls == call and not after:
            raise Killed
        found = own(*arguments, **options)
        if n_calls == call:
            raise Killed
        return found

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, killing)
        with pytest.raises(Killed):
            yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "m"
    start(out)
    return out


def test_a_finished_run_leaves_no_checkpoint(whole: Path) -> None:
    assert sorted(path.name for path in whole.iterdir()) == [
        "MODEL_CARD.md", "config.json", "history.jsonl", "metrics.json", "weights.safetensors",
    ]  # fmt: skip


@pytest.mark.parametrize("batch", [1, 2, 4, 9])
def test_killed_at_a_batch(batch: int, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "m"
    with killed_at(monkeypatch, Tagger, "loss", batch):
        start(out)
    result, notes = start(out, resume=True)
    assert weights(out) == weights(whole)
    assert [record.epoch for record in result.history] == [1, 2, 3]
    assert bool(notes and notes[0].startswith("resumed in epoch")) == (batch > 1)
    assert len((out / "history.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("ema", dict(average="ema", ema_decay=0.9)),
        ("swa", dict(average="swa")),
        ("momentum", dict(optimizer="momentum", decay="inverse")),
        ("rmsprop", dict(optimizer="rmsprop", beta2=0.95)),
        ("groups", dict(layer_decay=2.6, unfreeze=True, decay="triangular")),
        ("steps", dict(accumulate=2, warmup=0.2, decay="cosine")),
        ("risk", dict(objective="risk")),
        ("lstm", dict(network=replace(NETWORK, encoder="lstm", layers=2, hidden_dropout=0.3, characters="cnn"))),
    ],
)
def test_every_kind_of_state_survives(
    name: str, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {**settings, "epochs": 3}
    start(tmp_path / "whole", **settings)
    method, call = ("scored", 8) if name == "risk" else ("loss", 8)
    with killed_at(monkeypatch, Tagger, method, call):
        start(tmp_path / "m", **settings)
    start(tmp_path / "m", resume=True, **settings)
    assert weights(tmp_path / "m") == weights(tmp_path / "whole")


@pytest.mark.parametrize("call", [1, 4, 5, 6])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("name", ["replace", "fsync"])
def test_killed_while_writing(
    name: str, call: int, after: bool, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "m"
    with killed_at(monkeypatch, os, name, call, after=after):
        start(out)
    start(out, resume=True)
    assert weights(out) == weights(whole)
    assert not Checkpoint(out).folder.exists()


def test_killed_more_than_once_and_at_the_very_end(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "m"
    with killed_at(monkeypatch, Tagger, "loss", 3):
        start(out)
    with killed_at(monkeypatch, Tagger, "evaluate", 1):
        start(out, resume=True)
    with killed_at(monkeypatch, Checkpoint, "clear", 1):
        start(out, resume=True)
    result, _ = start(out, resume=True)
    assert weights(out) == weights(whole)
    assert len(result.history) == 3


def test_ctrl_c_leaves_a_checkpoint_and_the_best_model(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, own, n_calls = tmp_path / "m", Tagger.loss, 0

    def interrupted(self: Tagger, batch: Any) -> Any:
        nonlocal n_calls
        n_calls += 1
        if n_calls == 7:
            os.kill(os.getpid(), signal.SIGINT)
        return own(self, batch)

    with monkeypatch.context() as patch:
        patch.setattr(Tagger, "loss", interrupted)
        result, notes = start(out, checkpoint_every=1000.0)
    assert result.interrupted and notes[-1].endswith("resume to go on")
    Tagger.load(out)
    start(out, resume=True)
    assert n_calls == 7, "the step that was interrupted was done to its end"
    assert weights(out) == weights(whole)


def shorter(sentences: list[Sentence]) -> list[Sentence]:
    return sentences[:-1]


def retagged(sentences: list[Sentence]) -> list[Sentence]:
    first = sentences[0]
    return [Sentence(first.words, ("O",) * len(first), first.features), *sentences[1:]]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (dict(lr=0.5), "lr was 0.02 and is 0.5"),
        (dict(epochs=9, seed=1), "epochs was 3 and is 9; seed was 0 and is 1"),
        (dict(network=TaggerConfig(hidden=9)), "hidden was 8 and is 9"),
        (dict(dev=shorter(DEV)), r"the dev data differs \(it had 8 sentences of .* and has 7 sentences of"),
        (dict(train=retagged(TRAIN)), r"the training data differs \(content\)"),
    ],
)
def test_a_run_is_not_resumed_with_other_settings_or_data(
    changed: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "m"
    with killed_at(monkeypatch, Tagger, "loss", 3):
        start(out)
    with pytest.raises(TrellisworkError, match=message):
        start(out, resume=True, **changed)
    assert Checkpoint(out).exists, "what was refused can still be resumed"


def test_a_damaged_checkpoint_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "m"
    with killed_at(monkeypatch, Tagger, "loss", 3):
        start(out)
    state = out / "checkpoint" / "state.safetensors"
    whole = state.read_bytes()
    state.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelError, match="missing or damaged file; train again without --resume"):
        start(out, resume=True)
    state.write_bytes(safetensors.torch.save({}, {"state": "{}"}))
    with pytest.raises(ModelError, match="written by another version"):
        start(out, resume=True)


@pytest.mark.parametrize("name", ["state.safetensors", "best-1.safetensors"])
def test_every_bit_of_a_checkpoint_counts(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "m"
    with killed_at(monkeypatch, Run, "_evaluate", 2):
        start(out)
    path = out / "checkpoint" / name
    whole = path.read_bytes()
    places = random.Random(0).sample(range(len(whole)), 8)
    for place in [*places, len(whole) - 1, whole.index(b"sha256")]:
        damaged = bytearray(whole)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(ModelError, match="missing or damaged file; train again without --resume"):
            start(out, resume=True)
    path.write_bytes(whole)
    start(out, resume=True)


def test_a_full_disk_is_a_sentence_and_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(tensors: Any, path: Path, header: Any) -> None:
        path.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(safetensors.torch, "save_file", full)
        with pytest.raises(OutputError, match="cannot be written: No space left on device; free space, then train"):
            start(tmp_path / "new", dev=None)
    assert list(tmp_path.iterdir()) == []
    checkpoint = Checkpoint(tmp_path / "old")
    checkpoint.write({}, {"best_epoch": 0})
    monkeypatch.setattr(safetensors.torch, "save_file", full)
    with pytest.raises(OutputError):
        checkpoint.write({}, {"best_epoch": 1})
    assert checkpoint.read() == ({}, {"best_epoch": 0})
    assert [path.name for path in checkpoint.folder.iterdir()] == ["state.safetensors"]


def test_tied_weights_and_parts_of_one_tensor_can_be_kept(tmp_path: Path) -> None:
    whole = torch.arange(6.0)
    tensors = {"whole": whole, "tied": whole, "part": whole[2:4], "turned": whole.reshape(2, 3).T}
    checkpoint = Checkpoint(tmp_path)
    checkpoint.write(tensors, {"best_epoch": 0, "text": "é"})
    found, values = checkpoint.read()
    assert values == {"best_epoch": 0, "text": "é"}
    for name, tensor in tensors.items():
        torch.testing.assert_close(found[name], tensor, rtol=0, atol=0)


# --- the command line, killed for real ---------------------------------------------------------------------------

COMMAND = "from trelliswork.cli.main import run; import sys; sys.exit(run(sys.argv[1:]))"
KILLED_WHILE_WRITING = """
import os, signal, safetensors.torch
own, n_calls = safetensors.torch.save_file, 0
def half(tensors, path, header):
    global n_calls
    n_calls += 1
    own(tensors, path, header)
    if n_calls == 3:
        os.truncate(path, os.path.getsize(path) // 2)
        os.kill(os.getpid(), signal.SIGKILL)
safetensors.torch.save_file = half
"""


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    data = tmp_path_factory.mktemp("data")
    write_corpus(builtin_corpus(sizes=(60, 10, 1)), data)
    settings = [
        "--model",
        "window",
        "--epochs",
        "8",
        "--patience",
        "8",
        "--batch-tokens",
        "60",
        "--hidden",
        "8",
        "--word-dim",
        "8",
        "--affix-dim",
        "4",
    ]
    files = [str(data / "train.conll"), "--dev", str(data / "dev.conll")]
    return ["train", *files, *settings, "--checkpoint-every", "0", "--quiet", "--out"]


def started(arguments: list[str], before: str = "") -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", before + COMMAND, *arguments], stdout=subprocess.DEVNULL)


def test_kill_9_of_a_real_run(command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole, out = tmp_path / "whole", tmp_path / "m"
    assert run([*command, str(whole)]) == 0
    process = started([*command, str(out)])
    while not Checkpoint(out).exists and process.poll() is None:
        time.sleep(0.002)
    time.sleep(random.random() * 0.1)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert run([*command, str(out)]) == 2
    assert "holds an unfinished run; add --resume to continue, or --force to start again" in capsys.readouterr().err
    assert started([*command, str(out), "--resume"], KILLED_WHILE_WRITING).wait(300) == -signal.SIGKILL
    assert run([*command, str(out), "--resume"]) == 0
    assert weights(out) == weights(whole)
    capsys.readouterr()
    assert run([*command, str(out), "--resume"]) == 2
    assert "its training is finished after 8 epochs, there is nothing to resume" in capsys.readouterr().err
