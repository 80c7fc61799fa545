"""--device: what networks compute on, and sentences about what does not exist or cannot be used."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from tests.cli.conftest import Cli
from trelliswork.data import Sentence
from trelliswork.errors import TrellisworkError
from trelliswork.models import FeatureTagger, LearningConfig, Tagger
from trelliswork.models.loading import place
from trelliswork.models.parsers.constituency.span_cky import SpanParser
from trelliswork.models.transducers.edit import EditTransducer
from trelliswork.runtime.devices import device_for

SENTENCES = [Sentence(("Ann", "sings"), ("B-X", "O")), Sentence(("Stop",), ("O",))]


class Network(nn.Linear):
    """A network that remembers where it was moved."""

    CPU_ONLY, moved = False, ""

    def to(self, device: str) -> Any:  # type: ignore[override]
        self.moved = device
        return self


def with_gpus(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: n > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: n)


def test_auto_is_a_gpu_or_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    with_gpus(monkeypatch, 0)
    assert device_for("auto") == device_for("cpu") == "cpu"
    with pytest.raises(TrellisworkError, match=r"--device cuda: torch .* finds no such device here; leave it out"):
        device_for("cuda")
    with_gpus(monkeypatch, 1)
    assert device_for("auto") == device_for("cuda") == "cuda" and device_for("cpu") == "cpu"
    assert device_for("auto", on_cpu_alone="SpanParser") == "cpu"
    with pytest.raises(TrellisworkError, match="--device cuda: a SpanParser computes on the CPU; leave it out"):
        device_for("cuda", on_cpu_alone="SpanParser")


def test_each_process_has_its_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    with_gpus(monkeypatch, 4)
    monkeypatch.setenv("LOCAL_RANK", "6")
    assert device_for("auto") == "cuda:2"


def test_mps_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with_gpus(monkeypatch, 0)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert (device_for("auto"), device_for("mps")) == ("cpu", "mps")


def test_networks_are_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    with_gpus(monkeypatch, 1)
    members = [Network(1, 1), Network(1, 1)]
    assert place(SimpleNamespace(taggers=members), "auto") == "cuda"
    assert [each.moved for each in members] == ["cuda", "cuda"]
    assert (Tagger.CPU_ONLY, SpanParser.CPU_ONLY, EditTransducer.CPU_ONLY) == (False, True, True)


def test_models_without_networks_stay(cli: Cli, tmp_path: Path) -> None:
    FeatureTagger.fit(SENTENCES, LearningConfig(max_iterations=2)).save(tmp_path / "crf")
    data = tmp_path / "data.conll"
    data.write_text("Ann B-X\nsings O\n\nStop O\n")
    wanted = "--device cuda is for networks, and a FeatureTagger computes on the CPU; leave it out"
    for command in ("evaluate", "predict", "explain"):
        answer = cli(command, tmp_path / "crf", data, "--device", "cuda")
        assert answer.status == 2 and wanted in answer.err, command
        assert cli(command, tmp_path / "crf", data, "--device", "cpu").status == 0
    many = cli("predict", tmp_path / "crf", tmp_path / "*.conll", "--out", tmp_path / "out", "--device", "cuda")
    assert many.status == 2 and "processes that share a model in memory compute on the CPU" in many.err
    assert cli("evaluate", tmp_path / "crf", data, "--device", "tpu").status == 2
