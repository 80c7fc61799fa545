"""Attributes in words, against what the templates read."""

from __future__ import annotations

import pytest

from trelliswork.data import Sentence
from trelliswork.data.attributes.templates import Template, default_templates
from trelliswork.data.attributes.wording import Wording
from trelliswork.models import FeatureTagger, LearningConfig

COLUMNS = ("word", "POS")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("U01:the", "previous word = 'the'"),
        ("U02:'s", 'word = "\'s"'),
        ("U04:end", "word (2 after) = 'end'"),
        ("U05:the/cat", "previous word = 'the' and word = 'cat'"),
        ("U10:the", "word in lower case = 'the'"),
        ("U26:ing", "suffix-3 = 'ing'"),
        ("U20:i", "prefix-1 = 'i'"),
        ("U34:Xx", "shape = Xx"),
        ("U30:Xx", "short shape of previous word = Xx"),
        ("U01:_B-1", "no previous word"),
        ("U102:NN", "POS = 'NN'"),
        ("U107:NN/VB", "POS = 'NN' and next POS = 'VB'"),
        ("U26:ing & U34:Xx", "suffix-3 = 'ing' & shape = Xx"),
        ("U02:a & b", "word = 'a & b'"),
        ("w[-1]=the", "w[-1]=the"),
        ("(unknown attribute)", "(unknown attribute)"),
        ("#17", "#17"),
        ("after O", "after O"),
    ],
)
def test_names_of_the_default_templates(name: str, words: str) -> None:
    assert Wording(default_templates(2).templates, COLUMNS)(name) == words


def test_every_default_template_has_words() -> None:
    templates = default_templates(3).templates
    wording = Wording(templates, ("word", "POS", "chunk"))
    filled = [each.filled(["x"] * len(each.references)) for each in templates if each.references]
    assert all(" = " in wording(name) and ":" not in wording(name) for name in filled)
    assert len({wording(name) for name in filled}) == len(filled), "no two say the same"


def test_names_that_several_templates_make_stay_as_they_are() -> None:
    wording = Wording([Template.parse("U%x[0,0]"), Template.parse("U%x[1,0]")])
    assert wording("Uthe") == "Uthe"


def test_votes_keep_their_names_and_say_what_they_are() -> None:
    train = [Sentence(("the", "cat"), ("D", "N"), (("DT", "NN"),)), Sentence(("a", "dog"), ("D", "N"), (("DT", "NN"),))]
    tagger = FeatureTagger.fit(train, LearningConfig(max_iterations=5))
    tagger.metrics["data"] = {"format": {"names": ["Word", "POS", "Tag"], "feature_columns": [2]}}
    (found,) = tagger.explain(train[:1])
    said = {vote.name: vote.words for vote in found.tokens[1].votes}
    assert said["U01:the"] == "previous word = 'the'" and said["U102:NN"] == "POS = 'NN'"
    assert said["after D"] == "previous tag = D"
    assert "previous tag = D" in str(found) and "U01:" not in str(found) + found._repr_html_()
    assert any(name.startswith("POS = ") for title, rows in tagger.describe().sections for name in rows)
