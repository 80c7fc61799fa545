"""`tune`: what it tries, what it leaves behind, how it goes on, and the answers to what cannot be searched."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from trelliswork.cli.tune_folder import default_space
from trelliswork.models import Tagger
from trelliswork.models.catalogue import ENTRIES, by_title, recipe_of
from trelliswork.models.loading import tokeniser_in

NETWORKS = {each.name: each for each in by_title(ENTRIES.values())["Neural taggers"]}

pytest.importorskip("optuna", reason="the extra [tune] is not installed")

QUICK = ["--quiet", "--feature-columns", "none", "--epochs", "3", "--affix-dim", "3", "--batch-tokens", "100"]
WINDOW = ["--model", "window", *QUICK]
SPACE = """
[model]
affix_dim = 4
[space]
hidden = {low = 4, high = 16, log = true}
lr = {low = 0.001, high = 0.05, log = true}
prefix_lengths = [[], [2, 3]]
"""


@pytest.fixture
def small(data: Path, tmp_path: Path) -> Path:
    """Thirty sentences."""
    path = tmp_path / "small.conll"
    path.write_bytes((data / "dev.conll").read_bytes())
    return path


@pytest.fixture
def space(tmp_path: Path) -> Path:
    path = tmp_path / "space.toml"
    path.write_text(SPACE)
    return path


def ranks(table: str) -> list[list[str]]:
    """The rows of the table, without the seconds."""
    rows = [line.split() for line in table.split("\n\n")[0].splitlines()[1:]]
    return [row[:4] + row[5:] for row in rows]


def test_the_best_settings_train_the_best_model_again(cli: Cli, small: Path, space: Path, tmp_path: Path) -> None:
    out = tmp_path / "search"
    answer = cli("tune", small, "--config", space, "--trials", 4, "--out", out, *WINDOW)
    assert answer.status == 0, answer.err
    assert len(ranks(answer.out)) == 4 and f"model: {out / 'best'}" in answer.out
    assert sorted(path.name for path in out.iterdir()) == ["best", "best.toml", "study.log"]
    assert tokeniser_in(out / "best") is not None  # as `train` keeps one
    assert cli("train", out / "best.toml", "--quiet").status == 0
    weights = [(out / name / "weights.safetensors").read_bytes() for name in ("best", "trained")]
    assert weights[0] == weights[1]
    best, beside = (tomllib.loads(path.read_text()) for path in (out / "best.toml", out / "best" / "config.toml"))
    assert best["data"]["out"] == str(out / "trained") and beside["data"]["out"] == str(out / "best")
    assert best["model"] == beside["model"]
    assert best["model"]["affix_dim"] == 3, "an option goes before the file"
    rank, _, score, _, hidden, lr, prefixes = ranks(answer.out)[0]
    assert (rank, int(hidden)) == ("1", best["model"]["hidden"]) and float(lr) == float(f"{best['training']['lr']:.3g}")
    assert prefixes == (",".join(map(str, best["model"]["prefix_lengths"])) or "none")
    assert float(score) == pytest.approx(100 * Tagger.load(out / "best").metrics["dev"]["score"], abs=0.01)


def test_a_search_that_is_stopped_goes_on(
    cli: Cli, small: Path, space: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trelliswork.training import trials

    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    command = ["tune", small, "--config", space, *WINDOW, "--trials"]
    expected = cli(*command, 4, "--out", whole)
    real = trials.Attempt.report

    def interrupted(self: trials.Attempt, step: int, score: float | None) -> None:
        real(self, step, score)
        if (self.number, step) == (2, 2):
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(trials.Attempt, "report", interrupted)
        first = cli(*command, 3, "--out", stopped)
    assert first.status == 130 and "stopped" in ranks(first.out)[-1]
    assert (stopped / "trials" / "2" / "checkpoint").is_dir() and (stopped / "best" / "config.json").is_file()
    again = cli(*command, 4, "--out", stopped, "--resume")
    assert again.status == 0, again.err
    assert ranks(again.out) == ranks(expected.out)
    assert not (stopped / "trials").exists()
    weights = [(folder / "best" / "weights.safetensors").read_bytes() for folder in (whole, stopped)]
    assert weights[0] == weights[1]


def test_a_folder_that_holds_a_search(cli: Cli, small: Path, tmp_path: Path) -> None:
    command = ["tune", small, "--model", "hmm", "--quiet", "--out", tmp_path / "s", "--trials"]
    first = cli(*command, 3)
    assert first.status == 0 and "smoothing" in first.out, first.err
    assert "holds a search already; add --resume to continue, or --force" in cli(*command, 4).err
    assert len(ranks(cli(*command, 4, "--resume").out)) == 4
    refused = cli(*command, 5, "--resume", "--scheme", "plain")
    assert refused.status == 2 and "scheme was None and is 'plain'; give the same again" in refused.err
    assert len(ranks(cli(*command, 1, "--force").out)) == 1
    (tmp_path / "notes.txt").write_text("mine")
    refused = cli("tune", small, "--out", tmp_path)
    assert refused.status == 2 and "expected a search or an empty folder, got" in refused.err
    refused = cli("tune", small, "--out", small)
    assert refused.status == 2 and "expected a folder for the search, got a file" in refused.err


def test_models_over_features_are_searched_too(cli: Cli, small: Path, tmp_path: Path) -> None:
    out = tmp_path / "s"
    answer = cli("tune", small, "--model", "crf", "--c1", "0.1", "--trials", 2, "--out", out, "--max-iterations", "12")
    assert answer.status == 0, answer.err
    assert "c1" not in answer.out and "min_freq" in answer.out and "the best so far" in answer.err
    assert answer.err.count("trial ") == 2 and "c2              0.01 to 10, log" in answer.err
    assert ranks(answer.out)[0][4:] == ["1", "0"] or ranks(answer.out)[1][4:] == ["1", "0"], "the model's own"
    assert tokeniser_in(out / "best") is not None  # as `train` keeps one
    assert cli("train", out / "best.toml", "--quiet").status == 0
    weights = [(out / name / "weights.safetensors").read_bytes() for name in ("best", "trained")]
    assert weights[0] == weights[1]


def test_several_seeds_count_as_their_mean(cli: Cli, small: Path, tmp_path: Path) -> None:
    out = tmp_path / "s"
    command = [*WINDOW, "--hidden", "8", "--word-dim", "4", "--lr", "0.02", "--l2", "0", "--hidden-dropout", "0"]
    answer = cli("tune", small, *command, "--seeds", "2", "--trials", "1", "--out", out)
    assert answer.status == 0, answer.err
    scores = []
    for seed in (0, 1):
        assert cli("train", small, *command, "--seed", seed, "--out", tmp_path / str(seed)).status == 0
        scores.append(100 * Tagger.load(tmp_path / str(seed)).metrics["dev"]["score"])
    assert float(ranks(answer.out)[0][2]) == pytest.approx(sum(scores) / 2, abs=0.011)
    assert tomllib.loads((out / "best.toml").read_text())["training"]["seed"] == 0


@pytest.mark.parametrize("name", [*NETWORKS, "crf", "hucrf", "memm", "logistic", "hmm", "naive-bayes"])
def test_every_model_has_a_space_around_its_own_settings(name: str) -> None:
    features = {"algorithm": "lbfgs", "samples": 0, "hidden_units": 100, "c1": 0.0, "c2": 1.0, "min_freq": 0.0}
    options: dict[str, Any] = {"model": name} if name in NETWORKS else {"model": name, "smoothing": 0.1, **features}
    space = default_space(options)
    if name in NETWORKS:
        options = recipe_of(options).settings()
    assert all(choice.holds(options[key]) for key, choice in space.items())


@pytest.mark.parametrize("algorithm", ["sgd", "margin", "perceptron", "pa", "arow", "herding"])
def test_the_space_of_an_algorithm_has_only_what_it_takes(algorithm: str) -> None:
    space = default_space({"model": "crf", "algorithm": algorithm, "samples": 0})
    assert "c1" not in space and ("c2" in space) == (algorithm in ("sgd", "margin"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[space]\nhiden = [3]", "expected a setting of window to choose, got 'hiden'; did you mean hidden?"),
        ("[space]\nhidden = {low = 3, hihg = 4}", "got 'hihg'; did you mean high?"),
        ("[space]\nhidden = {low = 3}", "expected low and high for hidden"),
        ("[space]\nhidden = {low = 3.5, high = 4}", "expected a whole number for low of hidden, got 3.5"),
        ("[space]\nhidden = {low = 5, high = 4}", "hidden: expected low below high, got 5 and 4"),
        ("[space]\nhidden = 3", "expected a list of values or a range for hidden, got 3"),
        ("[space]\nencoder = {low = 1, high = 2}", "expected a list of values for encoder"),
        ("[space]\nencoder = ['lstm', 3]", "expected a text in quotes for encoder, got 3"),
        ("[space]\nencoder = []", "encoder: expected values to choose from, got none"),
        ("[space]\nseed = [1, 2]", "expected a setting of window to choose, got 'seed'"),
        ("space = 3", "expected settings to choose under [space], got 3"),
        ("[model]\nname = 'crf'\n[space]\nhidden = [3]", "got 'hidden', which bilstm-crf has"),
        ("[modell]\n", "did you mean model?"),
    ],
)
def test_a_bad_space_is_one_sentence(cli: Cli, small: Path, tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "c.toml"
    path.write_text(text)
    model = [] if "name" in text else ["--model", "window"]
    answer = cli("tune", small, "--config", path, "--out", tmp_path / "s", *model)
    assert answer.status == 2 and answer.err.count("\n") == 1
    assert sentence in answer.err
    assert not (tmp_path / "s").exists()


def test_what_is_given_is_not_chosen(cli: Cli, small: Path, space: Path, tmp_path: Path) -> None:
    answer = cli("tune", small, "--model", "hmm", "--smoothing", "1", "--out", tmp_path / "s")
    assert answer.status == 2 and "got all of smoothing as given; leave some out" in answer.err
    assert (
        "got [space]; search it with trelliswork tune"
        in cli("train", small, "--config", space, *WINDOW, "--out", "m").err
    )
    assert "a place to write to, --out" in cli("tune", small).err


def test_settings_that_cannot_be_trained_with_are_told(cli: Cli, small: Path, tmp_path: Path) -> None:
    path, loud = tmp_path / "c.toml", [option for option in WINDOW if option != "--quiet"]
    path.write_text("[space]\nheads = [4, 3, 5, 7]\n[model]\nencoder = 'transformer'\nhidden = 16\n")
    answer = cli("tune", small, "--config", path, "--out", tmp_path / "s", "--trials", "4", *loud)
    assert answer.status == 0, answer.err
    assert "failed (hidden must be a multiple of twice the heads" in answer.err
    assert ranks(answer.out)[0][4] == "4" and ranks(answer.out)[-1][-1] == "failed"


def test_a_longer_segment_keeps_more_sentences(cli: Cli, small: Path, tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("[space]\nmax_length = [2, 9]\n[model]\nname = 'bilstm-grsemicrf'\nhidden = 8\nsegment_dim = 4\n")
    answer = cli("tune", small, "--config", path, "--out", tmp_path / "s", "--trials", "3", *QUICK)
    assert answer.status == 0, answer.err
    best = tomllib.loads((tmp_path / "s" / "best.toml").read_text())
    assert cli("train", tmp_path / "s" / "best.toml", "--quiet").status == 0
    weights = [(tmp_path / "s" / name / "weights.safetensors").read_bytes() for name in ("best", "trained")]
    assert weights[0] == weights[1] and best["model"]["max_length"] in (2, 9)
