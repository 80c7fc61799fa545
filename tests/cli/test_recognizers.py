"""Recognizers through the commands: manifests, answers, alignments, bad files, and what is set aside."""

from __future__ import annotations

import itertools
import json
import os
import wave
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Answer, Cli
from tests.conftest import RECORDER
from trelliswork.cli.main import run
from trelliswork.models import load

SMALL = ["--model", "ctc", "--hidden", "6", "--layers", "1", "--channels", "4", "--stride", "1", "--dropout", "0",
         "--time-masks", "0"]  # fmt: skip
LETTERS = "abc"


def spelled(text: str) -> np.ndarray:
    """Two frames of each letter between frames of zeros."""
    rows = [np.zeros((1, 3))]
    for letter in text:
        rows += [np.eye(3)[[LETTERS.index(letter)] * 2], np.zeros((1, 3))]
    return np.concatenate(rows)


def write_manifest(folder: Path, name: str, texts: list[str], shown: dict[str, str] | None = None) -> Path:
    """Arrays in a folder with a blank in its name, and the manifest; `shown` has other transcripts for some."""
    (folder / "the vectors").mkdir(exist_ok=True)
    lines = []
    for i, text in enumerate(texts):
        np.save(folder / "the vectors" / f"{name}-{i}.npy", spelled(text))
        lines.append(f"the vectors/{name}-{i}.npy\t{(shown or {}).get(text, text)}\n")
    path = folder / f"{name}.tsv"
    path.write_text("".join(lines), encoding="utf-8")
    return path


TEXTS = ["abc", "ba", "cab", "a", "bb", "c", "acb", "cca"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A manifest, a part of it for dev, and a recognizer that has learned it."""
    folder = tmp_path_factory.mktemp("recognizer")
    write_manifest(folder, "train", ["".join(each) for n in (1, 2, 3) for each in itertools.product(LETTERS, repeat=n)])
    write_manifest(folder, "dev", TEXTS[:4])
    options = ["--lr", "0.03", "--epochs", "20", "--batch-tokens", "60"]
    with RECORDER.needs("train ctc"):
        assert run([*map(str, ["train", folder / "train.tsv", "--dev", folder / "dev.tsv", "--out", folder / "reader"]),
                    "--quiet", *SMALL, *options]) == 0  # fmt: skip
    return folder


def records(answer: Answer) -> list[dict]:
    assert answer.status == 0, answer.err
    return [json.loads(line) for line in answer.out.splitlines()]


def test_a_recognizer_answers_with_strings_frames_and_alternatives(cli: Cli, home: Path) -> None:
    with RECORDER.needs("predict ctc"):
        plain = cli("predict", home / "reader", home / "dev.tsv")
    rows = [line.split("\t") for line in plain.out.splitlines()]
    assert [row[:2] for row in rows] == [[f"the vectors/dev-{i}.npy", text] for i, text in enumerate(TEXTS[:4])]
    assert all(0 < float(row[2]) <= 1 for row in rows)
    one = home / "the vectors" / "dev-2.npy"
    (record,) = records(cli("predict", home / "reader", one, "--confidence", "--top-k", "3", "--format", "jsonl"))
    assert record["value"] == "cab" and len(record["alternatives"]) == 3 and "seconds" not in record
    assert [each["symbol"] for each in record["symbols"]] == ["c", "a", "b"]
    assert all(0 <= each["probability"] <= 1 and each["start"] < each["end"] for each in record["symbols"])
    for option in (["--search", "greedy"], ["--beam", "1"]):
        name, _, share = cli("predict", home / "reader", one, *option).out.split("\t")
        assert name == str(one) and 0 < float(share) <= record["probability"] + 1e-6
    report = cli("evaluate", home / "reader", home / "dev.tsv", "--json", home / "scores.json")
    assert "symbol error rate         0.00" in report.out and "4 recordings, 9 symbols" in report.out
    assert json.loads((home / "scores.json").read_text())["exact_match"] == 1
    shown = cli("info", home / "reader")
    assert shown.status == 0 and "vectors of 3 numbers" in shown.out and "3: a b c" in shown.out
    assert load(home / "reader").learns_from == "recordings"


def test_known_transcripts_are_aligned(cli: Cli, home: Path) -> None:
    wanted = cli("predict", home / "reader", home / "dev.tsv", "--align", "--confidence", "--format", "jsonl")
    for record, text in zip(records(wanted), TEXTS, strict=False):
        assert record["value"] == text and "".join(each["symbol"] for each in record["symbols"]) == text
    bare = home / "bare.tsv"
    bare.write_text("the vectors/dev-0.npy\n")
    assert cli("predict", home / "reader", bare).out.startswith("the vectors/dev-0.npy\tabc")
    refused = cli("predict", home / "reader", bare, "--align")
    assert refused.status == 2 and "bare.tsv:1: expected a file, a tab and its transcript" in refused.err


def test_other_models_have_no_such_options(cli: Cli, home: Path, model: Path, data: Path) -> None:
    for option in (["--align"], ["--search", "greedy"]):
        refused = cli("predict", model, data / "dev.conll", *option)
        assert refused.status == 2 and f"{option[0]} is for recognizers, got a Tagger" in refused.err
    refused = cli("predict", home / "reader", home / "dev.tsv", "--text")
    assert refused.status == 2 and "a recognizer reads recordings and manifests of them, got --from text" in refused.err
    refused = cli("serve", home / "reader")
    assert refused.status == 2 and "expected a model that reads words" in refused.err


def test_a_run_is_resumed_and_several_seeds_are_trained(cli: Cli, home: Path, tmp_path: Path) -> None:
    train = ["train", home / "train.tsv", "--dev", home / "dev.tsv", *SMALL]
    whole, begun = tmp_path / "whole", tmp_path / "begun"
    assert cli(*train, "--epochs", 3, "--out", whole).status == 0
    assert cli(*train, "--epochs", 3, "--checkpoint-every", 0, "--out", begun).status == 0
    again = cli(*train, "--epochs", 3, "--resume", "--out", begun)
    assert again.status == 2 and "its training is finished after 3 epochs" in again.err
    assert (whole / "weights.safetensors").read_bytes() == (begun / "weights.safetensors").read_bytes()
    more = cli(*train, "--epochs", 4, "--resume", "--out", begun)
    assert more.status == 0 and "going on to 4 from its best model" in more.err
    seeds = cli(*train, "--epochs", 1, "--seeds", 2, "--out", tmp_path / "both")
    assert seeds.status == 0 and f"predict {tmp_path}/both/seed-N FILE" in seeds.out
    assert cli("predict", tmp_path / "both" / "seed-1", home / "dev.tsv").status == 0


# What cannot be read


def trained(cli: Cli, manifest: Path, *options: object) -> Answer:
    return cli(
        "train",
        manifest,
        "--dev",
        manifest,
        "--out",
        manifest.parent / "no",
        "--quiet",
        *SMALL,
        "--epochs",
        1,
        *options,
    )


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (
            "only-a-file.npy\n",
            ":1: expected at least 2 columns with a tab between them, got 1; write file, tab, transcript",
        ),
        ("a.npy\tab\n\tab\n", ":2: expected a file, got nothing"),
        ("a.npy\tab\na.npy\t \n", ":2: expected a transcript, got nothing"),
        ("", "expected lines of a file, a tab and a transcript, got none; the file is empty"),
        ("a.npy\tab\nnone.npy\tab\n", ":2: none.npy: no such file; check the path"),
        ("a.npy\tab\nfolder\tab\n", ":2: folder: expected a file, got a folder"),
        ("a.npy\tab\nfolder.npy\tab\n", ":2: folder.npy: expected a file, got a folder"),
        ("a.npy\tab\nwide.npy\tab\n", ":2: wide.npy: expected vectors of 3 numbers, as in a.npy, got 5; leave it out"),
        ("a.npy\tab\nnan.npy\tab\n", ":2: nan.npy: expected finite numbers, got nan in frame 1, number 3"),
        ("a.npy\tab\nflat.pgm\tab\n", ":2: flat.pgm: expected an image with columns and rows, got 3 x 0"),
        ("a.npy\tab\nquiet.wav\tab\n", ":2: quiet.wav: expected samples, got none: its length is 0"),
        ("a.npy\tab\ndot.pgm\tab\n", ":2: dot.pgm: expected vectors, as in a.npy, got an image"),
        ("a.npy\t" + "ab" * 20 + "\n", "got 1 of 1 that do not, the first in"),
    ],
)
def test_bad_manifests_are_told_in_one_sentence(cli: Cli, tmp_path: Path, lines: str, told: str) -> None:
    np.save(tmp_path / "a.npy", spelled("ab"))
    np.save(tmp_path / "wide.npy", np.ones((4, 5)))
    np.save(tmp_path / "nan.npy", np.array([[0, 1, np.nan]]))
    (tmp_path / "folder.npy").mkdir()
    (tmp_path / "folder").mkdir()
    (tmp_path / "flat.pgm").write_bytes(b"P5 3 0 255\n")
    (tmp_path / "dot.pgm").write_bytes(b"P5 1 1 255\n\0")
    with wave.open(str(tmp_path / "quiet.wav"), "wb") as file:
        file.setnchannels(1), file.setsampwidth(2), file.setframerate(8000)
    (tmp_path / "m.tsv").write_text(lines)
    refused = trained(cli, tmp_path / "m.tsv")
    assert refused.status == 2 and told in refused.err, refused.err
    assert len(refused.err.strip().splitlines()) == 1 and "Traceback" not in refused.err


def test_paths_and_line_ends_of_all_kinds(cli: Cli, home: Path, tmp_path: Path) -> None:
    """Windows line ends, an absolute path, one that leaves the folder, a byte order mark."""
    inner = tmp_path / "inner"
    inner.mkdir()
    np.save(tmp_path / "out side.npy", spelled("ab"))
    np.save(tmp_path / "absolute.npy", spelled("ca"))
    text = f"\ufeff../out side.npy\tab\r\n{tmp_path / 'absolute.npy'}\tca\r\n"
    (inner / "m.tsv").write_bytes(text.encode())
    answer = cli("predict", home / "reader", inner / "m.tsv")
    assert [line.split("\t")[:2] for line in answer.out.splitlines()] == [
        ["../out side.npy", "ab"], [str(tmp_path / "absolute.npy"), "ca"],
    ]  # fmt: skip
    assert "symbol error rate         0.00" in cli("evaluate", home / "reader", inner / "m.tsv").out
    swapped = inner / "swapped.tsv"
    swapped.write_text("ab\t../out side.npy\n")
    scores = cli("evaluate", home / "reader", swapped, "--word-column", 2, "--tag-column", 1)
    assert "symbol error rate         0.00" in scores.out, scores.err


def test_symbols_that_were_never_seen_are_errors_and_said_so(cli: Cli, home: Path, tmp_path: Path) -> None:
    path = write_manifest(tmp_path, "strange", ["ab", "c"], {"ab": "aż"})
    scores = cli("evaluate", home / "reader", path)
    assert "1 symbol of the transcripts never seen in training, which count as errors: 'ż'" in scores.err
    assert "symbol error rate        33.33" in scores.out


def test_scripts_and_unicode_forms_come_back_as_they_were_written(cli: Cli, tmp_path: Path) -> None:
    """Transcripts in NFD, in Arabic with vowel points, and in Devanagari: symbols are NFC, answers spelt as given."""
    shown = {"a": "e\u0301", "b": "\u0628\u0651\u064e", "c": "\u0915\u094d\u0937\u093f"}  # é, ba with points, kshi
    path = write_manifest(tmp_path, "train", ["a", "b", "c"] * 4, shown)
    how = ["--epochs", 30, "--lr", 0.03, "--skip-impossible", "--units", "characters", "--quiet", "--batch-tokens", 20]
    done = cli("train", path, "--dev", path, "--out", tmp_path / "reader", *SMALL, *how)
    assert done.status == 0, done.err
    symbols = load(tmp_path / "reader").symbols.to_list()
    assert "\u00e9" in symbols and "\u094d" in symbols and len(symbols) == 1 + 3 + 4
    few = tmp_path / "few.tsv"
    few.write_text("".join(f"{line}\n" for line in path.read_text().splitlines()[:1]))
    assert cli("predict", tmp_path / "reader", few).out.split("\t")[1] == shown["a"]
    assert "exact match             100.00" in cli("evaluate", tmp_path / "reader", few).out


def test_a_bad_file_among_many_is_set_aside(cli: Cli, home: Path, tmp_path: Path) -> None:
    """Of two manifests with a file that is cut and one that is missing, all others are answered."""
    write_manifest(tmp_path, "one", ["ab", "c"])
    two = write_manifest(tmp_path, "two", ["ba", "cc"])
    (tmp_path / "the vectors" / "two-0.npy").write_bytes(b"\x93NUMPY")
    two.write_text(two.read_text() + "none.npy\tab\n")
    done = cli("predict", home / "reader", tmp_path / "one.tsv", two, "--out", f"{tmp_path}/done/", "--workers", 1)
    assert done.status == 0 and "2 bad records set aside" in done.out, done.err
    assert [line.split("\t")[0] for line in (tmp_path / "done" / "two.tsv").read_text().splitlines()] == [
        "the vectors/two-1.npy"
    ]
    (aside,) = os.listdir(tmp_path / "done" / "quarantine")
    bad = [json.loads(line) for line in (tmp_path / "done" / "quarantine" / aside).read_text().splitlines()]
    assert [each["line"] for each in bad] == [1, 3] and "no such file" in bad[1]["reason"]
    alone = cli("predict", home / "reader", two)
    assert alone.status == 2 and "two.tsv:1: the vectors/two-0.npy: expected an array of numbers" in alone.err


def test_recordings_name_their_results(cli: Cli, home: Path, tmp_path: Path) -> None:
    files = [home / "the vectors" / f"dev-{i}.npy" for i in (0, 1)]
    done = cli("predict", home / "reader", *files, "--out", f"{tmp_path}/done/", "--workers", 1)
    assert done.status == 0, done.err
    assert sorted(os.listdir(tmp_path / "done")) == ["dev-0.npy.tsv", "dev-1.npy.tsv"]
    assert (tmp_path / "done" / "dev-0.npy.tsv").read_text().split("\t")[1] == "abc"


def test_without_a_name_of_a_model_a_manifest_trains_a_recognizer(cli: Cli, home: Path, tmp_path: Path) -> None:
    done = cli("train", home / "train.tsv", "--out", tmp_path / "reader", "--hidden", 4, "--epochs", 1)
    assert done.status == 0 and "model: ctc" in done.err and "the default for recordings with transcripts" in done.err


def test_a_language_model_takes_part_and_its_weight_is_fitted(
    cli: Cli, home: Path, tmp_path: Path, model: Path
) -> None:
    """A model of texts without b, which a recognizer that has learned little follows."""
    (tmp_path / "lm.txt").write_text("aca\nca\nac\ncaca\na\nacac\n" * 3)
    lm = tmp_path / "lm"
    how = ["--pretokenised", "--model", "ngram", "--units", "characters", "--order", 3, "--smoothing", "witten-bell"]
    assert cli("train", tmp_path / "lm.txt", *how, "--out", lm, "--quiet").status == 0
    plain = cli("predict", home / "reader", home / "dev.tsv")
    with RECORDER.needs("predict ctc"):
        fused = cli("predict", home / "reader", home / "dev.tsv", "--lm", lm, "--lm-weight", 200)
    none = cli("predict", home / "reader", home / "dev.tsv", "--lm", lm, "--lm-weight", 0, "--lm-bonus", 0)
    assert "b" not in "".join(line.split("\t")[1] for line in fused.out.splitlines())
    assert none.out == plain.out and "b" in plain.out.split("\t")[3], "probabilities stay those of the recordings"
    train = ["train", home / "train.tsv", "--dev", home / "dev.tsv", "--out", tmp_path / "reader"]
    fitted = cli(*train, *SMALL, "--epochs", 2, "--lm", lm)
    assert fitted.status == 0 and "fitted on dev" in fitted.err, fitted.err
    assert "fusion" in json.loads((tmp_path / "reader" / "config.json").read_text())
    for options, told in [
        (["--lm", model], "expected an n-gram model of the symbols of transcripts, got a Tagger"),
        (["--lm-weight", 1], "are about a language model, got none; add --lm DIR"),
        (["--lm", lm, "--search", "greedy"], "--lm takes part in the beam"),
        (["--lm", tmp_path / "none"], "none"),
    ]:
        refused = cli("predict", home / "reader", home / "dev.tsv", *options)
        assert refused.status == 2 and told in refused.err, refused.err
