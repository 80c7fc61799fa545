"""Lemmas from forms and tags: what was seen, rules for what was not, in several languages, scripts and cases."""

from __future__ import annotations

import gzip
import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from trelliswork.errors import ModelError
from trelliswork.models.lemmatiser import Lemmatiser, edit_tree, rewritten

EWT = Path(__file__).parents[3] / "shared" / "data" / "ud_english_ewt"
NOUNS = ["cat", "dog", "table", "chair", "house", "tree", "road", "garden", "window", "letter"]
VERBS = ["walk", "jump", "look", "play", "turn", "work", "talk", "paint", "wash", "cook"]


def english() -> list[tuple[str, str, str]]:
    plurals = [(f"{noun}s", "NOUN", noun) for noun in NOUNS] + [(noun, "NOUN", noun) for noun in NOUNS]
    third = [(f"{verb}s", "VERB", verb) for verb in VERBS] + [(f"{verb}ing", "VERB", verb) for verb in VERBS]
    names = [(name, "PROPN", name) for name in ("Ann", "James", "Paris", "Texas", "NASA", "IBM")]
    return [*plurals, *third, *names, ("mice", "NOUN", "mouse"), ("is", "AUX", "be"), ("Is", "AUX", "be")]


def lemma(model: Lemmatiser, word: str, tag: str) -> str:
    return model.lemmas([word], [tag])[0]


def test_words_that_were_seen_have_their_lemma_and_others_a_rule() -> None:
    model = Lemmatiser.fit(english() * 2)
    assert model.lemmas(["mice", "cats", "lamps", "lamp"], ["NOUN"] * 4) == ["mouse", "cat", "lamp", "lamp"]
    assert model.lemmas(["helping", "helps", "is"], ["VERB", "VERB", "AUX"]) == ["help", "help", "be"]
    assert lemma(model, "lamps", "X") == "lamps", "a tag that was never seen"


def test_the_more_frequent_lemma_of_a_word_counts_and_the_tag_decides() -> None:
    model = Lemmatiser.fit([("saw", "VERB", "see")] * 3 + [("saw", "VERB", "saw"), ("saw", "NOUN", "saw")])
    assert model.lemmas(["saw", "saw"], ["VERB", "NOUN"]) == ["see", "saw"]


def test_capitals_of_names_stay_and_those_of_first_words_do_not() -> None:
    model = Lemmatiser.fit([*english(), ("Walking", "VERB", "walk"), ("Dogs", "NOUN", "dog"), ("CATS", "NOUN", "cat")])
    assert model.lemmas(["Jumping", "Tables", "DOGS"], ["VERB", "NOUN", "NOUN"]) == ["jump", "table", "dog"]
    assert model.lemmas(["London", "UNESCO"], ["PROPN", "PROPN"]) == ["London", "UNESCO"]


def test_prefixes_change_where_the_language_has_them() -> None:
    stems = [
        "mach",
        "lach",
        "sag",
        "frag",
        "spiel",
        "koch",
        "bau",
        "leb",
        "lern",
        "lieb",
        "wohn",
        "hol",
        "warn",
        "tanz",
        "dank",
    ]
    german = [(f"ge{stem}t", "VERB", f"{stem}en") for stem in stems] + [
        (f"{stem}t", "VERB", f"{stem}en") for stem in stems
    ]
    model = Lemmatiser.fit(german)
    assert model.lemmas(["gekauft", "kauft"], ["VERB", "VERB"]) == ["kaufen", "kaufen"]
    indonesian = [(f"meng{stem}", "VERB", stem) for stem in ("ambil", "ajar", "ukur", "isi", "undang", "obati", "urus")]
    indonesian += [(f"ber{stem}", "VERB", stem) for stem in ("jalan", "main", "lari", "kata", "sama", "temu", "bicara")]
    model = Lemmatiser.fit(indonesian)
    assert model.lemmas(["mengatur", "berdiri"], ["VERB", "VERB"]) == ["atur", "diri"]
    arabic = [(f"ال{word}", "NOUN", word) for word in ("كتاب", "بيت", "ولد", "رجل", "مدينة", "باب", "درس")]
    arabic += [(word[2:], "NOUN", word[2:]) for word, _, _ in arabic]
    model = Lemmatiser.fit(arabic)
    assert model.lemmas(["القمر", "قمر"], ["NOUN", "NOUN"]) == ["قمر", "قمر"]


def test_other_scripts() -> None:
    russian = [
        (f"{stem}{ending}", "NOUN", f"{stem}а") for stem in ("книг", "рук", "ног", "рек") for ending in ("у", "и", "ой")
    ]
    assert lemma(Lemmatiser.fit(russian), "дорогу", "NOUN") == "дорога"
    hindi = [(f"{stem}ों", "NOUN", stem) for stem in ("घर", "फल", "खेत", "दिन")]
    assert lemma(Lemmatiser.fit(hindi), "गांवों", "NOUN") == "गांव"
    korean = [(f"{noun}는", "NOUN", noun) for noun in ("나", "너", "고양이", "친구", "의사")]
    assert lemma(Lemmatiser.fit(korean), "아버지는", "NOUN") == "아버지"


def test_turkish_capitals_are_learned_from_the_words() -> None:
    words = ["kız", "ışık", "ısı", "sıra", "kapı", "iş", "ip", "ilik", "inek", "deniz"]
    seen = [(f"{word}lar", "NOUN", word) for word in words] + [(word, "NOUN", word) for word in words]
    model = Lemmatiser.fit(seen)
    assert model.lemmas(["Isılar", "IŞIKLAR", "İşlar", "İPLAR"], ["NOUN"] * 4) == ["ısı", "ışık", "iş", "ip"]
    names = Lemmatiser.fit(
        [*seen, ("İzmir", "PROPN", "İzmir"), ("Iğdır", "PROPN", "Iğdır"), ("Ankara", "PROPN", "Ankara")]
    )
    assert names.lemmas(["İstanbul", "Isparta"], ["PROPN", "PROPN"]) == ["İstanbul", "Isparta"]
    english_words = Lemmatiser.fit([("inns", "NOUN", "inn"), ("Inns", "NOUN", "inn"), ("kids", "NOUN", "kid")])
    assert lemma(english_words, "Ids", "NOUN") == "id"


@pytest.mark.parametrize("learned_in", ["NFC", "NFD"])
@pytest.mark.parametrize("asked_in", ["NFC", "NFD"])
def test_lemmas_are_spelt_as_those_that_were_learned(learned_in: str, asked_in: str) -> None:
    seen = [(f"{word}s", "NOUN", word) for word in ("café", "forêt", "école", "âne", "bébé")]
    given = [tuple(unicodedata.normalize(learned_in, part) for part in each) for each in seen]  # type: ignore[arg-type]
    model = Lemmatiser.fit(given)  # type: ignore[arg-type]
    words = [unicodedata.normalize(asked_in, word) for word in ("cafés", "élèves")]  # type: ignore[arg-type]
    right = [unicodedata.normalize(learned_in, word) for word in ("café", "élève")]  # type: ignore[arg-type]
    assert model.lemmas(words, ["NOUN", "NOUN"]) == right


def test_an_underscore_is_no_lemma_but_that_of_itself() -> None:
    model = Lemmatiser.fit([("dogs", "NOUN", "_"), ("_", "PUNCT", "_"), ("cats", "NOUN", "cat")])
    assert model.lemmas(["_", "dogs"], ["PUNCT", "NOUN"]) == ["_", "dog"]
    assert Lemmatiser.fit([("dogs", "NOUN", "_")]).n_words == 0


def test_a_word_of_ten_thousand_letters_costs_no_more_than_others() -> None:
    long = "ab" * 5_000
    model = Lemmatiser.fit([*english(), (f"{long}s", "NOUN", long), (long, "X", long[::-1])])
    assert model.lemmas([f"{long}s", f"x{long}s", long], ["NOUN", "NOUN", "X"]) == [long, f"x{long}", long[::-1]]


def test_it_comes_back_from_its_folder(tmp_path: Path) -> None:
    model = Lemmatiser.fit(english())
    model.save(tmp_path / "lemmas")
    again = Lemmatiser(folder=tmp_path / "lemmas")
    words = ["mice", "lamps", "Helping", "UNESCO", "geese"]
    tags = ["NOUN", "NOUN", "VERB", "PROPN", "NOUN"]
    assert again.lemmas(words, tags) == model.lemmas(words, tags)
    assert again.size == model.size


@pytest.mark.parametrize("damage", [{"rules": [["lower", [1]]]}, {"lexicon": {"NOUN": {"a": [99]}}}, {"rules": 3},
                                    {"rules": [["upper", None]]}, {"spelling": {"form": 7}}])  # fmt: skip
def test_a_damaged_folder_is_refused(tmp_path: Path, damage: dict[str, object]) -> None:
    Lemmatiser.fit(english()).save(tmp_path)
    file = tmp_path / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | damage))
    with pytest.raises(ModelError, match="damaged"):
        Lemmatiser(folder=tmp_path).lemmas(["a"], ["NOUN"])
    with pytest.raises(ModelError, match="damaged"):
        print(Lemmatiser(folder=tmp_path).size)


@pytest.mark.parametrize(("form", "text"), [("gegangen", "gehen"), ("", "x"), ("x", ""), ("aa", "aa"), ("كتب", "كاتب")])
def test_a_tree_rewrites_the_form_that_it_was_made_of(form: str, text: str) -> None:
    assert rewritten(edit_tree(form, text), form) == text


def words_of(file: Path) -> Iterator[tuple[str, str, str]]:
    with (gzip.open if file.suffix == ".gz" else open)(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            cells = line.rstrip("\n").split("\t")
            if cells[0].isdigit() and (cells[2] != "_" or cells[1] == "_"):
                yield cells[1], cells[3], cells[2]


@pytest.mark.skipif(not EWT.exists(), reason="needs the English Web Treebank in ../shared/data")
def test_english_web_treebank() -> None:
    model = Lemmatiser.fit(words_of(EWT / "en_ewt-ud-train.conllu.gz"))
    gold = list(words_of(EWT / "en_ewt-ud-test.conllu"))
    found = model.lemmas([word for word, _, _ in gold], [tag for _, tag, _ in gold])
    share = sum(a == b for a, (_, _, b) in zip(found, gold, strict=True)) / len(gold)
    copied = sum(word == right for word, _, right in gold) / len(gold)
    assert share > 0.983 and copied < 0.80
