"""Rules corrected by how a file of tokens cuts; text is cut as the file is."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.newcomers.corpora import DUTCH as DUTCH_NEWS
from tests.newcomers.corpora import GERMAN as GERMAN_NEWS
from tests.newcomers.corpora import SPANISH as SPANISH_NEWS
from tests.newcomers.corpora import Language, cut_in, names_in, sentences_in
from trelliswork.text import RuleTokeniser
from trelliswork.text.habits import Habits, HabitTokeniser
from trelliswork.text.spacing import plausible_text

DUTCH = [
    "Premier Jansen-Smit sprak met dhr. De Wit over foto's en auto's .",
    "De PVDA-leider kwam 's avonds met zo'n plan van 1.000,50 euro .",
    "Prof. Dr. Mol , mevr. Bos en dhr. Van Dam wonnen met 3-2 op de 3de dag .",
    "' Ja ' , zei dhr. De Boer - de oud-premier - van Anna's partij .",
]
GERMAN = [
    "Am 3. Oktober kam Dr. Weber z.B. nach Baden-Baden .",
    "Der 2. Weltkrieg und der 1. FC Köln , vgl. Abs. 4 und Art. 7 .",
    "Es war der 7. Platz für Ute K. im 9. Bezirk .",
]
PENN = [
    "the well - known state - of - the - art method ca n't fail .",
    "Ann 's long - term plan - a good one - is n't hers .",
    "Mr. Lee , 52 - year - old , did n't say it 's so .",
]


def tokeniser(sentences: list[str], times: int = 5) -> HabitTokeniser:
    return HabitTokeniser(Habits.of(plausible_text([sentence.split(" ") for sentence in sentences * times])))


def forms(learned: HabitTokeniser | RuleTokeniser, text: str) -> list[str]:
    return [" ".join(token.text for token in sentence) for sentence in learned.tokenise(text)]


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        (
            DUTCH,
            "Anna-Maria's camera's zag dhr. De Groot van N-VA 's morgens. Hij won 4-1.",
            ["Anna-Maria's camera's zag dhr. De Groot van N-VA 's morgens .", "Hij won 4-1 ."],
        ),
        (GERMAN, "Am 4. November im 5. Bezirk. Er ging.", ["Am 4. November im 5. Bezirk .", "Er ging ."]),
        (
            PENN,
            "A third-party tool can't be Bob's. He didn't know.",
            ["A third - party tool ca n't be Bob 's .", "He did n't know ."],
        ),
    ],
)
def test_text_is_cut_as_the_file_is(file: list[str], text: str, expected: list[str]) -> None:
    assert forms(tokeniser(file), text) == expected


@pytest.mark.parametrize("language", [DUTCH_NEWS, SPANISH_NEWS, GERMAN_NEWS], ids=["Dutch", "Spanish", "German"])
def test_hardly_any_name_is_cut(language: Language) -> None:
    """At most 1 in 200, a third of which are in the test part alone."""
    columns = [[token for token, _ in each.rows] for each in sentences_in(language, 600, 0, 4)]
    text = " ".join(each.text for each in sentences_in(language, 400, 1, 6))
    learned, n_names = HabitTokeniser(Habits.of(plausible_text(columns))), len(list(names_in(language, text)))
    cut = cut_in(language, text, [[(t.start, t.end) for t in sentence] for sentence in learned.tokenise(text)])
    assert n_names > 500 and len(cut) <= n_names / 200, Counter(cut)


def test_what_the_file_does_not_show_is_left_to_the_rules() -> None:
    text = "Mail ann@x.org or see https://x.org/a-b?c=1, 😀 $3,000.50 at 10:30. OK?"
    assert forms(tokeniser(DUTCH), text) == forms(RuleTokeniser(), text)


@pytest.mark.parametrize("form", ["Anna\u2011Maria's", "co\u00adop", "Anne\u0301-Maria’s"])
def test_other_forms_of_unicode(form: str) -> None:
    assert forms(tokeniser(DUTCH), f"De {form} plannen") == [f"De {form} plannen"]


def test_a_word_that_the_file_cuts_otherwise() -> None:
    """A name with a mark inside, and an abbreviation that no list has."""
    learned = tokeniser(
        ["Ik zag Yahoo! Mail en de afk. Xyz op L!nk .", "Ja , de afk. Abc .", "Jan ging .", "De hond at ."]
    )
    assert forms(learned, "De afk. Def van Yahoo! Mail. Ja, L!nk.") == ["De afk. Def van Yahoo! Mail .", "Ja , L!nk ."]


def test_files_of_whole_texts_do_not_join_sentences() -> None:
    """Records with many sentences each say nothing of where sentences end."""
    learned = tokeniser(["It rains . We go . They stay . You eat . I sleep ."], times=20)
    assert forms(learned, "It snows. We stay.") == ["It snows .", "We stay ."]


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=60))
def test_every_visible_character_is_in_one_token_at_its_place(text: str) -> None:
    tokens = [token for sentence in LEARNED.tokenise(text) for token in sentence]
    assert all(token.text == text[token.start : token.end] for token in tokens)
    assert all(left.end <= right.start for left, right in pairwise(tokens))
    covered = {place for token in tokens for place in range(token.start, token.end)}
    assert {place for place, each in enumerate(text) if not each.isspace()} <= covered


LEARNED = tokeniser([*DUTCH, *PENN])
