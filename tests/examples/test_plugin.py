"""The package of examples/plugin is installed and trained with; a package that is broken hurts nobody else."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from trelliswork.data import Sentence, read_conll
from trelliswork.data.corpus import builtin_corpus, write_corpus

PLUGIN = Path(__file__).parents[2] / "examples" / "plugin"
PROGRAM = """
import contextlib, io, json, sys
from trelliswork.cli.main import run
found = []
for command in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run(command)
    found.append([status, out.getvalue(), err.getvalue()])
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that pip has installed the package into, without network."""
    source, target = tmp_path_factory.mktemp("source") / "plugin", tmp_path_factory.mktemp("installed")
    shutil.copytree(PLUGIN, source)
    options = ["--quiet", "--no-build-isolation", "--no-deps", "--no-index", "--target", str(target)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(source)], check=True, timeout=120)
    return target


def run_all(commands: Sequence[Sequence[object]], *folders: Path) -> list[tuple[int, str, str]]:
    """Status, output and messages of commands, in one process that finds packages in these folders."""
    path = os.pathsep.join([*map(str, folders), os.environ.get("PYTHONPATH", "")])
    given = json.dumps([[str(each) for each in command] for command in commands])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, given], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.returncode == 0, done.stderr
    return [tuple(each) for each in json.loads(done.stdout)]


def slashed(sentences: Sequence[Sentence]) -> str:
    lines = [" ".join(f"{w}/{t}" for w, t in zip(each.words, each.tags or (), strict=True)) for each in sentences]
    return "".join(f"{line}\n" for line in lines)


def test_the_example_package_is_found_and_trained_with(installed: Path, tmp_path: Path) -> None:
    write_corpus(builtin_corpus(sizes=(40, 10, 10)), tmp_path)
    corpus = {name: list(read_conll(tmp_path / f"{name}.conll")) for name in ("train", "dev", "test")}
    for name, sentences in corpus.items():
        (tmp_path / f"{name}.slash").write_text(slashed(sentences), encoding="utf-8")
    bare = "".join(" ".join(each.words) + "\n" for each in corpus["test"])
    (tmp_path / "bare.slash").write_text(bare, encoding="utf-8")
    (tmp_path / "bad.slash").write_text("Ann/B-PER\nsings\n", encoding="utf-8")
    model, train = tmp_path / "model", ["train", tmp_path / "train.slash", "--dev", tmp_path / "dev.slash"]
    train += ["--model", "window", "--encoder", "mean", "--epochs", "2", "--word-dim", "8", "--affix-dim", "4"]
    found = run_all(
        [
            ["info"],
            ["train", "--model", "window", "--help"],
            ["predict", "--help"],
            [*train, "--hidden", "16", "--out", model],
            [*train, "--window", "3", "--out", tmp_path / "other"],
            ["predict", model, tmp_path / "bare.slash", "--out", tmp_path / "tagged.slash"],
            ["predict", model, tmp_path / "bare.slash", "--confidence"],
            ["evaluate", model, tmp_path / "test.slash"],
            ["evaluate", model, tmp_path / "bad.slash"],
            ["info", model],
            ["train", "--help"],
            ["train", tmp_path / "train.slash", "--model", "tiny", "--out", tmp_path / "tiny"],
            ["predict", tmp_path / "tiny", tmp_path / "bare.slash"],
        ],
        installed,
    )
    listed, train_help, predict_help, trained, refused, _, too_much, _, bad, described, models_help, tiny, _ = found
    assert [status for status, _, _ in found] == [0, 0, 0, 0, 2, 0, 2, 0, 2, 0, 0, 0, 0], found
    for kind, name in (("encoder", "mean"), ("format", "slash"), ("model", "tiny"), ("structure", "subset")):
        assert [kind, name, "trelliswork-example", "0.1.0"] in [line.split() for line in listed[1].splitlines()]
    assert "mean" in train_help[1] and "slash" in predict_help[1]
    assert "the format slash" in trained[2]
    assert "tiny" in models_help[1] and "of 3, " in tiny[1]
    assert "--window" in refused[2]  # the encoder does not read it
    assert "the format slash holds one tag for each word and no more; add --format jsonl" in too_much[2]
    assert "bad.slash:2: expected tokens such as Ann/B-PER" in bad[2]
    assert "encoder" in described[1] and "mean" in described[1]
    tagged = (tmp_path / "tagged.slash").read_text(encoding="utf-8").splitlines()
    assert [[token.rpartition("/")[0] for token in line.split()] for line in tagged] == [
        list(each.words) for each in corpus["test"]
    ]


def write_broken(folder: Path) -> None:
    """A package as pip would leave it, whose code cannot be imported."""
    about = folder / "broken_extras-2.5.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-extras\nVersion: 2.5\n", encoding="utf-8")
    groups = {
        "encoders": "gone = broken_extras:Gone",
        "formats": "odd = broken_extras:Odd",
        "models": "lost = broken_extras:LOST",
    }
    groups["structures"] = "chain = broken_extras:Chain\nloop = broken_extras:Loop"
    text = "\n".join(f"[trelliswork.{group}]\n{entries}\n" for group, entries in groups.items())
    (about / "entry_points.txt").write_text(text, encoding="utf-8")
    (folder / "broken_extras.py").write_text('raise RuntimeError("no such device")\n', encoding="utf-8")


def test_a_broken_package_is_named_and_hurts_nobody_else(tmp_path: Path) -> None:
    folder = tmp_path / "installed"
    folder.mkdir()
    write_broken(folder)
    write_corpus(builtin_corpus(sizes=(20, 10, 10)), tmp_path)
    shutil.copy(tmp_path / "train.conll", tmp_path / "train.odd")
    train = ["--model", "hmm", "--out", tmp_path / "model"]
    found = run_all(
        [
            ["train", tmp_path / "train.conll", *train],
            ["predict", tmp_path / "model", tmp_path / "train.conll"],
            ["train", "--model", "window", "--help"],
            ["info"],
            ["train", tmp_path / "train.odd", *train, "--force"],
            ["train", tmp_path / "train.conll", "--model", "window", "--encoder", "gone", "--out", tmp_path / "other"],
            ["train", tmp_path / "train.conll", "--model", "lost", "--out", tmp_path / "other"],
        ],
        folder,
    )
    assert [status for status, _, _ in found] == [0, 0, 0, 0, 2, 2, 2], found
    problem = "of the package broken-extras 2.5 cannot be imported: RuntimeError: no such device"
    fix = "update it with pip install -U broken-extras, or remove it with pip uninstall broken-extras"
    assert all(
        f"the {what} {problem}; {fix}" in found[3][1] for what in ("encoder 'gone'", "format 'odd'", "model 'lost'")
    )
    assert "expected a model, got 'lost'" in found[6][2] and f"the model 'lost' {problem}" in found[0][2]
    assert f"error: the format 'odd' {problem}; {fix}" in found[4][2]
    assert f"error: the encoder 'gone' {problem}; {fix}" in found[5][2]
    assert not (tmp_path / "other").exists() or not list((tmp_path / "other").glob("*.safetensors"))


def write_namesake(folder: Path) -> None:
    """A package whose format has the name of a built-in one."""
    about = folder / "namesake-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: namesake\nVersion: 1.0\n", encoding="utf-8")
    entries = "[trelliswork.formats]\nconll = namesake:Wrong\njsonl = namesake:Wrong\nown = namesake:Wrong\n"
    (about / "entry_points.txt").write_text(entries, encoding="utf-8")
    (folder / "namesake.py").write_text("class Wrong:\n    pass\n", encoding="utf-8")


def test_a_format_with_the_name_of_a_built_in_one_is_not_used(tmp_path: Path) -> None:
    write_namesake(tmp_path / "installed")
    write_corpus(builtin_corpus(sizes=(20, 10, 10)), tmp_path)
    train, test = tmp_path / "train.conll", tmp_path / "test.conll"
    commands: list[list[object]] = [
        ["train", train, "--model", "hmm", "--out", tmp_path / "model"],
        ["predict", tmp_path / "model", test, "--from", "conll"],
        ["evaluate", tmp_path / "model", test],
        ["check", train, test],
        ["info"],
    ]
    warning = "note: the format 'conll' of the package namesake is not used: a built-in format has this name; remove"
    for command in commands:  # each in a process of its own
        ((status, out, messages),) = run_all([command], tmp_path / "installed")
        assert status == 0, messages
        if command == ["info"]:
            assert "not used: the library has one of this name" in out
        else:
            assert messages.count(warning) == messages.count("'jsonl' of the package namesake") == 1


@pytest.fixture
def subset(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(PLUGIN))
    from trelliswork_example import subset

    return subset


@pytest.mark.parametrize("k", [0, 1, 2, 4])
def test_subsets_agree_with_enumeration(subset: Any, k: int) -> None:
    scores = torch.randn(2, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(k), requires_grad=True)
    with torch.no_grad():
        scores[1, 2] = -torch.inf if k < 4 else 0.0
    found = subset.Subset(scores, k)
    values = torch.tensor([[int(i in chosen) for i in range(4)] for chosen in itertools.combinations(range(4), k)])
    totals = torch.stack([torch.where(each.bool(), scores, 0.0).sum(-1) for each in values])  # [values, rows]
    log_z, shares = totals.logsumexp(0), totals.softmax(0)
    torch.testing.assert_close(found.log_partition, log_z)
    torch.testing.assert_close(found.log_prob(values[:, None].expand(-1, 2, -1)), totals - log_z)
    torch.testing.assert_close(found.marginals, torch.einsum("vr,vn->rn", shares, values.double()))
    assert found.count.tolist() == (totals > -torch.inf).sum(0).tolist()
    torch.testing.assert_close(found.score(found.argmax), totals.amax(0))
    n_best = int(found.count.min())
    torch.testing.assert_close(found.top_k(n_best)[1], totals.topk(n_best, 0)[0])
    entropy = -(shares * torch.where(shares > 0, shares.log(), 0.0)).sum(0)
    torch.testing.assert_close(found.entropy(), entropy)
    costs = torch.arange(8.0, dtype=torch.float64).reshape(2, 4)
    summed = torch.einsum("vn,rn->vr", values.double(), costs)
    mean, other = (shares * summed).sum(0), values[:, :1].double()
    torch.testing.assert_close(found.expected(costs), mean)
    torch.testing.assert_close(found.variance(costs), (shares * (summed - mean) ** 2).sum(0))
    first = torch.tensor([1.0, 0.0, 0.0, 0.0]).double().expand(2, 4)
    together = (shares * summed * other).sum(0) - mean * (shares * other).sum(0)
    torch.testing.assert_close(found.covariance(costs, first), together)
    if k:  # the empty set has no scores
        (gradient,) = torch.autograd.grad(found.log_partition.sum(), scores)
        torch.testing.assert_close(gradient, found.marginals)


def test_subsets_are_sampled_as_often_as_they_are_probable(subset: Any) -> None:
    found = subset.Subset(torch.tensor([[0.0, 1.0, -1.0]]), 2)
    drawn = found.sample((1000,), generator=torch.Generator().manual_seed(0))
    assert drawn.sum(-1).unique().tolist() == [2]
    torch.testing.assert_close(drawn.double().mean(0).float(), found.marginals, atol=0.06, rtol=0)
    with pytest.raises(ValueError, match="exactly 2 items"):
        found.log_prob(torch.tensor([[1, 0, 0]]))
