"""`warmup`: the kernels of structures, of models, and of everything."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
import torch

import trelliswork as tw
from tests.cli.conftest import Cli
from tests.conftest import RECORDER
from trelliswork import structures
from trelliswork.cli import compiling
from trelliswork.cli.messages import show_messages
from trelliswork.distributions.registry import KINDS, OF_STRUCTURE, STRUCTURES, exercise
from trelliswork.errors import TrellisworkError
from trelliswork.runtime import entries, warming
from trelliswork.runtime.entries import Entry, Use
from trelliswork.structures.record import Structure

SMALL = Entry("trelliswork.runtime.kernel_math", "highest", '["float64/1", "int64"]')


def use_layer() -> None:
    """Call what the layer of a chain asks for, in each number format of its scores."""
    tags = ["O", "B-X", "I-X"]
    crf = tw.nn.CRF.from_tags(tags, scheme="IOB2", batch_first=True)
    emissions = torch.zeros(2, 3, len(tags), requires_grad=True)
    mask = torch.tensor([[True, True, True], [True, True, False]])
    gold, pairs = torch.zeros(2, 3, dtype=torch.long), torch.zeros(2, 2, len(tags), len(tags), requires_grad=True)
    crf(emissions, gold, mask).backward()
    crf.distribution(emissions, mask, pair_scores=pairs).log_prob(gold).sum().backward()
    with torch.no_grad():
        crf.decode(emissions, mask)
        chain = crf.distribution(emissions, mask)
        chain.constrain(torch.full((2, 3), -100)).argmax  # noqa: B018, the query is what compiles
        chain.marginals  # noqa: B018
        chain.span_probabilities([[(0, 1, "X")], []], tags=tags, scheme="IOB2")
        chain.top_k(2)


@pytest.mark.parametrize("structure", STRUCTURES, ids=lambda structure: structure.name)
def test_the_list_has_what_a_structure_needs(structure: Structure) -> None:
    with RECORDER.needs(structure.name):
        exercise(structure)
        if structure.name == "chain":
            use_layer()


def test_every_structure_has_a_distribution_and_an_example() -> None:
    sources = Path(structures.__file__).parent.glob("*/*.py")
    records = [file for file in sources if "\nSTRUCTURE = " in file.read_text(encoding="utf-8")]
    assert len(OF_STRUCTURE) == len(KINDS) == len(records)


@pytest.fixture
def one_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of one kernel, which is not compiled."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    for module in (compiling, entries, warming):
        monkeypatch.setattr(module, "read_uses", lambda: {SMALL: Use(3.0, frozenset({"train crf", "chain"}))})


def test_what_is_asked_for_is_compiled(one_kernel: None) -> None:
    assert SMALL.state == "missing"
    assert tw.warmup("chain", n_processes=1) == 1
    assert SMALL.state == "cached"
    assert tw.warmup("chain", n_processes=1) == 0


@pytest.mark.parametrize("names", [["crf"], [], ["--all"]])
def test_the_command_says_what_it_does(one_kernel: None, cli: Cli, names: list[str]) -> None:
    status, out, err = cli("warmup", *names)
    assert (status, err) == (0, "")
    assert re.fullmatch(r"compiling 1 kernels, for about \d s\nkernels are compiled\n", out)
    assert SMALL.state == "cached"
    assert cli("warmup", *names).out == "kernels are compiled already; nothing to do\n"
    assert cli("warmup", *names, "--quiet").out == ""


def test_kernels_of_a_command_are_compiled_in_the_background(
    one_kernel: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compiling, "PATIENCE", 0.5)
    with show_messages():
        compiling.compile_in_background("train crf")
    assert re.fullmatch(r"compiling 1 kernels for this machine, once, for about \d s\n", capsys.readouterr().err)
    until = time.monotonic() + 60
    while SMALL.state == "missing":
        assert time.monotonic() < until
        time.sleep(0.05)
    with show_messages():
        compiling.compile_in_background("train crf")
        compiling.compile_in_background("predict crf")
    assert capsys.readouterr().err == "", "there is nothing to compile"


def test_unknown_names_get_a_proposal(cli: Cli) -> None:
    problem = "error: expected the name of a structure or a model, got 'chian'; did you mean chain?\n"
    assert cli("warmup", "chian") == (2, "", problem)
    with pytest.raises(TrellisworkError, match="got 'what'; known are automata, "):
        tw.warmup("what")
