"""A label has one colour: in pictures, on pages and on the terminal, whatever other labels there are."""

from __future__ import annotations

import re

import pytest

from trelliswork import draw
from trelliswork.cli.writers.page import PageWriter
from trelliswork.cli.writers.pretty import COLOURS, colour_of
from trelliswork.data import Sentence
from trelliswork.draw.svg import DARK, PALETTE, SOFT
from trelliswork.models.base import Answer

LABELS = ["PER", "LOC", "ORG", "MISC"]


def drawn(labels: list[str]) -> dict[str, str]:
    """The colour of each label in a picture of segments."""
    segments = [(i, i + 1, label) for i, label in enumerate(labels)]
    svg = draw.segments([f"w{i}" for i in range(len(labels))], segments).svg
    return {label: re.search(rf'fill="(#[0-9a-f]+)"[^>]*>{label}<', svg)[1] for label in labels}


def on_page(known: list[str], labels: list[str]) -> dict[str, tuple[str, str]]:
    """The light and dark tint of each label in a sentence on a page whose model knows some labels."""
    writer = PageWriter("t", "s", {"": known}, {"": "IOB2"})
    words = tuple(f"w{i}" for i in range(len(labels)))
    html = writer.write(Sentence(words), Answer([f"B-{label}" for label in labels], None))
    marks = re.findall(r"--tint:(#.{6})..;--dark-tint:(#.{6})..[^>]*>[^<]*<small>(\w+)<", html)
    return {label: (light, dark) for light, dark, label in marks}


@pytest.mark.parametrize("order", [LABELS, LABELS[::-1], ["LOC", "MISC", "ORG", "PER"]])
def test_a_label_has_one_colour(order: list[str]) -> None:
    expected = drawn(LABELS)
    assert len(set(expected.values())) == len(LABELS)
    assert drawn(order) == expected
    pages = on_page(order, order[1:])
    assert pages == {label: (expected[label], DARK[expected[label]]) for label in order[1:]}
    assert {label: colour_of(label) for label in order} == {label: COLOURS[expected[label]] for label in order}


def test_outside_is_grey() -> None:
    assert drawn(["O", "PER"])["O"] == SOFT not in PALETTE
    assert colour_of("O") not in COLOURS.values()
