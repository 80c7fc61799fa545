"""Several processes train one model as a single process would with as many batches in a step."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.training.two_processes import trained
from trelliswork.cli.main import run
from trelliswork.data.corpus import builtin_corpus, write_corpus
from trelliswork.training.processes import Processes

ROOT = Path(__file__).parents[2]
N = 2


def together(arguments: list[str], **options: Any) -> list[subprocess.Popen[str]]:
    """The same program in two processes that know of each other, as torchrun starts them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    base = {**os.environ, "WORLD_SIZE": str(N), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1"}
    return [
        subprocess.Popen(
            [sys.executable, *arguments], env={**base, "RANK": str(rank)}, cwd=ROOT, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
        )
        for rank in range(N)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """The folder of all scenarios, and what each process says of them."""
    folder = tmp_path_factory.mktemp("processes")
    for process in together(["-m", "tests.training.two_processes", str(folder)]):
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    return folder, [json.loads((folder / f"{rank}.json").read_text(encoding="utf-8")) for rank in range(N)]


@pytest.fixture(scope="module")
def alone() -> dict[str, Any]:
    """One process with twice the batches in a step, dropout included."""
    return trained(accumulate=N)


def test_losses_are_those_of_one_process(shared: Any, alone: dict[str, Any]) -> None:
    losses = shared[1][0]["together"]["losses"]
    assert len(losses) == len(alone["losses"]) > 6
    assert losses == pytest.approx(alone["losses"], abs=1e-6)


def test_all_processes_hold_the_same_weights(shared: Any, alone: dict[str, Any]) -> None:
    first, second = (torch.tensor(found["together"]["weights"]) for found in shared[1])
    assert torch.equal(first, second)
    torch.testing.assert_close(first, torch.tensor(alone["weights"]), atol=1e-4, rtol=1e-4)


def test_scores_of_shared_evaluation_are_those_of_one_process(shared: Any, alone: dict[str, Any]) -> None:
    for found in shared[1]:
        assert found["together"]["scores"] == pytest.approx(alone["scores"], abs=1e-6)


def test_a_batch_that_fails_in_one_process_ends_all(shared: Any) -> None:
    first, second = (found["refused"] for found in shared[1])
    assert second == "batch 3 is broken"
    assert first == "process 1: batch 3 is broken"


def test_ctrl_c_in_one_process_ends_all_after_the_same_step(shared: Any) -> None:
    folder, found = shared
    assert [each["interrupted"]["interrupted"] for each in found] == [True, True]
    assert found[0]["interrupted"]["weights"] == found[1]["interrupted"]["weights"]
    assert (folder / "interrupted" / "checkpoint").is_dir()


def test_a_run_is_resumed_with_another_number_of_processes(shared: Any, alone: dict[str, Any]) -> None:
    folder, _ = shared
    resumed = trained(folder / "interrupted", resume=True)
    assert len(resumed["scores"]) == len(alone["scores"])
    assert not (folder / "interrupted" / "checkpoint").exists()


def test_one_process_writes(shared: Any) -> None:
    assert (shared[0] / "together" / "config.json").is_file()


def test_a_share_is_every_nth() -> None:
    assert [Processes(rank, 3).share([0, 1, 2, 3, 4]) for rank in range(3)] == [[0, 3], [1, 4], [2]]


def test_a_single_process_needs_no_other() -> None:
    weight = nn.Parameter(torch.ones(2))
    weight.grad = torch.tensor([1.0, 2.0])
    processes = Processes()
    processes.sum_gradients([weight])
    assert weight.grad.tolist() == [1.0, 2.0]
    assert processes.in_shares(lambda words: [len(word) for word in words], ["a", "bc"]) == [1, 2]
    assert processes.from_first(3) == 3 and not processes.any(False)


def test_the_command_line_in_two_processes(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    write_corpus(builtin_corpus(sizes=(60, 20, 1)), data)
    settings = ["--model", "window", "--epochs", "2", "--word-dim", "8", "--hidden", "8", "--feature-columns", "none"]
    arguments = ["train", str(data / "train.conll"), "--dev", str(data / "dev.conll"), *settings]
    both = together(["-m", "trelliswork", *arguments, "--out", str(tmp_path / "both")])
    first, second = (process.communicate(timeout=300) for process in both)
    assert [process.returncode for process in both] == [0, 0], first[1] + second[1]
    assert "epoch 2" in first[1] and "on the dev sentences" in first[0]
    assert second == ("", "")
    assert run(["evaluate", str(tmp_path / "both"), str(data / "dev.conll"), "--quiet"]) == 0


def test_several_seeds_need_a_single_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    (tmp_path / "some.conll").write_text("Ann B-X\n\nBob B-X\n", encoding="utf-8")
    assert run(["train", str(tmp_path / "some.conll"), "--seeds", "2", "--out", str(tmp_path / "x")]) == 2
    assert "--seeds needs a single process" in capsys.readouterr().err
