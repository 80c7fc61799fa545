"""Teaching twenty sentences with the keyboard alone, over a restart of the server, and training on them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.web.browser.conftest import Seen
from tests.web.browser.server import Server
from trelliswork.data import read_treebank
from trelliswork.data.corpus import as_sentences, builtin_corpus
from trelliswork.web.teaching.lesson import Lesson
from trelliswork.web.teaching.training import prepare_material

GOLD = as_sentences(builtin_corpus(seed=7, sizes=(20, 1, 1))["train"])


@pytest.fixture
def teaching(models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    """A server of its own, which is killed in between, and the folder of what is taught."""
    folder = tmp_path_factory.mktemp("taught")
    server = Server([models["ner"]], folder)
    yield server, folder
    server.stop()


@contextmanager
def teach_tab(browser: Any, server: Server) -> Iterator[Any]:
    """The page, opened anew, with the tab for teaching chosen by keyboard."""
    seen = Seen()
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    context.set_default_timeout(30_000)
    page = context.new_page()
    seen.watch(page)
    page.goto(server.address)
    page.keyboard.press("Tab")  # skip, brand, Read, Teach
    for _ in range(3):
        page.keyboard.press("Tab")
    page.wait_for_selector("#mode-teach:focus")
    page.keyboard.press("Enter")
    yield page
    context.close()
    assert seen.wrong == []


def taught(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "news" / "taught.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line]


def words_on(page: Any) -> tuple[str, ...]:
    return tuple(page.locator(".desk .reading .word .letters").all_inner_texts())


def tags_on(page: Any) -> list[str]:
    found: list[str] = page.eval_on_selector_all(".desk .reading .word", "all => all.map(w => w.dataset.label)")
    return found


def decided(page: Any, n: int) -> None:
    page.wait_for_function(f"() => document.querySelector('.progress .note')?.dataset.decided === '{n}'")
    answered(page)


def answered(page: Any) -> None:
    """Wait until nothing is asked: the desk takes no decision about an answer that is still on its way."""
    page.wait_for_selector(".desk:not([aria-busy])")


def correct(page: Any, gold: list[str]) -> None:
    """With keys alone make the tags those of `gold`: spans by Shift and arrows, then their number."""
    numbers = {b.get_attribute("data-label"): b.locator("kbd").inner_text() for b in page.locator(".label-key").all()}
    for _ in range(len(gold)):
        shown = tags_on(page)
        wrong = [i for i, (a, b) in enumerate(zip(shown, gold, strict=True)) if a != b]
        if not wrong:
            return
        start = wrong[0]
        while gold[start].startswith("I-"):
            start -= 1
        end = start + 1
        while end < len(gold) and gold[end].startswith("I-"):
            end += 1
        page.keyboard.press("Home")
        for _ in range(start):
            page.keyboard.press("ArrowRight")
        for _ in range(end - start - 1):
            page.keyboard.press("Shift+ArrowRight")
        if end - start == 1:  # one word alone, although it may be inside of a longer span
            page.keyboard.press("Shift+ArrowRight")
            page.keyboard.press("Shift+ArrowLeft")
        page.keyboard.press(numbers[gold[start].partition("-")[2] or "O"])
        page.wait_for_function(
            "([i, tag]) => document.querySelector(`.desk .reading .word[data-token='${i}']`).dataset.label === tag",
            arg=[start, gold[start]],
        )
    assert tags_on(page) == gold


def teach(page: Any, n: int) -> int:
    """Decide sentences until `n` are decided; how many words had to be corrected."""
    by_words = {sentence.words: list(sentence.tags or ()) for sentence in GOLD}
    n_corrected = 0
    while (done := int(page.locator(".progress .note").get_attribute("data-decided"))) < n:
        gold = by_words[words_on(page)]
        n_corrected += sum(a != b for a, b in zip(tags_on(page), gold, strict=True))
        correct(page, gold)
        answered(page)
        page.keyboard.press("Enter")
        decided(page, done + 1)
    return n_corrected


def test_teaching(browser: Any, teaching: tuple[Server, Path], tmp_path: Path) -> None:
    """One session after another on what the one before has left."""
    server, folder = teaching
    with teach_tab(browser, server) as page:
        twenty_sentences_by_keyboard_with_a_kill_in_between(page, server, folder)
    with teach_tab(browser, server) as page:
        training_on_what_was_taught(page)
    with teach_tab(browser, server) as page:
        orders_skips_and_problems(page, tmp_path / "other.txt")


def twenty_sentences_by_keyboard_with_a_kill_in_between(page: Any, server: Server, folder: Path) -> None:
    file = folder.with_name("news.tok")
    file.write_text("".join(" ".join(each.words) + "\n" for each in GOLD), encoding="utf-8")
    page.wait_for_selector("#teach-file", state="attached")
    page.set_input_files("#teach-file", file)
    decided(page, 0)
    n_corrected = teach(page, 8)
    assert len(taught(folder)) == 8

    server.kill()
    server.start()
    page.reload()
    page.click("#mode-teach")
    decided(page, 8)
    n_corrected += teach(page, 19)
    assert n_corrected > 0, "a model that needs no correction tests nothing"

    words = words_on(page)
    page.keyboard.press("Space")  # the first word or span alone is confirmed
    page.wait_for_function("() => /^[1-9]/.test(document.querySelector('.known').textContent)")
    known = int(page.locator(".known").inner_text().split()[0])
    answered(page)
    page.keyboard.press("Shift+Enter")
    decided(page, 20)
    assert page.locator(".done-title").inner_text() == "Every sentence is decided"
    lines = taught(folder)
    last = next(line for line in lines if tuple(line["tokens"]) == words)
    assert sum(tag != "?" for tag in last["tags"]) == known < len(words)

    page.keyboard.press("u")
    page.wait_for_selector(".desk .reading .word")
    answered(page)
    assert words_on(page) == words and len(taught(folder)) == 19
    correct(page, {sentence.words: list(sentence.tags or ()) for sentence in GOLD}[words])
    page.wait_for_selector(".desk .reading .word:focus")
    answered(page)
    page.keyboard.press("Enter")
    decided(page, 20)
    assert {tuple(line["tokens"]): line["tags"] for line in taught(folder)} == {
        sentence.words: list(sentence.tags or ()) for sentence in GOLD
    }


def test_teaching_may_be_chosen_before_the_models_are_listed(browser: Any, teaching: tuple[Server, Path]) -> None:
    held = list[Any]()
    context = browser.new_context()
    page = context.new_page()
    page.route("**/v1/models", lambda route: held.append(route))
    page.goto(teaching[0].address)
    page.click("#mode-teach")
    (request,) = held
    request.continue_()
    page.wait_for_selector("#teach-file", state="attached", timeout=30_000)
    assert page.locator("#mode-teach").get_attribute("aria-current") == "page"
    context.close()


def test_trees_are_taught_whole(browser: Any, models: dict[str, Path], tmp_path: Path) -> None:
    server, folder = Server([models["parser"]], tmp_path), tmp_path / "trees"
    try:
        with teach_tab(browser, server) as page:
            page.wait_for_selector("#teach-file", state="attached")
            content = b"In May , May Lincoln left Chase for Austin .\nShe saw the man with a telescope .\n"
            page.set_input_files("#teach-file", {"name": "trees.tok", "mimeType": "text/plain", "buffer": content})
            decided(page, 0)
            page.select_option("#teach-order", "order")
            page.wait_for_selector(".desk .reading .word[aria-label^='Austin ']")
            one_tree_by_keyboard(page, folder / "taught.conllu")
    finally:
        server.stop()
    mine = Lesson(folder)
    material = prepare_material(mine, str(models["parser"]), {})
    mine.close()
    _, own = read_treebank(models["parser"].parent / "data" / "train.conllu")
    _, both = read_treebank(folder / "train.conllu")
    assert [each.heads for each in both[:-1]] == [each.heads for each in own] and len(both[-1]) == 10
    assert material.dev.name == "dev.conllu" and str(folder / "train.conllu") in material.config.read_text()


def one_tree_by_keyboard(page: Any, file: Path) -> None:
    """Change an arc, which is pinned; half a tree is refused; accept, undo, accept again."""
    page.wait_for_selector(".desk .reading .word:focus")
    page.keyboard.press("Home")
    for _ in range(7):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("a")
    page.wait_for_selector("#popover:not([hidden])")
    page.keyboard.press("2")
    page.wait_for_selector(".desk .arc[data-token='7'][data-pinned=true]")
    answered(page)
    arcs = page.eval_on_selector_all(".desk .arc", "all => all.map(a => [Number(a.dataset.head), a.dataset.label])")
    page.keyboard.press("Shift+Enter")
    assert "whole trees" in page.locator(".desk .problem").inner_text()
    page.keyboard.press("Enter")
    decided(page, 1)
    _, (tree,) = read_treebank(file)
    assert [[head, label] for head, label in zip(tree.heads, tree.tags, strict=True)] == arcs
    page.keyboard.press("u")
    page.wait_for_selector(".desk .reading .word[aria-label^='Austin ']")
    assert file.read_bytes() == b""
    page.wait_for_function("() => /^[1-9]/.test(document.querySelector('.known').textContent)")
    page.wait_for_selector(".desk:not([aria-busy]) .arc[data-token='7'][data-pinned=true]")
    page.keyboard.press("Enter")
    decided(page, 1)
    assert read_treebank(file)[1][0].heads == tree.heads


def training_on_what_was_taught(page: Any) -> None:
    page.get_by_role("button", name="Train on what I taught").click()
    page.wait_for_selector(".log-box[open]")
    page.wait_for_selector(".outcome", timeout=120_000)
    before, after = (float(each) for each in page.locator(".scores dd").all_inner_texts())
    assert 50 < before <= 100 and 50 < after <= 100
    outcome = page.locator(".outcome").inner_text()
    assert ("answers from now on" in outcome) == (after > before)


def orders_skips_and_problems(page: Any, other: Path) -> None:
    page.get_by_role("button", name="Another file").click()
    other.write_text("Jordan left Austin .\nShe slept .\nChase met May Lincoln .\n", encoding="utf-8")
    page.set_input_files("#teach-file", other)
    decided(page, 0)
    page.select_option("#teach-order", "order")
    page.wait_for_function("() => document.querySelector('.desk .reading .letters').textContent === 'Jordan'")
    page.locator(".desk .reading .word").first.focus()
    page.keyboard.press("Shift+Enter")
    assert "Nothing is confirmed yet" in page.locator(".desk .problem").inner_text()
    page.keyboard.press("s")
    page.wait_for_function("() => document.querySelector('.desk .reading .letters').textContent === 'She'")
    page.keyboard.press("a")
    page.wait_for_selector("#popover:not([hidden])")
    page.keyboard.press("Escape")
    page.select_option("#teach-order", "margin")
    page.wait_for_selector(".desk .reading .word:focus")
    page.get_by_role("button", name="Another file").click()
    page.get_by_role("button", name="news").click()
    decided(page, 20)
