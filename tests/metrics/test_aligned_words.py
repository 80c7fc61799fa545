"""Words of two analyses of one text: a case by hand, and a plain walk through both from left to right."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from trelliswork.metrics import Score
from trelliswork.metrics.attachment import ROOT, TextWord, aligned_words, word_scores


def walked(gold: list[TextWord], found: list[TextWord]) -> int:
    """How many words belong together: both sides walked through at once, regions of tokens of several words apart."""
    n, i, j = 0, 0, 0
    while i < len(gold) and j < len(found):
        a, b = gold[i], found[j]
        if not a.multiword and not b.multiword:
            if (a.start, a.end) == (b.start, b.end):
                n, i, j = n + 1, i + 1, j + 1
            elif a.start <= b.start:
                i += 1
            else:
                j += 1
            continue
        start = min(word.start for word in (a, b) if word.multiword)
        if not a.multiword and a.start < start:
            i += 1
            continue
        if not b.multiword and b.start < start:
            j += 1
            continue
        end, grown = start, -1
        while end != grown:  # until no token of several words sticks out
            grown = end
            tokens = [w for w in (*gold, *found) if w.multiword and w.start >= start and w.start < max(end, start + 1)]
            end = max(word.end for word in tokens)
        inside = [[w for w in side if start <= w.start and w.end <= end] for side in (gold, found)]
        n += common(*([word.form.lower() for word in words] for words in inside))
        while i < len(gold) and gold[i].start < end:
            i += 1
        while j < len(found) and found[j].start < end:
            j += 1
    return n


def common(a: list[str], b: list[str]) -> int:
    """The length of the longest common subsequence, by trying both ways."""
    if not a or not b:
        return 0
    if a[0] == b[0]:
        return 1 + common(a[1:], b[1:])
    return max(common(a[1:], b), common(a, b[1:]))


def random_words(text: str, chance: random.Random) -> list[TextWord]:
    """A text cut into tokens of one to four characters, some of which are one to three words."""
    words, place = [], 0
    while place < len(text):
        end = min(len(text), place + chance.randint(1, 4))
        if chance.random() < 0.3:
            forms = [chance.choice(["a", "b", "A", text[place:end]]) for _ in range(chance.randint(2, 3))]
            words += [TextWord(place, end, form, True) for form in forms]
        else:
            words.append(TextWord(place, end, text[place:end]))
        place = end
    return words


def test_the_same_words_belong_together_as_in_a_plain_walk() -> None:
    chance = random.Random(0)
    for _ in range(2000):
        text = "".join(chance.choice("ab") for _ in range(chance.randint(1, 12)))
        gold, found = random_words(text, chance), random_words(text, chance)
        pairs = aligned_words(gold, found)
        assert len(pairs) == walked(gold, found), (gold, found)
        assert all(a < c and b < d for (a, b), (c, d) in pairwise(pairs))
        for i, j in pairs:
            a, b = gold[i], found[j]
            assert (a.start, a.end) == (b.start, b.end) or a.form.lower() == b.form.lower()


def test_the_same_analysis_is_all_right() -> None:
    chance = random.Random(1)
    words = random_words("abababababab", chance)
    assert aligned_words(words, words) == [(i, i) for i in range(len(words))]


def test_a_case_by_hand() -> None:
    """Gold: I do n't sing loudly, where don't is one token; found: I don't sing loud ly."""

    def tagged(start: int, end: int, form: str, head: int, label: str, tag: str, multi: bool = False) -> TextWord:
        return TextWord(start, end, form, multi, head, label, {"UPOS": tag})

    gold = [
        tagged(0, 1, "I", 3, "nsubj:own", "PRON"), tagged(1, 6, "do", 3, "aux", "AUX", True),
        tagged(1, 6, "n't", 3, "advmod", "PART", True), tagged(6, 10, "sing", ROOT, "root", "VERB"),
        tagged(10, 16, "loudly", 3, "advmod", "ADV"),
    ]  # fmt: skip
    found = [
        tagged(0, 1, "I", 2, "nsubj", "PRON"), tagged(1, 6, "don't", 2, "aux", "AUX"),
        tagged(6, 10, "sing", ROOT, "root", "NOUN"), tagged(10, 14, "loud", 2, "advmod", "ADV"),
        tagged(14, 16, "ly", 3, "advmod", "ADV"),
    ]  # fmt: skip
    assert aligned_words(gold, found) == [(0, 0), (3, 2)]
    assert word_scores(gold, found, ["UPOS"]) == {
        "words": Score(2, 5, 5), "UPOS": Score(1, 5, 5), "UAS": Score(2, 5, 5), "LAS": Score(1, 5, 5),
        "LAS, no subtypes": Score(2, 5, 5), "CLAS": Score(2, 4, 4),
    }  # fmt: skip


@pytest.mark.parametrize("head", [ROOT, 1])
def test_a_head_must_belong_together_with_the_gold_one(head: int) -> None:
    gold = [TextWord(0, 1, "a", head=1), TextWord(1, 3, "bc")]
    found = [TextWord(0, 1, "a", head=head), TextWord(1, 2, "b"), TextWord(2, 3, "c", head=1)]
    assert word_scores(gold, found, [])["UAS"] == Score(0, 3, 2)
