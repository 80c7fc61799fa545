"""The model that `train` takes when none is named, and what it says about it."""

from __future__ import annotations

import tomllib
from itertools import islice
from pathlib import Path

import pytest

from tests.cli.conftest import SMALL, Cli
from tests.cli.treebanks import conllu, patterns
from trelliswork.cli.choosing import chosen_model

TAGGED = "Ann\tB-PER\nsings\tO\n\nBob\tB-PER\nsings\tO\n"
POS = "the\tDT\ndog\tNN\nbarks\tVBZ\n\nthe\tDT\ncat\tNN\n"
CONLLU = "1\tShe\t_\tPRON\t_\t_\t2\tnsubj\t_\t_\n2\tsings\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n"
FILES = {
    "tags.conll": (TAGGED, "crf"),
    "tags.tsv": (TAGGED, "crf"),
    "spaces.txt": (TAGGED.replace("\t", " "), "crf"),
    "pos.tsv": (POS, "crf"),
    "one-sentence.tsv": ("Ann\tB-PER\nlives\tO\nin\tO\nParis\tB-LOC\n", "crf"),
    "many-in-one.tsv": ("the\tDT\ndog\tNN\n" * 20, "crf"),
    "tags.csv": ("word,tag\nAnn,B-PER\n", "crf"),
    "spans.jsonl": ('{"text": "Ann sings", "spans": [{"start": 0, "end": 3, "label": "PER"}]}\n', "crf"),
    "tokens.json": ('[\n{"tokens": ["Ann"], "tags": ["B-PER"]}\n]\n', "crf"),
    "attributes.crfsuite": ("B-PER\tw=Ann\nO\tw=sings\n", "crf"),
    "heads.conllu": (CONLLU, "biaffine"),
    "no-heads.conllu": (CONLLU.replace("2\tnsubj", "_\t_").replace("0\troot", "_\t_"), "crf"),
    "trees.mrg": ("(S (NP (PRP She)) (VP (VBZ sings)))\n", "span-cky"),
    "phones.tsv": ("cat\tK AE T\ndog\tD AO G\nbird\tB ER D\n", "edit"),
    "names.txt": ("آرثر\tarthur\nآسينسيو\tasensio\nآبيلارد\tabelard\n", "edit"),
    "phones-both.tsv": ("k a t\tK AE T\nd o g\tD AO G\nb i r d\tB ER D\n", "edit"),
    "translation.tsv": ("a man is asleep\tein mann schläft fest\ntwo dogs ran off\tzwei hunde sind weg\n", "seq2seq"),
    "events.jsonl": ('{"tokens": ["Ann", "left"], "tags": ["B-PER", "O"], "events": []}\n', "joint-events"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_the_data_choose_the_model(tmp_path: Path, name: str) -> None:
    text, model = FILES[name]
    (tmp_path / name).write_text(text, encoding="utf-8")
    chosen, why = chosen_model({"train": str(tmp_path / name), "out": str(tmp_path / "m")})
    assert chosen == model and why.startswith(f"model: {model} (") and "--model NAME" in why


@pytest.mark.parametrize("option", ["vectors", "pretrained"])
def test_vectors_choose_a_network(tmp_path: Path, option: str) -> None:
    for name, model in (("tags.conll", "bilstm-crf"), ("heads.conllu", "biaffine"), ("trees.mrg", "span-cky")):
        (tmp_path / name).write_text(FILES[name][0], encoding="utf-8")
        chosen, why = chosen_model({"train": str(tmp_path / name), option: "glove.txt"})
        assert chosen == model and (model != "bilstm-crf" or f"--{option}" in why)


def test_a_column_of_tags_asks_for_a_tagger(tmp_path: Path) -> None:
    (tmp_path / "t.conllu").write_text(CONLLU, encoding="utf-8")
    assert chosen_model({"train": str(tmp_path / "t.conllu"), "tag_column": "UPOS"})[0] == "crf"


def test_train_says_which_and_why(cli: Cli, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "m"
    answer = cli("train", data / "dev.conll", "--max-iterations", 3, "--out", out)
    said = [line for line in answer.err.splitlines() if line.startswith("model: ")]
    assert answer.status == 0, answer.err
    assert said == [
        "model: crf (linear-chain CRF over sparse features), the default for tagged words; --model NAME chooses another"
    ]
    assert tomllib.loads((out / "config.toml").read_text())["model"]["name"] == "crf"
    named = cli("train", data / "dev.conll", "--model", "hmm", "--out", tmp_path / "h").err
    assert "the default for" not in named, "whoever names a model knows"
    again = cli("train", out / "config.toml", "--out", tmp_path / "again")
    assert again.status == 0 and "the default for" not in again.err


def test_train_with_vectors_is_a_network(cli: Cli, data: Path, tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text(". 1 2 3\nthe 0 1 0\n", encoding="utf-8")
    options = ["--vectors", tmp_path / "v.txt", "--epochs", 1, *SMALL, "--out", tmp_path / "m"]
    answer = cli("train", data / "dev.conll", *options)
    assert answer.status == 0 and "model: bilstm-crf (BiLSTM" in answer.err and "words and --vectors;" in answer.err
    settings = tomllib.loads((tmp_path / "m" / "config.toml").read_text())
    assert settings["model"]["name"] == "bilstm-crf" and settings["model"]["encoder"] == "lstm"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--hidden", "50"], "--hidden is not used by crf, the default for this data; leave it out, or add"),
        (["--hidden", "50"], "add --model bilstm-crf or one of window, bilstm-crf, "),
        (["--max-length", "3"], "leave it out, or add --model grsemicrf or one of"),
        (["--smoothing", "1"], "leave it out, or add --model hmm or one of"),
        (["--raw", "TRAIN"], "leave it out, or add --model tokeniser or one of tokeniser"),
        (["--seeds", "3"], "leave it out, or choose one, such as --model bilstm-crf"),
        (["--resume"], "leave it out, or choose one, such as --model bilstm-crf"),
        (["--tasks", "a,b"], "--tasks needs --model multi-task"),
    ],
)  # fmt: skip
def test_an_option_of_other_models_names_them(
    cli: Cli, data: Path, tmp_path: Path, options: list[str], sentence: str
) -> None:
    file = data / "dev.conll"
    given = [str(file) if each == "TRAIN" else each for each in options]
    for command in ("train", "tune") if "--resume" not in options else ("train",):
        answer = cli(command, file, "--out", tmp_path / "m", *given)
        assert answer.status == 2 and sentence in answer.err and answer.err.count("\n") == 1, answer.err


def test_settings_in_a_file_do_not_choose_another_model(cli: Cli, data: Path, tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text(f'[data]\ntrain = "{data / "dev.conll"}"\n[model]\nhidden = 3\n', encoding="utf-8")
    answer = cli("train", file, "--out", tmp_path / "m")
    assert answer.status == 2 and answer.err.startswith(f"error: {file}:4: expected a setting of [model] for crf")
    assert 'leave it out, or write name = "bilstm-crf" under [model]' in answer.err
    file.write_text(f'[data]\ntrain = "{data / "dev.conll"}"\n[model]\nmax_iterations = 2\n', encoding="utf-8")
    answer = cli("train", file, "--out", tmp_path / "m")
    assert answer.status == 0 and "model: crf (" in answer.err


def test_a_run_that_is_resumed_keeps_its_model(cli: Cli, data: Path, tmp_path: Path) -> None:
    out, command = tmp_path / "m", ["train", data / "dev.conll", "--out", tmp_path / "m", "--feature-columns", "none"]
    assert cli(*command, "--model", "window", "--epochs", 1, *SMALL).status == 0
    answer = cli(*command, "--epochs", 2, *SMALL, "--resume")
    assert answer.status == 0 and f"model: window, as in the run in {out} that is resumed" in answer.err


def test_a_treebank_is_parsed(cli: Cli, tmp_path: Path) -> None:
    bank = tmp_path / "bank.conllu"
    bank.write_text(conllu(list(islice(patterns(), 20))), encoding="utf-8")
    sizes = ["--epochs", 1, "--hidden", 8, "--word-dim", 8, "--tokeniser", "rules"]
    answer = cli("train", bank, *sizes, "--out", tmp_path / "m")
    assert answer.status == 0, answer.err
    assert "the default for a treebank with heads; --tag-column UPOS trains a tagger" in answer.err
