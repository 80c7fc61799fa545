"""Tokenisers on the command line: trained alone, or with a tagger and kept in its folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.pages import check_page, sections
from tests.conftest import RECORDER
from trelliswork.models import FeatureTagger, load
from trelliswork.models.tokenisers import CharacterTokeniser
from trelliswork.text import Document, RuleTokeniser, read_documents

SENTENCES = [
    [("Ann", "PROPN"), ("do", "AUX"), ("n't", "PART"), ("go", "VERB"), (".", "PUNCT")],
    [("Why", "ADV"), ("?", "PUNCT")],
    [("Bob", "PROPN"), (",", "PUNCT"), ("Ann", "PROPN"), ("left", "VERB"), ("!", "PUNCT")],
]


def conllu(sentences: list[list[tuple[str, str]]], *, spaced: bool = True) -> str:
    """CoNLL-U in which marks touch the word before them, and don't is one token."""
    blocks = []
    for sentence in sentences:
        rows, words = [], [word for word, _ in sentence]
        for i, (word, tag) in enumerate(sentence, 1):
            if word == "do" and words[i : i + 1] == ["n't"]:
                rows.append(f"{i}-{i + 1}\tdon't" + "\t_" * 8)
            touches = spaced and i < len(words) and not words[i][0].isalnum()
            rows.append(f"{i}\t{word}\t_\t{tag}" + "\t_" * 5 + ("\tSpaceAfter=No" if touches else "\t_"))
        blocks.append("\n".join(rows) + "\n\n")
    return "".join(blocks)


@pytest.fixture(scope="module")
def treebank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bank") / "a.conllu"
    path.write_text(conllu(SENTENCES * 12), encoding="utf-8")
    return path


def train(cli: Cli, file: Path, out: Path, *options: object) -> str:
    answer = cli("train", file, "--model", "crf", "--max-iterations", "15", "--out", out, *options)
    assert answer.status == 0, answer.err
    return answer.err


def test_one_alone(cli: Cli, treebank: Path, tmp_path: Path) -> None:
    out, text = tmp_path / "t", tmp_path / "a.txt"
    with RECORDER.needs("train tokeniser"):
        trained = cli("train", treebank, "--model", "tokeniser", "--out", out, "--quiet")
    assert trained.status == 0, trained.err
    for part in ("tokens", "words", "sentences"):
        assert f"F1 of {part}".ljust(24) + "100.00" in trained.out
        assert f"F1 of {part}".ljust(24) + "100.00" in cli("evaluate", out, treebank).out
    assert f"trelliswork predict {out} FILE --text" in trained.out
    assert "a tokeniser of characters" in cli("info", out).out

    text.write_text("Bob, Ann don't go.\nWhy?\n", encoding="utf-8")
    written = tmp_path / "out.conllu"
    assert cli("predict", out, text, "--text", "--out", written).status == 0
    assert written.read_text() == (
        "# sent_id = 1\n# text = Bob, Ann don't go.\n"
        "1\tBob" + "\t_" * 7 + "\tSpaceAfter=No\n2\t," + "\t_" * 8 + "\n3\tAnn" + "\t_" * 8 + "\n4-5\tdon't" + "\t_" * 8
        + "\n4\tdo" + "\t_" * 8 + "\n5\tn't" + "\t_" * 8 + "\n6\tgo" + "\t_" * 7 + "\tSpaceAfter=No\n7\t." + "\t_" * 8
        + "\n\n# sent_id = 2\n# text = Why?\n1\tWhy" + "\t_" * 7 + "\tSpaceAfter=No\n2\t?" + "\t_" * 8 + "\n\n"
    )  # fmt: skip
    (document,) = read_documents(written)
    assert [[token.text for token in each] for each in document.sentences][1] == ["Why", "?"]
    first = json.loads(cli("predict", out, text, "--format", "jsonl").out.splitlines()[0])
    assert first["tokens"][3:5] == ["do", "n't"] and first["offsets"][3:5] == [[9, 11], [11, 14]]


def test_a_page_and_a_comparison(cli: Cli, treebank: Path, tmp_path: Path) -> None:
    for name, texts in (("good", read_documents(treebank)), ("bad", [Document.aligned("Hi!", [["Hi", "!"]])])):
        CharacterTokeniser.fit(texts).save(tmp_path / name)
    command = ["evaluate", tmp_path / "good", treebank, "--against", tmp_path / "bad"]
    answer = cli(*command, "--html", tmp_path / "r.html")
    assert answer.status == 0, answer.err
    assert (
        "A has fewer mistakes in 36 sentences, B in 0, of 36; A is better, and the difference is significant"
        in answer.out
    )
    check_page(page := (tmp_path / "r.html").read_text(encoding="utf-8"))
    assert sections(page) == ["Scores", "Two models", "Where A is better: 36 sentences"]
    cli("evaluate", tmp_path / "bad", treebank, "--html", tmp_path / "r.html")
    assert "Worst sentences" in sections((tmp_path / "r.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--confidence"], "a tokeniser gives its best tokens only"),
        (["--format", "csv"], "expected --format conllu or jsonl for tokens, got csv"),
    ],
)
def test_what_a_tokeniser_cannot_do(
    cli: Cli, tmp_path: Path, options: list[str], sentence: str, text_file: Path
) -> None:
    CharacterTokeniser.fit([Document.aligned("Hi!", [["Hi", "!"]])]).save(tmp_path / "t")
    answer = cli("predict", tmp_path / "t", text_file, *options)
    assert answer.status == 2 and sentence in answer.err


def test_without_spaces_a_tokeniser_alone_is_refused(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(conllu(SENTENCES * 12, spaced=False))
    answer = cli("train", path, "--model", "tokeniser", "--out", tmp_path / "t")
    assert answer.status == 2 and "expected CoNLL-U in which SpaceAfter=No says where words touch" in answer.err
    train(cli, path, tmp_path / "m")
    found = load(tmp_path / "m").predict("Bob, don't go.")[0].inputs
    assert list(found) == ["Bob", ",", "do", "n't", "go", "."], "the words of don't are those of the file"


DUTCH = [
    "Premier Jansen-Smit sprak met dhr. De Wit over foto's en auto's .",
    "De PVDA-leider kwam 's avonds met zo'n plan van 1.000,50 euro .",
    "Prof. Dr. Mol , mevr. Bos en dhr. Van Dam wonnen met 3-2 op de 3de dag .",
]
PENN = [
    "the well - known state - of - the - art method fails .",
    "Ann 's long - term plan is n't hers .",
    "Mr. Lee , 52 - year - old , did n't say so .",
]


def file_of_tokens(path: Path, sentences: list[str]) -> Path:
    """Sentences of tokens in the format that the name of the file says, each token with a tag."""
    tokens = [sentence.split() for sentence in sentences * 10]
    if path.suffix == ".jsonl":
        lines = [json.dumps({"tokens": each, "tags": ["O"] * (len(each) - 1) + ["X"]}) for each in tokens]
        text = "\n".join(lines) + "\n"
    else:
        text = "".join("".join(f"{word} O\n" for word in each[:-1]) + f"{each[-1]} X\n\n" for each in tokens)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["a.conll", "a.jsonl"])
@pytest.mark.parametrize(
    ("sentences", "text", "expected"),
    [
        (
            DUTCH,
            "Anna-Maria zag dhr. De Groot van N-VA 's morgens, op de 27ste. Zo'n kmo's won 4-1.",
            ["Anna-Maria zag dhr. De Groot van N-VA 's morgens , op de 27ste .", "Zo'n kmo's won 4-1 ."],
        ),
        (
            PENN,
            "A third-party tool isn't Bob's. Mr. Poe left.",
            ["A third - party tool is n't Bob 's .", "Mr. Poe left ."],
        ),
    ],
)
def test_text_is_cut_as_a_file_of_tokens_is(
    cli: Cli, tmp_path: Path, name: str, sentences: list[str], text: str, expected: list[str]
) -> None:
    """With no option given, and by the Python model too; --tokeniser rules leaves it out."""
    path, raw = file_of_tokens(tmp_path / name, sentences), tmp_path / "raw.txt"
    raw.write_text(text, encoding="utf-8")
    said = train(cli, path, tmp_path / "m")
    assert said.count("how the file cuts text") == 1 and "--tokeniser rules skips it" in said
    lines = cli("predict", tmp_path / "m", raw, "--text", "--format", "jsonl").out.splitlines()
    assert [" ".join(json.loads(line)["tokens"]) for line in lines] == expected
    assert [" ".join(answer.inputs) for answer in load(tmp_path / "m").predict(text)] == expected
    assert "rules with the habits of a file of tokens" in cli("info", tmp_path / "m").out

    said = train(cli, path, tmp_path / "r", "--tokeniser", "rules")
    assert "how the file cuts text" not in said and not (tmp_path / "r" / "tokeniser").exists()
    assert "a third-party one" in " ".join(load(tmp_path / "r").predict("a third-party one")[0].inputs)


def test_chinese_columns(cli: Cli, tmp_path: Path) -> None:
    """Words that no white space parts, from columns without any text."""
    path = tmp_path / "zh.conll"
    path.write_text("".join("".join(f"{word} X\n" for word in each) + "\n" for each in CHINESE), encoding="utf-8")
    train(cli, path, tmp_path / "m")
    found = [list(answer.inputs) for answer in load(tmp_path / "m").predict("他爱上海人。猫在北京。")]
    assert found == [["他", "爱", "上海", "人", "。"], ["猫", "在", "北京", "。"]]


def test_a_model_of_an_earlier_version_cuts_as_it_did(cli: Cli, tmp_path: Path) -> None:
    """Its folder names no rules; copies of it keep those that it was trained with."""
    train(cli, file_of_tokens(tmp_path / "a.conll", DUTCH), tmp_path / "m", "--tokeniser", "rules")
    assert load(tmp_path / "m").predict("de N-VA")[0].inputs == ("de", "N-VA")
    config = json.loads((tmp_path / "m" / "config.json").read_text(encoding="utf-8"))
    assert config.pop("text_rules") == 2
    (tmp_path / "m" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    load(tmp_path / "m").save(tmp_path / "copy")
    for name in ("m", "copy"):
        assert load(tmp_path / name).predict("de N-VA")[0].inputs == ("de", "N", "-", "VA")
        assert cli("info", tmp_path / name).status == 0


def test_texts_that_rules_have_cut_need_no_tokeniser(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    record = {"text": "Ann saw N-VA.", "spans": [{"start": 8, "end": 12, "label": "ORG"}]}
    path.write_text((json.dumps(record) + "\n") * 20, encoding="utf-8")
    assert "how the file cuts text" not in train(cli, path, tmp_path / "m")
    assert not (tmp_path / "m" / "tokeniser").exists()


def test_damaged_habits_are_one_sentence(cli: Cli, tmp_path: Path, text_file: Path) -> None:
    train(cli, file_of_tokens(tmp_path / "a.conll", DUTCH), tmp_path / "m")
    path = tmp_path / "m" / "tokeniser" / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    for cuts in ({"+ a -": "7/3"}, {"+ a -": [1, 2]}, ["+ a -"], None):
        path.write_text(json.dumps({**config, "cuts": cuts}), encoding="utf-8")
        answer = cli("predict", tmp_path / "m", text_file, "--text")
        assert answer.status == 2 and "config.json does not fit" in answer.err and answer.err.count("\n") == 1


def test_a_tagger_keeps_the_tokeniser_of_its_file(cli: Cli, treebank: Path, tmp_path: Path) -> None:
    out = tmp_path / "m"
    told = train(cli, treebank, out, "--dev", treebank)
    assert "tokeniser: learned from 1 document in " in told and "dev F1 of tokens 100.00" in told
    assert "a tokeniser of characters" in cli("info", out).out
    text = "Bob, Ann don't go."
    answer = FeatureTagger.load(out).predict(text)[0]
    assert list(answer.inputs) == ["Bob", ",", "Ann", "do", "n't", "go", "."]
    assert answer.offsets[3:5] == ((9, 11), (11, 14))
    (tmp_path / "a.txt").write_text(text)
    assert "don't" in cli("predict", out, tmp_path / "a.txt", "--text", "--format", "conllu").out

    tagger = load(out)
    tagger.save(tmp_path / "copy")
    assert load(tmp_path / "copy").predict(text)[0].inputs == answer.inputs
    tagger.save(out)  # where it is
    assert (out / "tokeniser" / "weights.safetensors").is_file()


def test_a_new_model_does_not_keep_the_tokeniser_of_an_old_one(cli: Cli, treebank: Path, tmp_path: Path) -> None:
    out = tmp_path / "m"
    train(cli, treebank, out)
    assert (out / "tokeniser").is_dir()
    train(cli, treebank, out, "--force", "--tokeniser", "rules")
    assert not (out / "tokeniser").exists() and load(out).tokeniser is None


def test_a_tokeniser_from_a_folder(cli: Cli, treebank: Path, tmp_path: Path) -> None:
    made = CharacterTokeniser.fit(read_documents(treebank))
    made.save(tmp_path / "t")
    train(cli, treebank, tmp_path / "m", "--tokeniser", tmp_path / "t")
    train(cli, treebank, tmp_path / "n", "--tokeniser", tmp_path / "m")  # of a model
    for name in ("m", "n"):
        assert load(tmp_path / name).tokeniser.loaded.multiword == made.multiword
    answer = cli("train", treebank, "--model", "crf", "--out", tmp_path / "o", "--tokeniser", tmp_path / "none")
    assert answer.status == 2 and "expected --tokeniser auto, rules or the folder of a tokeniser" in answer.err


def test_networks_seeds_and_resume(cli: Cli, treebank: Path, tmp_path: Path) -> None:
    small = ["--model", "window", "--hidden", "8", "--word-dim", "4", "--epochs", "1", "--quiet"]
    answer = cli("train", treebank, "--out", tmp_path / "m", "--seeds", "2", *small)
    assert answer.status == 0, answer.err
    folders = [tmp_path / "m" / name / "tokeniser" for name in ("seed-0", "seed-1")]
    assert all((folder / "config.json").is_file() for folder in folders)
    assert list(load(tmp_path / "m").predict("Ann don't go.")[0].inputs)[1:3] == ["do", "n't"]
    before = (folders[0] / "weights.safetensors").stat().st_mtime_ns
    again = cli("train", treebank, "--out", tmp_path / "m", "--seeds", "2", "--resume", *small)
    assert again.status == 0, again.err
    assert (folders[0] / "weights.safetensors").stat().st_mtime_ns == before, "it is not learned again"


def test_a_damaged_tokeniser_is_told_when_it_is_used(cli: Cli, treebank: Path, tmp_path: Path, text_file: Path) -> None:
    out = tmp_path / "m"
    train(cli, treebank, out)
    (out / "tokeniser" / "weights.safetensors").write_bytes(b"")
    assert cli("predict", out, treebank).status == 0
    answer = cli("predict", out, text_file, "--text")
    assert answer.status == 2 and "tokeniser" in answer.err and answer.err.count("\n") == 1


def test_what_a_kill_leaves_is_no_obstacle(cli: Cli, treebank: Path, tmp_path: Path) -> None:
    """A tokeniser whose model was not yet written, and half of another."""
    out = tmp_path / "m"
    CharacterTokeniser.fit([Document.aligned("Hi!", [["Hi", "!"]])]).save(out / "tokeniser")
    (out / ".tokeniser.a1b2c3d4.part").mkdir()
    train(cli, treebank, out)
    assert not list(out.glob("*.part")) and not list(out.glob(".*.part"))
    assert load(out).tokeniser.loaded.multiword.whole, "the new one"


def test_chinese_and_japanese(cli: Cli, tmp_path: Path) -> None:
    """Words that no white space parts, by the same command; rules give one token for each character."""
    words = [
        ["我", "爱", "北京", "。"],
        ["猫", "爱", "北京", "。"],
        ["東京", "に", "行く", "。"],
        ["猫", "が", "行く", "。"],
    ]
    rows = [
        "\n".join(f"{i}\t{word}\t_\tX" + "\t_" * 5 + "\tSpaceAfter=No" for i, word in enumerate(each, 1))
        for each in words
    ]
    path = tmp_path / "zh.conllu"
    path.write_text("\n\n".join(rows * 20) + "\n\n", encoding="utf-8")
    assert cli("train", path, "--model", "tokeniser", "--out", tmp_path / "t", "--quiet").status == 0
    text = "我爱東京。猫に行く。"
    found = load(tmp_path / "t").tokenise(text)
    assert [[token.text for token in each] for each in found] == [
        ["我", "爱", "東京", "。"],
        ["猫", "に", "行く", "。"],
    ]
    assert [[token.text for token in each] for each in RuleTokeniser().tokenise(text)] != found


CHINESE = [
    ["我", "爱", "北京", "。"],
    ["猫", "爱", "上海", "人", "。"],
    ["他", "在", "北京", "。"],
    ["人", "爱", "猫", "。"],
] * 15


def written(folder: Path, sentences: list[list[str]], joint: str) -> tuple[Path, Path, Path]:
    """Sentences of tokens on lines, the same in columns with tags, and the raw text."""
    lines, columns, raw = (folder / name for name in ("lines.txt", "tokens.conll", "raw.txt"))
    lines.write_text("".join(" ".join(each) + "\n" for each in sentences), encoding="utf-8")
    columns.write_text("".join("".join(f"{word} X\n" for word in each) + "\n" for each in sentences), encoding="utf-8")
    raw.write_text("\n".join(joint.join(each) for each in sentences), encoding="utf-8")
    return lines, columns, raw


def test_any_tokens_with_their_raw_text(cli: Cli, tmp_path: Path) -> None:
    """Chinese words, one sentence a line or one word a line, beside text without white space."""
    lines, columns, raw = written(tmp_path, CHINESE, "")
    answers = []
    for name, file in (("a", lines), ("b", columns)):
        answer = cli("train", file, "--model", "tokeniser", "--raw", raw, "--out", tmp_path / name)
        assert answer.status == 0, answer.err
        assert ("a sentence on each line" in answer.err) == (file is lines)
        answers.append(load(tmp_path / name).tokenise("猫在上海。\n人爱北京。"))
        assert "F1 of tokens            100.00" in cli("evaluate", tmp_path / name, file, "--raw", raw).out
    found = [[token.text for token in each] for each in answers[0]]
    assert answers[0] == answers[1] and found == [["猫", "在", "上海", "。"], ["人", "爱", "北京", "。"]]


def test_tokens_that_are_not_in_the_text(cli: Cli, tmp_path: Path, treebank: Path, model: Path) -> None:
    lines, _, raw = written(tmp_path, CHINESE, "")
    raw.write_text("我爱上海。", encoding="utf-8")
    answer = cli("train", lines, "--model", "tokeniser", "--raw", raw, "--out", tmp_path / "m")
    assert answer.status == 2 and f"{raw}:1: expected the token '北京', got '上海。" in answer.err
    for command, problem in (
        (["train", lines, "--model", "tokeniser"], "give the raw text too, with --raw"),
        (["train", treebank, "--model", "tokeniser", "--raw", raw], "CoNLL-U contains its text"),
        (
            ["train", lines, "--model", "tokeniser", "--raw", raw, "--raw-dev", raw],
            "--raw-dev is the raw text of --dev",
        ),
        (["train", treebank, "--model", "crf", "--raw", raw], "--raw is not used by --model crf"),
        (["train", treebank, "--model", "tokeniser", "--latent", 2], "--latent is not used by --model tokeniser"),
        (["train", treebank, "--model", "tokeniser", "--predict-columns"], "--predict-columns is for taggers"),
    ):
        answer = cli(*command, "--out", tmp_path / "m")
        assert answer.status == 2 and problem in answer.err, answer.err
    assert "--raw is for tokenisers" in cli("evaluate", model, treebank, "--raw", raw).err


def test_settings(cli: Cli, treebank: Path, tmp_path: Path) -> None:
    given = ["--c1", 0.5, "--cutoff", 1, "--max-iterations", 7]
    assert cli("train", treebank, "--model", "tokeniser", "--out", tmp_path / "m", "--quiet", *given).status == 0
    config = load(tmp_path / "m").config
    assert (config.c1, config.c2, config.cutoff, config.max_iterations) == (0.5, 0.01, 1, 7)
    assert "c1 = 0.5\nc2 = 0.01\ncutoff = 1\nmax_iterations = 7\n" in (tmp_path / "m" / "config.toml").read_text()
    again = cli("train", tmp_path / "m" / "config.toml", "--out", tmp_path / "n", "--quiet")
    assert again.status == 0, again.err
    assert load(tmp_path / "n").config == config
    answer = cli("train", treebank, "--model", "tokeniser", "--out", tmp_path / "o", "--c2", -1)
    assert answer.status == 2 and "c2 must be at least 0; got -1.0; leave it out for 0.01" in answer.err
    assert (
        cli("train", treebank, "--model", "crf", "--out", tmp_path / "p", "--quiet", "--max-iterations", 3).status == 0
    )
    assert "c1 = 0.0\nc2 = 1.0\n" in (tmp_path / "p" / "config.toml").read_text(), "features have other defaults"


def test_tune(cli: Cli, treebank: Path, tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    command = ["tune", treebank, "--model", "tokeniser", "--trials", 2, "--max-iterations", 5, "--out", tmp_path / "s"]
    answer = cli(*command)
    assert answer.status == 0, answer.err
    assert "c1" in answer.err and "cutoff" in answer.err and "max_iterations" not in answer.err
    assert load(tmp_path / "s" / "best").tokenise("Why?") and "dev tokens F1 100.00" in answer.err
