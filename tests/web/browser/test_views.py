"""Views of every kind of model: tags, trellis, votes, arcs, trees, strings, and several models side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.web.browser.conftest import TEXT, settled
from trelliswork.draw.svg import colour_of
from trelliswork.models import load
from trelliswork.models.expected_counts import total_counts

WORDS = TEXT.split()


def test_tags_stand_under_their_words(open_page: Any, models: dict[str, Path]) -> None:
    page = open_page("pos")
    assert page.locator(".word .under").all_inner_texts() == load(models["pos"]).predict(TEXT)[0].value


def test_the_trellis_comes_from_the_server_and_follows_pins(open_page: Any) -> None:
    page = open_page("ner", pins="s26-31=LOC")
    page.get_by_role("tab", name="Trellis").click()
    page.wait_for_selector(".panel svg.trelliswork")
    told = page.locator(".panel svg title").all_text_contents()
    assert "P(Chase = B-LOC) = 1.0000" in told and page.locator(".panel style").count() == 0


def test_colours_are_those_of_the_pictures(open_page: Any) -> None:
    page = open_page("ner")
    from_css = page.locator(".span[data-label=PER]").evaluate("e => getComputedStyle(e).getPropertyValue('--label')")
    assert from_css.strip() == colour_of("PER")


def test_votes_name_features_in_words(open_page: Any, models: dict[str, Path]) -> None:
    page = open_page("ner")
    page.locator(".reading .word[data-token='6']").focus()
    page.get_by_role("tab", name="Votes").click()
    page.wait_for_selector(".vote-column")
    explained = load(models["ner"]).explain(load(models["ner"]).sentences_of(TEXT))[0].tokens[6]
    first = page.locator(".vote-column").first
    assert first.locator("tbody th").all_inner_texts() == [vote.words for vote in explained.votes[:8]]
    shown = first.locator("tbody tr").evaluate_all("all => all.map(r => Number(r.dataset.score))")
    assert shown == pytest.approx([vote.score for vote in explained.votes[:8]], abs=1e-9)
    assert page.locator(".vote-column").nth(1).get_attribute("data-label") == explained.rival
    page.locator(".word-chooser select").select_option("4")
    page.wait_for_function("() => document.querySelector('.vote-column .lead').textContent.startsWith('Lincoln')")


def test_counts_are_of_the_whole_text_and_follow_pins(open_page: Any, models: dict[str, Path]) -> None:
    text, model = f"{TEXT} Dr Jordan visited Lincoln.", load(models["ner"])
    ended = "|".join(tag for tag in model.labels.data_tags if tag != "I-LOC")
    for pins, known in (("", None), ("s26-31=LOC", [{6: "B-LOC", 7: ended}, {}])):
        page = open_page("ner", text, pins=pins)
        page.get_by_role("tab", name="Counts").click()
        rows = page.locator(".counts tbody tr")
        rows.first.wait_for()
        totals = sorted(total_counts(model.expected_counts(text, pins=known)), key=lambda each: -each.mean)
        shown = rows.evaluate_all("all => all.map(({ dataset: d }) => [d.label, Number(d.mean), Number(d.deviation)])")
        for (label, mean, deviation), each in zip(shown, totals, strict=True):
            assert label == each.label and (mean, deviation) == pytest.approx((each.mean, each.deviation), abs=1e-4)
        written = rows.first.locator(".weight").inner_text().replace("±", "+-")
        assert f"{written} {totals[0].label}" == str(totals[0])
        assert page.locator(".which").inner_text() == "The whole text"


def arcs_on(page: Any) -> list[tuple[int, str, float]]:
    found = page.eval_on_selector_all(
        ".reading .arc", "all => all.map(a => [Number(a.dataset.head), a.dataset.label, Number(a.dataset.probability)])"
    )
    return [tuple(each) for each in found]


def test_arcs_are_drawn_and_pinned(open_page: Any, models: dict[str, Path]) -> None:
    page, model = open_page("parser"), load(models["parser"])
    best = model.predict(TEXT)[0]
    expected = [(part.head, part.label, pytest.approx(part.probability, abs=1e-6)) for part in best.parts]
    assert arcs_on(page) == expected
    page.locator(".reading .arc[data-token='6'] .arc-label").click()
    second = page.locator("#popover .choice").nth(1)
    label, head = second.locator("b").inner_text(), second.locator("bdi").inner_text().removeprefix("of ")
    second.click()
    settled(page)
    number = 0 if head == "the root" else WORDS.index(head) + 1
    known = model.predict(TEXT, pins=[{6: (number, label)}])[0]
    assert known.value[6] == (number, label) != best.value[6]
    assert arcs_on(page) == [(p.head, p.label, pytest.approx(p.probability, abs=1e-6)) for p in known.parts]
    assert page.locator(".arc[data-pinned=true]").count() == 1
    link = page.url
    other = page.context.new_page()
    other.goto(link)
    other.wait_for_selector(".arc[data-pinned=true]")


def test_arcs_of_right_to_left_text_begin_at_the_right(open_page: Any) -> None:
    page = open_page("parser", "שלום עולם טוב .")
    xs = page.eval_on_selector_all(".arc-word text:first-of-type", "all => all.map(t => Number(t.getAttribute('x')))")
    assert xs == sorted(xs, reverse=True) and len(xs) == 4


def test_constituents_are_drawn_and_pinned(open_page: Any, models: dict[str, Path]) -> None:
    page, model = open_page("phrases"), load(models["phrases"])
    nodes = page.eval_on_selector_all(
        ".constituent", "all => all.map(n => [Number(n.dataset.first), Number(n.dataset.last), n.dataset.label])"
    )
    best = model.predict(TEXT)[0]
    assert sorted(map(tuple, nodes)) == sorted((s.start, s.end, s.label) for s in best.spans)
    assert page.locator(".leaf").all_text_contents() == WORDS


def test_a_constituent_is_pinned(open_page: Any, models: dict[str, Path]) -> None:
    page, model = open_page("chart", pins="b26-42=NP"), load(models["chart"])  # "Chase for Austin" as one phrase
    known = model.predict(TEXT, pins=[[(6, 9, "NP")]], top_k=1)[0]
    pinned = page.locator(".constituent[data-pinned=true]")
    assert pinned.get_attribute("data-label") == "NP" and pinned.get_attribute("data-last") == "9"
    first = float(page.locator(".analysis").first.get_attribute("data-probability"))
    assert first == pytest.approx(known.alternatives[0].probability, abs=1e-9)
    pinned.click()
    page.get_by_role("button", name="Unpin NP").click()
    settled(page)
    free = model.predict(TEXT)[0]
    shown = page.eval_on_selector_all(
        ".constituent", "all => all.map(n => [Number(n.dataset.first), Number(n.dataset.last), n.dataset.label])"
    )
    assert sorted(map(tuple, shown)) == sorted((s.start, s.end, s.label) for s in free.spans)


def test_strings_show_target_and_alignment(open_page: Any, models: dict[str, Path]) -> None:
    page = open_page("sounds", "thoosh\nlap")
    best = load(models["sounds"]).predict(["thoosh", "lap"], top_k=5)
    assert page.locator(".target .value").all_inner_texts() == [each.value for each in best]
    assert "".join(page.locator(".block").first.locator(".source").all_inner_texts()) == "thoosh"
    shown = page.eval_on_selector_all(".analysis", "all => all.map(a => Number(a.dataset.probability))")
    assert shown == pytest.approx([each.probability for each in best[0].alternatives], abs=1e-9)
    page.locator(".block").nth(1).click()
    assert page.locator(".which").inner_text() == "Line 2 of 2"
    page.get_by_role("tab", name="Alignment").click()
    page.wait_for_selector(".panel svg.trelliswork")


def test_models_side_by_side_with_differences_marked(open_page: Any, models: dict[str, Path]) -> None:
    page = open_page("ner")
    page.get_by_role("button", name="Compare several").click()
    page.locator("#models .pill", has_text="quick").click()
    settled(page)
    assert page.locator(".card h2").all_inner_texts() == ["ner", "quick"] and "m=ner,quick" in page.url
    tags = [load(models[name]).predict(TEXT)[0].value for name in ("ner", "quick")]
    expected = [i for i, (a, b) in enumerate(zip(*tags, strict=True)) if a != b]
    assert expected, "these models should not agree everywhere"
    for card in page.locator(".card").all():
        marked = card.locator(".word.differs").evaluate_all("all => all.map(w => Number(w.dataset.token))")
        assert marked == expected
        assert card.locator(".summary").inner_text().startswith(f"{len(expected)} of 10 words")
    page.get_by_role("button", name="Compare several").click()
    settled(page)
    assert page.locator(".card").count() == 1 and page.locator(".differs").count() == 0


def test_a_pin_that_means_nothing_to_a_model_is_told(open_page: Any) -> None:
    page = open_page("ner,pos", pins="s26-31=LOC")
    ner, pos = page.locator(".card").all()
    assert pos.locator(".ignored").inner_text() == "Not for this model: Chase LOC"
    assert ner.locator(".ignored").is_hidden() and ner.locator(".span[data-pinned=true]").count() == 1
