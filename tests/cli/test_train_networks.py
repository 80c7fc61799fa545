"""`train` with networks by name, with settings in a file, with vectors and with seeds; and the answers of each."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

from tests.cli.conftest import SMALL, Cli
from trelliswork.cli.config_file import config_text, read_config
from trelliswork.models import Segmenter, Tagger, load
from trelliswork.models.catalogue import ENTRIES, by_title, recipe_of

NETWORKS = {each.name: each for each in by_title(ENTRIES.values())["Neural taggers"]}

QUICK = ["--epochs", "1", "--quiet", "--feature-columns", "none", *SMALL]
WINDOW = ["--model", "window", *QUICK]
WINDOW_FILE = "[model]\nname = 'window'\n"


@pytest.fixture
def small(data: Path, tmp_path: Path) -> Path:
    """Thirty sentences."""
    path = tmp_path / "small.conll"
    path.write_bytes((data / "dev.conll").read_bytes())
    return path


@pytest.mark.parametrize("name", NETWORKS)
def test_presets_are_settings_that_exist(name: str) -> None:
    plan: Any = recipe_of({"model": name, "hidden": 7, "epochs": 3})
    assert plan.kind.__name__ == NETWORKS[name].kind
    assert (plan.network.hidden, plan.training.epochs) == (7, 3)
    expected = {**NETWORKS[name].values, "hidden": 7}
    assert {key: getattr(plan.network, key) for key in expected} == expected


def test_a_segmenter_is_trained_tagged_evaluated_and_shown(cli: Cli, small: Path, tmp_path: Path) -> None:
    out = tmp_path / "m"
    trained = cli("train", small, "--model", "bilstm-grsemicrf", "--max-length", 2, "--out", out, *QUICK)
    assert trained.status == 0, trained.err
    assert "with spans of more than 2 tokens left out; --max-length" in trained.err
    assert isinstance(load(out), Segmenter)
    tagged = cli("tag", out, small, "--confidence", "--top-k", "2", "--format", "jsonl")
    assert tagged.status == 0 and '"analyses"' in tagged.out
    assert "precision" in cli("evaluate", out, small).out
    shown = cli("info", out)
    assert shown.status == 0 and "an LSTM from both ends under a semi-Markov CRF" in shown.out
    assert cli("info", out, "--json").status == 0


def test_the_resolved_settings_make_the_same_model_again(cli: Cli, small: Path, tmp_path: Path) -> None:
    first, again, other = (tmp_path / name for name in ("first", "again", "other"))
    command = ["train", small, "--model", "bilstm-crf", "--seed", "3", "--lr", "0.00123", "--out", first, *QUICK]
    assert cli(*command).status == 0
    assert cli("train", first / "config.toml", "--out", again, "--quiet").status == 0
    assert cli("train", "--config", first / "config.toml", "--out", other, "--quiet", "--hidden", "8").status == 0
    weights = [(folder / "weights.safetensors").read_bytes() for folder in (first, again)]
    assert weights[0] == weights[1]
    settings = [tomllib.loads((folder / "config.toml").read_text()) for folder in (first, again, other)]
    assert settings[1] == {**settings[0], "data": {**settings[0]["data"], "out": str(again)}}
    assert settings[0]["training"]["lr"] == 0.00123 and settings[2]["model"]["hidden"] == 8


def test_models_over_features_have_settings_too(cli: Cli, small: Path, tmp_path: Path) -> None:
    first, again = tmp_path / "first", tmp_path / "again"
    command = ["train", small, "--model", "memm", "--c2", "0.5", "--max-iterations", "5", "--out", first, "--quiet"]
    assert cli(*command).status == 0
    assert cli("train", first / "config.toml", "--out", again, "--quiet").status == 0
    assert 'name = "memm"' in (again / "config.toml").read_text()
    weights = [load_file(folder / "weights.safetensors")["weights"].tolist() for folder in (first, again)]
    assert weights[0] == weights[1]


def test_settings_survive_the_file(tmp_path: Path) -> None:
    settings = {"model": "window", "train": 'a "b"\\c\td.conll', "lr": 1e-5, "constrained": False, "hidden": 3}
    settings |= {"feature_columns": (2, 3), "prefix_lengths": ()}
    (tmp_path / "c.toml").write_text(config_text({**settings, "dev": None}))
    assert read_config(str(tmp_path / "c.toml"), "window") == settings


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            f"{WINDOW_FILE}hiden = 3",
            "c.toml:3: expected a setting of [model] for window, got 'hiden'; did you mean",
        ),
        ("[modell]\nhidden = 3", "c.toml:1: expected a section, got 'modell'; did you mean model?"),
        ('[model]\nname = "crf"\nhidden = 3', "for crf, got 'hidden', which bilstm-crf has"),
        (f"{WINDOW_FILE}[training]\nepochs = 2.5", "expected a whole number for epochs, got 2.5"),
        ("[data]\ntrain = 3", "expected a text in quotes for train, got 3"),
        ("[model]\n\nhidden = \n", "c.toml:3:10: expected TOML, got something else (invalid value)"),
        (
            "[model]\nhidden = 3\nhidden = 4",
            "c.toml:3:11: expected TOML, got something else (cannot overwrite a value)",
        ),
        ("[model\n", "c.toml:1:7: expected TOML"),
        ("model = 3", "c.toml:1: expected settings under a section, got model = 3 outside of all"),
        (
            "hidden = 3",
            "c.toml:1: expected settings under a section, got hidden = 3 outside of all; put it under [model]",
        ),
        (f'{WINDOW_FILE}[data]\ntrain = "{__file__}"\n[training]\nlr = nan', "lr must be a finite number; got nan"),
        ("[training]\n\nthreads = 0", "c.toml:3: expected 1 to 1024 threads, got 0"),
        (
            f"{WINDOW_FILE}[training]\nseed = {10**30}",
            "expected a whole number of at most 64 bits for seed",
        ),
        ('[model]\nname = "bilstm"', "expected a model, got 'bilstm'; did you mean bilstm-crf?"),
    ],
)
def test_bad_settings_are_one_sentence(cli: Cli, tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "c.toml"
    path.write_text(text)
    answer = cli("train", path, "--out", tmp_path / "m")
    assert answer.status == 2 and answer.err.count("\n") == 1
    assert sentence in answer.err


def test_what_is_missing_is_told(cli: Cli, tmp_path: Path) -> None:
    assert "expected a tagged file to train on" in cli("train", "--out", tmp_path / "m").err
    assert "--out, got none" in cli("train", "x.conll").err
    assert "no such file" in cli("train", tmp_path / "no.toml", "--out", tmp_path / "m").err
    assert "expected one file of settings" in cli("train", "a.toml", "--config", "b.toml").err


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ("the 1 2 3\nin 1 2\n", "vectors.txt:2: expected a word and 3 numbers, got 2 values"),
        ("qqqq 1 2 3\n", "got none of them; give vectors of its language"),
        ("the 1 2\n", "expected vectors of 3 numbers, as vector_dim says, got 2"),
        ("", "expected word vectors"),
    ],
)
def test_bad_vectors_are_one_sentence(cli: Cli, small: Path, tmp_path: Path, lines: str, sentence: str) -> None:
    vectors, settings = tmp_path / "vectors.txt", tmp_path / "c.toml"
    vectors.write_text(lines)
    settings.write_text("[model]\nvector_dim = 3\n")
    answer = cli("train", small, "--config", settings, "--vectors", vectors, "--out", tmp_path / "m", *WINDOW)
    assert answer.status == 2 and sentence in answer.err
    assert not (tmp_path / "m").exists()


def test_vectors_are_read_and_their_coverage_told(cli: Cli, small: Path, tmp_path: Path) -> None:
    vectors = tmp_path / "vectors.txt"
    vectors.write_text(". 1 2 3\nthe 0 1 0\n")
    loud = [each for each in WINDOW if each != "--quiet"]
    answer = cli("train", small, "--vectors", vectors, "--out", tmp_path / "m", *loud)
    assert answer.status == 0 and "2 vectors of 3 numbers, for " in answer.err
    assert Tagger.load(tmp_path / "m").config.vector_dim == 3


def test_an_empty_dev_file_is_refused(cli: Cli, small: Path, tmp_path: Path) -> None:
    (tmp_path / "dev.conll").write_text("")
    answer = cli("train", small, "--dev", tmp_path / "dev.conll", "--out", tmp_path / "m", *WINDOW)
    assert answer.status == 2 and answer.err.startswith(f"error: {tmp_path / 'dev.conll'}")


def test_seeds_print_mean_and_deviation(cli: Cli, small: Path, tmp_path: Path) -> None:
    out = tmp_path / "several"
    answer = cli("train", small, "--seeds", "2", "--out", out, *WINDOW)
    assert answer.status == 0, answer.err
    assert "mean" in answer.out and "+/-" in answer.out
    assert tomllib.loads((out / "seed-1" / "config.toml").read_text())["training"]["seed"] == 1
    assert Tagger.load(out / "seed-0").n_parameters > 0
    assert "holds a model already" in cli("train", small, "--seeds", "2", "--out", out, *WINDOW).err


def test_tensorboard_reads_what_is_written(cli: Cli, small: Path, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="the extra [tensorboard] is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    runs = tmp_path / "runs"
    command = ["train", small, "--seeds", "2", "--out", tmp_path / "m", "--tensorboard", runs, *WINDOW]
    assert cli(*command).status == 0
    for seed in (0, 1):
        read = EventAccumulator(str(runs / f"seed-{seed}")).Reload()
        (score,) = read.Scalars("dev/f1")
        assert score.value == pytest.approx(Tagger.load(tmp_path / "m" / f"seed-{seed}").metrics["dev"]["score"])
        assert score.step == 1 and read.Scalars("loss/so far")[-1].step > 100
    assert cli(*command, "--resume").status == 0
    assert len(list((runs / "seed-0").iterdir())) == 1, "nothing for a seed that is finished"


def test_tensorboard_where_it_cannot_be(cli: Cli, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["train", small, "--out", tmp_path / "m", "--tensorboard", tmp_path / "runs"]
    assert "--tensorboard is for networks" in cli(*command, "--model", "crf").err
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    answer = cli(*command, *WINDOW)
    assert answer.status == 2 and 'pip install "trelliswork[tensorboard]"' in answer.err
    assert not (tmp_path / "m").exists() and not (tmp_path / "runs").exists()
    assert "--tensorboard" in cli("train", "--help-all").out


def test_every_span_too_long_is_refused(cli: Cli, tmp_path: Path) -> None:
    train = tmp_path / "t.conll"
    train.write_text("Ann B-PER\nLee I-PER\n\n" * 4)
    answer = cli("train", train, "--model", "grsemicrf", "--max-length", "1", "--out", tmp_path / "m")
    assert answer.status == 2 and "add --max-length 2" in answer.err


def test_words_and_text_are_tagged_like_sentences(model: Path) -> None:
    from trelliswork.data import Sentence
    from trelliswork.errors import TrellisworkError

    tagger = Tagger.from_pretrained(model)
    text = "Jordan visited Paris ."
    (expected,) = tagger.tag([Sentence(tuple(text.split()))])
    assert tagger.tag(text) == tagger.tag(text.split()) == tagger.tag(Sentence(tuple(text.split()))) == expected
    assert tagger.tag("") == [] and tagger.tag([]) == []
    with pytest.raises(TrellisworkError, match="got a mixture"):
        tagger.tag(["Ann", Sentence(("Bob",))])  # type: ignore[list-item]


def test_a_model_of_a_newer_version_is_refused(cli: Cli, model: Path, tmp_path: Path) -> None:
    import json
    import shutil

    shutil.copytree(model, tmp_path / "newer")
    stored = json.loads((tmp_path / "newer" / "config.json").read_text()) | {"format_version": 99}
    (tmp_path / "newer" / "config.json").write_text(json.dumps(stored | {"kind": "OracleOfTomorrow"}))
    answer = cli("info", tmp_path / "newer")
    assert answer.status == 2 and "upgrade trelliswork" in answer.err
