"""Every name of `train --model` is trained, saved, loaded, tagged with, scored and shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import SMALL, Cli
from tests.cli.pages import check_page, sections
from tests.conftest import RECORDER
from trelliswork.data import open_conll
from trelliswork.data.corpus import builtin_corpus
from trelliswork.data.corpus.trees import write_events, write_treebank
from trelliswork.data.recordings import RECORDINGS
from trelliswork.models import load_tagger
from trelliswork.models.catalogue import ENTRIES, TOKENISER, by_title, entry_of
from trelliswork.models.language.config import PLAIN_TEXT

TITLES = by_title(ENTRIES.values())
OVER_FEATURES = [each.name for each in TITLES["Feature-based taggers"]]
TAGGERS = [*(each.name for each in TITLES["Neural taggers"]), *OVER_FEATURES]
TRANSDUCERS = [name for name in ENTRIES if entry_of(name).learns_from == "pairs"]  # tests/cli/test_every_transducer.py
OF_TEXT = [name for name in ENTRIES if entry_of(name).learns_from == PLAIN_TEXT]  # test_language_models.py has those
OF_RECORDINGS = [name for name in ENTRIES if entry_of(name).learns_from == RECORDINGS]  # test_recognizers.py
OTHERS = [name for name in ENTRIES if name not in (*TAGGERS, *TRANSDUCERS, *OF_TEXT, *OF_RECORDINGS, TOKENISER)]
FILES = {"heads": "train.conllu", "brackets": "train.mrg", "events": "train.jsonl"}
NETWORK = ["--epochs", "1", *SMALL]
OPTIONS = {name: ["--max-iterations", "3"] for name in OVER_FEATURES} | {
    "hmm": [],
    "naive-bayes": [],
    "grsemicrf": ["--epochs", "1", *SMALL[2:]],  # it has no encoder, whose width would come first
    "hucrf": ["--max-iterations", "3", "--hidden-units", "4"],
}


def options_of(name: str) -> list[str]:
    """What makes a model of this name small."""
    return OPTIONS.get(name, NETWORK)


@pytest.mark.parametrize("name", TAGGERS)  # test_tokenisers.py has those, and the last test here all others
def test_a_model_is_trained_loaded_tagged_with_scored_and_shown(
    cli: Cli, data: Path, tmp_path: Path, name: str
) -> None:
    train, out = data / "dev.conll", tmp_path / "model"
    with RECORDER.needs(f"train {name}"):
        trained = cli("train", train, "--model", name, "--out", out, "--quiet", *options_of(name))
    assert trained.status == 0, trained.err
    assert f'name = "{name}"' in (out / "config.toml").read_text()
    with RECORDER.needs(f"predict {name}"):
        tagged = cli("tag", out, train, "--confidence", "--top-k", "2", "--format", "jsonl")
    assert tagged.status == 0, tagged.err
    records = [json.loads(line) for line in tagged.out.splitlines()]
    sentences = list(open_conll(train)[1])
    assert [tuple(record["tokens"]) for record in records] == [sentence.words for sentence in sentences]
    for record in records:
        _check(record, len(record["tokens"]))
    assert "token accuracy" in cli("evaluate", out, train, "--html", tmp_path / "report.html").out
    check_page(page := (tmp_path / "report.html").read_text(encoding="utf-8"))
    assert {"Scores", "What was taken for what", "Known and unknown words"} <= set(sections(page))
    shown = cli("info", out)
    assert shown.status == 0 and f"{load_tagger(out).n_parameters:,} parameters" in shown.out
    assert json.loads(cli("info", out, "--json").out)["parameters"] == load_tagger(out).n_parameters
    model = load_tagger(out)
    assert type(model).__name__ == entry_of(name).kind and model.learns_from == entry_of(name).learns_from


def _check(record: dict, n: int) -> None:
    """Confidences and two analyses, for each task if there are several."""
    for answer in record.get("tasks", {"": record}).values():
        assert len(answer["tags"]) == len(answer["confidences"]) == n
        assert all(0 <= confidence <= 1 for confidence in answer["confidences"])
        best, second = answer["analyses"]
        assert best["tags"] == answer["tags"] and 1 >= best["probability"] >= second["probability"] >= 0
        assert len(second["tags"]) == n and second["tags"] != best["tags"]


@pytest.mark.parametrize("name", OTHERS)
def test_any_other_model_is_trained_loaded_asked_scored_and_shown(cli: Cli, tmp_path: Path, name: str) -> None:
    """Parsers and models of events: the commands ask what they learn from, and do not know what they are."""
    corpus = builtin_corpus(sizes=(6, 2, 2))
    write_treebank(corpus, tmp_path)
    write_events(corpus, tmp_path)
    train, out = tmp_path / FILES[entry_of(name).learns_from], tmp_path / "model"
    small = ["--epochs", "1", *SMALL] if entry_of(name).is_network else []
    with RECORDER.needs(f"train {name}"):
        trained = cli("train", train, "--model", name, "--out", out, "--quiet", "--tokeniser", "rules", *small)
    assert trained.status == 0, trained.err
    assert f'name = "{name}"' in (out / "config.toml").read_text()
    with RECORDER.needs(f"predict {name}"):
        asked = cli("predict", out, train, "--confidence", "--format", "jsonl")
    assert asked.status == 0, asked.err
    records = [json.loads(line) for line in asked.out.splitlines()]
    assert [tuple(record["tokens"]) for record in records] == [each.words for each in corpus["train"]]
    assert cli("evaluate", out, train).status == 0
    model = load_tagger(out)
    assert type(model).__name__ == entry_of(name).kind and model.learns_from == entry_of(name).learns_from
    shown = cli("info", out)
    assert shown.status == 0 and f"{load_tagger(out).n_parameters:,} parameters" in shown.out
