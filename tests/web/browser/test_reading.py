"""Typing and reading: what the page shows is what the library says, and an old answer never hides a new one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.web.browser.conftest import TEXT, Seen, settled
from trelliswork.models import load


def spans_on(page: Any) -> list[tuple[str, str, float]]:
    """(words, label, probability) of each span in the text."""
    found = page.eval_on_selector_all(
        ".reading .span",
        "all => all.map(s => [[...s.querySelectorAll('.letters')].map(w => w.textContent).join(' '), "
        "s.dataset.label, Number(s.dataset.probability)])",
    )
    return [tuple(each) for each in found]


def test_typing_shows_the_spans_of_the_library(open_page: Any, models: dict[str, Path]) -> None:
    page = open_page("ner", "")
    page.locator("#text").press_sequentially(TEXT, delay=5)
    page.wait_for_selector(".span")
    settled(page)
    answer = load(models["ner"]).predict(TEXT)[0]
    expected = [(" ".join(answer.inputs[s.start : s.end]), s.label, s.probability) for s in answer.spans]
    assert [(words, label, pytest.approx(p, abs=1e-12)) for words, label, p in expected] == spans_on(page)
    shown = page.locator(".span .label").first.inner_text()
    assert shown.split() == ["DATE", f"{100 * expected[0][2]:.0f}%"]
    assert "New answer" in page.locator("#spoken").inner_text()


def test_the_best_answers_have_exact_probabilities(open_page: Any, models: dict[str, Path]) -> None:
    page = open_page("ner")
    best = load(models["ner"]).predict(TEXT, top_k=5)[0].alternatives
    shown = page.eval_on_selector_all(".analysis", "all => all.map(a => Number(a.dataset.probability))")
    assert shown == pytest.approx([each.probability for each in best], abs=1e-12)
    assert page.locator(".analysis .share").first.inner_text() == f"{100 * best[0].probability:.1f}%"
    rest = 1 - sum(each.probability for each in best)
    assert page.locator(".best .note").inner_text() == f"All others together have {100 * rest:.1f}%."


def test_unsure_words_are_underlined_by_their_entropy(open_page: Any, models: dict[str, Path]) -> None:
    page = open_page("ner")
    entropies = [each.entropy for each in load(models["ner"]).choices(TEXT)[0]]
    shown = page.eval_on_selector_all(
        ".reading .word", "all => all.map(w => Number(w.style.getPropertyValue('--unsure')))"
    )
    expected = [0 if bits < 0.08 else min(1.0, (bits / 2) ** 0.5) for bits in entropies]
    assert shown == pytest.approx(expected, abs=1e-3)
    assert "2.00 bits or more" in page.locator(".legend").inner_text()


def test_an_old_answer_never_hides_a_new_one(open_page: Any) -> None:
    page = open_page("ner")
    held = []

    def slow(route: Any) -> None:
        if "slow" in route.request.post_data:
            held.append(route)  # answered only after the newer question
        else:
            route.continue_()

    page.route("**/v1/predict", slow)
    with page.expect_request(lambda request: "slow" in (request.post_data or "")):
        page.fill("#text", "slow Jordan left .")
    page.fill("#text", "Chase left Austin .")
    page.wait_for_function("() => document.querySelector('.reading').textContent.includes('Chase')")
    assert len(held) == 1
    late = {"results": [{"sentences": [{"tokens": ["slow"], "offsets": [[0, 4]], "value": ["O"]}]}]}
    held[0].fulfill(status=200, content_type="application/json", body=json.dumps(late))
    page.wait_for_timeout(150)
    assert "Chase" in page.locator(".reading").inner_text() and "slow" not in page.locator(".reading").inner_text()


def test_questions_wait_for_a_pause(open_page: Any) -> None:
    page = open_page("ner", "")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "predict" in request.url else None)
    page.evaluate(
        """text => {
          const field = document.querySelector("#text");
          for (const letter of text) { field.value += letter; field.dispatchEvent(new Event("input")); }
        }""",
        "Jordan left Austin .",
    )
    page.wait_for_selector(".span")
    assert len(asked) == 1


def test_offsets_are_code_points_in_any_script(open_page: Any) -> None:
    page = open_page("ner", "👩‍🚀🎉 Jordan לקח את Austin 🎉 in May .")
    words = page.eval_on_selector_all(".reading .letters", "all => all.map(w => w.textContent)")
    assert "Jordan" in words and "Austin" in words and "לקח" in words
    assert page.locator(".reading").evaluate("e => e.textContent").startswith("👩‍🚀🎉 Jordan")
    page.fill("#text", "שלום Jordan")
    settled(page)
    assert page.locator(".reading").evaluate("e => getComputedStyle(e).direction") == "rtl"


def test_of_a_page_of_text_only_what_changes_is_drawn(open_page: Any) -> None:
    text = " ".join([TEXT] * 60)
    page = open_page("ner", text)
    assert page.locator(".reading .sentence").count() == 60
    page.locator("#text").press_sequentially(" Jordan left .")
    settled(page)
    page.wait_for_function("() => document.querySelectorAll('.reading .sentence').length === 61")
    page.evaluate("() => { document.querySelector('.reading .sentence').dataset.mine = 'kept'; }")
    page.locator("#text").press_sequentially(" Chase left .")
    page.wait_for_function("() => document.querySelectorAll('.reading .sentence').length === 62")
    assert page.locator(".reading .sentence[data-mine]").count() == 1  # what has not changed is not drawn anew


def test_a_problem_is_a_sentence_where_it_belongs(open_page: Any, seen: Seen) -> None:
    page = open_page("ner")
    page.fill("#text", "x " * 60_000)
    page.wait_for_selector(".card .problem:not([hidden])")
    assert "expected at most 100,000 characters" in page.locator(".card .problem").inner_text()
    page.fill("#text", TEXT)
    settled(page)
    assert page.locator(".card .problem").is_hidden() and page.locator(".span").count() == 4
    assert len(seen.wrong) == 1 and "413" in seen.wrong.pop()  # what the browser itself says of the status


def test_a_server_that_is_gone_is_told(open_page: Any, seen: Seen) -> None:
    page = open_page("ner")
    page.route("**/v1/predict", lambda route: route.abort())
    page.fill("#text", "Jordan left .")
    page.wait_for_selector(".card .problem:not([hidden])")
    assert "does not answer" in page.locator(".card .problem").inner_text()
    assert len(seen.wrong) == 1 and "ERR_FAILED" in seen.wrong.pop()


def test_the_page_begins_with_a_sentence_that_the_model_was_trained_on(open_page: Any, models: dict[str, Path]) -> None:
    kept = json.loads((models["ner"] / "metrics.json").read_text(encoding="utf-8"))["data"]["examples"]
    lines = (models["ner"].parent / "data" / "train.conll").read_text(encoding="utf-8").split("\n\n")
    trained = {" ".join(line.split("\t")[0] for line in each.splitlines()) for each in lines}
    assert len(kept) == 3 and set(kept) <= trained
    page = open_page("ner", None)
    assert page.locator("#text").input_value() == kept[0]
    shown = [each if len(each) <= 64 else f"{each[:60]}…" for each in kept[1:]]
    assert page.locator("#examples button").all_inner_texts() == shown
