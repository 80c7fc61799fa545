"""Plain text is told from columns: text is found out, and no file of columns is taken for text."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from trelliswork.data import Choices, open_conll
from trelliswork.data.conll import looks_like_text
from trelliswork.data.corpus import as_sentences, builtin_corpus
from trelliswork.errors import DataError
from trelliswork.reading import numbered_lines

DATA = Path(__file__).parents[3] / "shared" / "data"
TEXTS = {
    "a sentence": "Jordan visited Paris yesterday.",
    "a question": "Who is she?",
    "quoted": '"I am here," she said. "Are you?"',
    "tokenised": "Jordan visited Paris .",
    "a sentence on each line": "Ann lives in Paris.\nShe sings.\nHer brother is a famous painter in Rome.",
    "two short ones of one length": "I am Ann.\nYou are Bob.",
    "two tokenised ones of one length": "Ann lives in Paris with Bob .\nBob likes the city very much .",
    "no stops": "the cat sat on the mat\nit was raining outside and nobody had one\nso we went home\nhello there",
    "wrapped": "Trelliswork is a library for structured prediction with exact\ninference. It has taggers, parsers and\n"
    "transducers, and it explains what it\nfinds, with probabilities that are worth their name",
    "paragraphs": "One two three four five.\n\nSix seven.\n\nEight nine ten eleven twelve thirteen fourteen.\n",
    "German": "Er wohnt in München.\nSeine Schwester studiert seit drei Jahren Jura an der Universität.",
    "Russian": "Она живёт в Москве.\nЕё брат работает в большой больнице на окраине города.",
    "Greek": "Πού είναι η Άννα\u037e\nΕίναι στο σπίτι της στην Αθήνα.",
    "Arabic": "أين تسكن آن؟\nهي تسكن في مدينة باريس منذ ثلاث سنوات.",
    "Hindi": "वह पेरिस में रहती है।\nउसका भाई रोम में एक बड़े अस्पताल में काम करता है।",
    "Chinese": "她住在巴黎。\n她的哥哥在罗马工作。",
    "Japanese": "彼女はパリに住んでいます。\n兄は東京の病院で働いています。",
    "Amharic": "አን በፓሪስ ትኖራለች።\nወንድሟ በሮም ሆስፒታል ውስጥ ይሠራል።",
}
COLUMNS = {
    "word and tag": "Ann B-PER\nsings O\n. O",
    "words alone": "Ann\nsings\n.",
    "a word alone": "Hello",
    "abbreviations": "Mr.\nSmith\nof\nthe\nU.S.\nsings\netc.",
    "one token": "Jordan NNP B-NP B-PER",
    "one token that is a stop": ". . O",
    "stops as tags": "Ann NNP\n. .\n! .\n? .",
    "a filler": "Ann x .\nsings y .\nloud z .",
    "tags with stops": "casa la n.\ncantare il v.\nbella la adj.\nbene il adv.",
    "optional columns": "Ann NNP B-PER\nsings\nin IN\nParis NNP B-LOC\n.",
    "all columns or none": "Ann NNP B-NP B-PER\nsings",
    "many optional columns": "Ann\nsings VBZ\nloud RB O\nin IN\nParis",
    "CoNLL-2003": "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\nrejects VBZ B-VP O\nGerman JJ B-NP B-MISC\n. . O O",
    "comments": "# A sentence of text, as people write it, which is a comment.\nAnn B-PER\nsings O",
    "columns by sentence": "a 1 x * (A0*)\nb 2 y * *\nc 3 z * *\n\nd 1 x *\ne 2 y *\n\nf 1 x * * *\ng 2 y * * *",
    "padded": "Ann      NNP   B-PER\nsings    VBZ   O\nsongs    NNS   O",
    "tabs": "Ann\tB-PER\nsings in Paris\tO\nvery loudly and long\tO",
    "tabs and texts": "what is this ?\tSELECT x\nhow many rivers are there ?\tSELECT COUNT ( x ) FROM y",
    "attributes": "B-PER w=Ann shape=Xx\nO w=sings shape=x suffix=s pos=VBZ prev=Ann\nO w=. shape=.",
    "one broken line": "Ann B-PER\nsings O\nin O\nthis line of a file is not what it should be\nParis B-LOC\n. O",
    "Chinese characters": "她 O\n住 O\n在 O\n巴 B-LOC\n黎 I-LOC\n。 O",
    "Chinese words": "她\n住在\n巴黎\n。",
    "Hindi": "वह PRP\nपेरिस NNP\nमें PSP\nहै VM\n। SYM",
    "CoNLL-U": "# text = She sings.\n1\tShe\t_\tPRON\t_\t_\t2\tnsubj\t_\t_\n2\tsings\t_\tVERB\t_\t_\t0\troot\t_\t_",
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_text_is_found_out(name: str) -> None:
    lines = TEXTS[name].split("\n")
    assert looks_like_text(lines)
    if len({len(line.split()) for line in lines}) > 1:
        assert looks_like_text([*lines, "", *lines, ""])


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_are_columns(name: str) -> None:
    lines = COLUMNS[name].split("\n")
    for n_trained in (None, 2, 4):
        assert not looks_like_text(lines, n_trained)
        assert not looks_like_text([*lines, "", *lines, "", *lines], n_trained)


def test_what_may_be_either_is_text_if_a_model_knows_fewer_columns() -> None:
    for lines in (["Jordan visited Paris"], ["Jordan visited Paris", "Ann lives in Oslo today"]):
        assert looks_like_text(lines, 2) and not looks_like_text(lines)


def test_no_part_of_the_built_in_corpus_is_text() -> None:
    """Files of one line and of many, cut anywhere, with any of the columns."""
    generator, rows = random.Random(0), []
    for sentence in as_sentences(builtin_corpus(sizes=(200, 1, 1))["train"]):
        rows += [*zip(sentence.words, *sentence.features, sentence.tags or (), strict=True), ()]
    for columns in ((0,), (0, 1), (0, 2), (0, 1, 2), (0, 1, 1, 2), (1, 0)):
        lines = [" ".join(row[i] for i in columns) if row else "" for row in rows]
        for n in (1, 2, 3, 5, 10, 40, len(lines)):
            first = generator.randrange(len(lines) - n + 1)
            assert not looks_like_text(lines[first : first + n], 4), lines[first : first + n]


@pytest.mark.skipif(not DATA.is_dir(), reason="the data sets are not on this machine")
@pytest.mark.parametrize(
    ("file", "is_text"),
    [
        ("conll2000/train.txt", False),
        ("wnut17/wnut17train.conll", False),
        ("ud_english_ewt/en_ewt-ud-dev.conllu", False),
        ("transliteration_ar_en/ar2en-train.txt", False),
        ("english_text/abc_news.txt.gz", True),
        ("english_text/webtext.txt.gz", True),
        ("english_text/speeches.txt.gz", True),
        ("english_text/brown_tokenised.txt.gz", True),
        ("multi30k/val.de.gz", True),
        ("ptb_lm/ptb.valid.txt.gz", True),
    ],
)
def test_real_files(file: str, is_text: bool) -> None:
    lines = [line for _, line in itertools.islice(numbered_lines(DATA / file), 2000)]
    assert looks_like_text(lines) == is_text
    assert looks_like_text(lines[:20], 2) == is_text


def test_whoever_names_a_column_is_believed(tmp_path: Path) -> None:
    path = tmp_path / "new.txt"
    path.write_text("Ann lives here.\nShe sings.\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"new.txt:1: expected one word per line .* add --text to predict"):
        open_conll(path, with_tags=False)
    for choices in (Choices(word_column=1), Choices(delimiter=" "), Choices(are_columns=True)):
        assert [each.words for each in open_conll(path, choices, with_tags=False)[1]] == [("Ann", "She")]
