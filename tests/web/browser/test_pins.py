"""Pins: everything else is computed under them, they can be taken back, and a link carries them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.web.browser.conftest import TEXT, Seen, settled
from trelliswork.models import load

CHASE = 6  # its place among the words of TEXT


def word(page: Any, token: int) -> Any:
    return page.locator(f".reading .word[data-token='{token}']")


def pin(page: Any, token: int, label: str) -> None:
    """Choose a label in the popover of a word."""
    word(page, token).click()
    page.locator("#popover .choice", has=page.locator(f"b:text-is('{label}')")).first.click()
    settled(page)


def behind(model: Any, label: str) -> str:
    """What the word behind a span may be: anything that does not continue it."""
    return "|".join(tag for tag in model.labels.data_tags if tag != f"I-{label}")


def shown_numbers(page: Any) -> tuple[list[float], list[float]]:
    """The probability of each word's tag, and of each of the best answers."""
    words = page.eval_on_selector_all(".reading .word", "all => all.map(w => Number(w.dataset.probability))")
    best = page.eval_on_selector_all(".analysis", "all => all.map(a => Number(a.dataset.probability))")
    return words, best


def test_pinning_and_unpinning_give_the_numbers_of_the_library(open_page: Any, models: dict[str, Path]) -> None:
    page, model = open_page("ner"), load(models["ner"])
    free = shown_numbers(page)
    pin(page, CHASE, "LOC")
    known = model.predict(TEXT, top_k=5, pins=[{CHASE: "B-LOC", CHASE + 1: behind(model, "LOC")}])[0]
    assert known.value[CHASE] == "B-LOC" and known.value != model.predict(TEXT)[0].value
    words, best = shown_numbers(page)
    assert words == pytest.approx([each.probability for each in known.parts], abs=1e-12)
    assert best == pytest.approx([each.probability for each in known.alternatives], abs=1e-12)
    assert page.locator(".span[data-pinned=true]").inner_text().startswith("Chase")
    assert page.locator(".pin").inner_text().split() == ["Chase", "LOC", "×"]
    page.locator(".pin button").click()
    settled(page)
    assert shown_numbers(page) == (pytest.approx(free[0], abs=1e-12), pytest.approx(free[1], abs=1e-12))


def test_alternatives_have_their_probabilities(open_page: Any, models: dict[str, Path]) -> None:
    page = open_page("ner")
    word(page, CHASE).click()
    model = load(models["ner"])
    likely = model.likely_spans(model.sentences_of(TEXT), 0.005)[0]
    expected = {each.label: each.probability for each in likely if (each.start, each.end) == (CHASE, CHASE + 1)}
    expected["none"] = {each.label: each.probability for each in model.choices(TEXT)[0][CHASE].choices}["O"]
    shown = dict(
        page.eval_on_selector_all(
            "#popover .choice-group:first-of-type .choice[data-probability]",
            "all => all.map(c => [c.dataset.label, Number(c.dataset.probability)])",
        )
    )
    assert len(shown) > 3 and shown == pytest.approx(expected, abs=1e-12)
    assert list(shown.values()) == sorted(shown.values(), reverse=True)


def test_undo_and_redo(open_page: Any) -> None:
    page = open_page("ner")
    pin(page, CHASE, "PER")
    pin(page, 8, "LOC")
    page.get_by_role("button", name="Undo").click()
    settled(page)
    assert page.locator(".pin").count() == 1 and "p=s26-31=PER" in page.url
    page.locator(".reading .word").first.focus()
    page.keyboard.press("Control+Z")
    settled(page)
    assert page.locator(".pin").count() == 0 and page.get_by_role("button", name="Undo").is_disabled()
    page.keyboard.press("Control+Shift+Z")
    page.keyboard.press("Control+Shift+Z")
    settled(page)
    assert page.locator(".pin").count() == 2 and page.get_by_role("button", name="Redo").is_disabled()


def test_a_link_reproduces_the_answer(open_page: Any) -> None:
    page = open_page("ner")
    pin(page, CHASE, "LOC")
    page.wait_for_function("() => location.hash.includes('p=s26-31=LOC')")
    link, numbers = page.url, shown_numbers(page)
    other = page.context.new_page()
    other.goto(link)
    other.wait_for_selector(".span[data-pinned=true]")
    settled(other)
    assert shown_numbers(other) == numbers and other.locator("#text").input_value() == TEXT


def test_pins_stay_with_their_words_while_the_text_is_edited(open_page: Any) -> None:
    page = open_page("ner")
    pin(page, CHASE, "PER")
    page.fill("#text", "🎉 " + TEXT)
    settled(page)
    assert page.locator(".span[data-pinned=true]").inner_text().startswith("Chase")
    page.wait_for_function("() => location.hash.includes('s28-33=PER')")
    page.fill("#text", "🎉 " + TEXT.replace("Chase", "Chases"))
    settled(page)
    assert page.locator(".pin").count() == 0


def test_several_words_are_pinned_as_one_span(open_page: Any, models: dict[str, Path]) -> None:
    page = open_page("ner")
    word(page, 4).focus()
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    assert page.locator(".word.selected").count() == 3
    page.keyboard.press("Enter")
    page.locator("#popover .choice", has=page.locator("b:text-is('ORG')")).first.click()
    settled(page)
    model = load(models["ner"])
    known = model.predict(TEXT, pins=[{4: "B-ORG", 5: "I-ORG", 6: "I-ORG", 7: behind(model, "ORG")}])[0]
    assert known.value[4:8] == ["B-ORG", "I-ORG", "I-ORG", "O"]
    assert shown_numbers(page)[0] == pytest.approx([each.probability for each in known.parts], abs=1e-12)
    assert page.locator(".span[data-pinned=true] .letters").all_inner_texts() == ["Lincoln", "left", "Chase"]


def test_a_whole_answer_is_pinned(open_page: Any) -> None:
    page = open_page("ner")
    third = page.locator(".analysis").nth(2)
    expected = third.locator(".mini").all_inner_texts()
    third.get_by_role("button", name="Pin answer 3").click()
    settled(page)
    assert page.locator(".analysis").first.locator(".mini").all_inner_texts()[:4] == expected[:4]
    assert page.locator(".analysis .share").first.inner_text() == "100%"
    page.get_by_role("button", name="Unpin all").click()
    settled(page)
    assert page.locator(".pin").count() == 0


def shares(page: Any) -> dict[str, float]:
    """The choices of the open popover with their probabilities."""
    rows = page.eval_on_selector_all(
        "#popover .choice[data-probability]", "all => all.map(c => [c.dataset.label, Number(c.dataset.probability)])"
    )
    return dict(rows)


def test_pieces_of_a_string_have_choices_and_pins(open_page: Any, models: dict[str, Path]) -> None:
    page, model = open_page("sounds", "lap\n thoosh"), load(models["sounds"])
    page.locator(".block").nth(1).locator(".chunk").first.click()
    expected = {each.label: each.probability for each in model.choices(["thoosh"])[0][0].choices}
    expected["nothing"] = expected.pop("(nothing)")
    assert shares(page) == pytest.approx(expected, abs=1e-12) and expected["ð"] > 0.5 > expected["θ"] > 0.01
    page.locator("#popover .choice", has=page.locator("b:text-is('θ')")).click()
    settled(page)
    known = model.predict(["thoosh"], pins=[{0: "θ"}], top_k=5)[0]
    assert page.locator(".string .value").all_inner_texts() == ["l æ p", known.value]
    best = page.eval_on_selector_all(".analysis", "all => all.map(a => Number(a.dataset.probability))")
    assert best == pytest.approx([each.probability for each in known.alternatives], abs=1e-12)
    assert page.locator(".chunk[data-pinned=true] .source").all_inner_texts() == ["t"]
    page.wait_for_function("() => location.hash.includes('p=p5-6=')")
    page.reload()
    page.wait_for_selector(".chunk[data-pinned=true]")
    page.fill("#text", "lap\nso\n thoosh")  # the pin stays with its letter
    settled(page)
    assert page.locator(".chunk[data-pinned=true] .source").all_inner_texts() == ["t"]
    page.get_by_role("tab", name="Alignment").click()
    page.wait_for_selector(".panel svg")
    page.locator(".chunk[data-pinned=true]").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.locator("#popover .popover-title").inner_text() == "h"


def test_constituents_of_a_grammar_have_choices_and_pins(open_page: Any, models: dict[str, Path]) -> None:
    page, model = open_page("phrases"), load(models["phrases"])
    row = page.locator(".analysis").nth(1)
    part = next(p for p in model.choices(TEXT)[0] if (p.start, p.end) == (3, 5))  # May Lincoln
    page.locator(".constituent[data-first='3'][data-last='5']").first.click()
    wanted = {each.label: each.probability for each in part.choices if each.label}
    found = shares(page)
    assert {label: found[label] for label in wanted} == pytest.approx(wanted, abs=1e-12)
    page.keyboard.press("Escape")
    before = float(row.get_attribute("data-probability"))
    row.get_by_role("button", name="Pin answer 2").click()
    settled(page)
    assert page.locator(".constituent[data-pinned=true]").count() >= 5
    after = page.eval_on_selector_all(".analysis", "all => all.map(a => Number(a.dataset.probability))")
    assert max(after) > before


def test_pins_that_do_not_go_together_are_a_sentence(open_page: Any, seen: Seen) -> None:
    page = open_page("ner", pins="t3-6=O,t7-8=I-PER")
    assert "no answer agrees" in page.locator(".card .problem").inner_text().lower()
    page.get_by_role("button", name="Unpin all").click()
    settled(page)
    assert page.locator(".card .problem").is_hidden()
    assert len(seen.wrong) == 1 and "422" in seen.wrong.pop()


def test_a_pin_of_a_link_that_fits_no_word_is_a_sentence(open_page: Any) -> None:
    page = open_page("ner", pins="t4-5=O")
    assert "take it back" in page.locator(".card .problem").inner_text()
