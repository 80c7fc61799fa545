"""Screenshots of every view of the page for the docs: `python -m tests.web.browser.screenshots [FOLDER]`.

The models are trained on the built-in corpus, in PAGE_MODELS if that names a folder.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import sync_playwright

from tests.web.browser.conftest import ARGUMENTS, CHROMIUM, TEXT, address, settled
from tests.web.browser.models import train_models
from tests.web.browser.server import Server
from tests.web.browser.small_png import make_small
from trelliswork.data.corpus import as_sentences, builtin_corpus

FOLDER = Path("docs/images/page")
DESK, PHONE = {"width": 1120, "height": 760}, {"width": 360, "height": 740}
SENTENCES = TEXT + " Dr Jordan visited Lincoln on Monday."
Act = Callable[[Any], None]


class Shot(NamedTuple):
    """A picture: its name, the models, text and pins of the page, what is done there, and how it is shown."""

    name: str
    models: str
    act: Act | None = None
    text: str = TEXT
    pins: str = ""
    scheme: str = "light"
    is_phone: bool = False


def tab(name: str, wanted: str) -> Act:
    """Open a tab under the answer and wait for what it shows."""

    def act(page: Any) -> None:
        page.locator(".reading .word[data-token='6']").first.focus()
        page.get_by_role("tab", name=name).first.click()
        page.wait_for_selector(wanted)

    return act


def popover(page: Any) -> None:
    page.locator(".reading .word[data-token='6']").first.click()


def first_piece(page: Any) -> None:
    page.locator(".chunk").first.click()


def a_constituent(page: Any) -> None:
    page.locator(".constituent[data-first='3'][data-last='5']").last.click()


def teach_tree(page: Any) -> None:
    """A tree with one arc changed, in a set of its own."""
    page.click("#mode-teach")
    page.wait_for_selector(".opening, .desk .reading .word")
    if page.locator(".opening").count() == 0:
        page.get_by_role("button", name="Another file").click()
    page.select_option("#teach-model", "parser")
    content = b"She saw the man with a telescope .\nIn May , May Lincoln left Chase for Austin .\n"
    page.set_input_files("#teach-file", {"name": "trees.tok", "mimeType": "text/plain", "buffer": content})
    page.wait_for_selector(".desk:not([aria-busy]) .reading .arc")
    page.wait_for_timeout(500)
    page.locator(".desk .word[data-token='3']").focus()
    page.keyboard.press("a")
    page.keyboard.press("2")
    page.wait_for_selector(".desk .arc[data-pinned=true]")


def teach_opening(page: Any) -> None:
    page.click("#mode-teach")
    page.wait_for_selector(".opening")


def teach_desk(page: Any) -> None:
    """A sentence with something confirmed; the set is opened by the first picture of it."""
    page.click("#mode-teach")
    page.wait_for_selector(".opening, .desk .reading .word")
    if page.locator(".opening").count():
        lines = [" ".join(each.words) for each in as_sentences(builtin_corpus(seed=7, sizes=(40, 1, 1))["train"])]
        content = {"name": "news.tok", "mimeType": "text/plain", "buffer": "\n".join(lines).encode()}
        page.set_input_files("#teach-file", content)
        for _ in range(7):
            page.wait_for_selector(".desk:not([aria-busy]) .reading .word:focus")
            page.keyboard.press("Enter")
            page.wait_for_timeout(400)
    page.wait_for_selector(".desk:not([aria-busy]) .reading .word")
    page.locator(".desk .reading .word").first.focus()
    page.keyboard.press("Space")
    page.wait_for_selector(".desk .pin-icon")


def training(page: Any) -> None:
    teach_desk(page)
    page.get_by_role("button", name="Train on what I taught").click()
    page.wait_for_selector(".outcome", timeout=120_000)
    page.locator(".log-box summary").click()


def help_window(page: Any) -> None:
    page.click("#help-open")


SHOTS = (
    Shot("names", "ner", text=SENTENCES),
    Shot("names-dark", "ner", text=SENTENCES, scheme="dark"),
    Shot("names-phone", "ner", is_phone=True),
    Shot("choices", "ner", popover),
    Shot("choices-phone", "ner", popover, is_phone=True),
    Shot("pins", "ner", pins="s26-31=LOC"),
    Shot("trellis", "ner", tab("Trellis", ".panel svg"), pins="s26-31=LOC"),
    Shot("trellis-dark", "ner", tab("Trellis", ".panel svg"), pins="s26-31=LOC", scheme="dark"),
    Shot("votes", "ner", tab("Votes", ".votes")),
    Shot("counts", "ner", tab("Counts", ".counts tbody tr"), text=SENTENCES),
    Shot("tags", "pos", text=SENTENCES),
    Shot("arcs", "parser"),
    Shot("arcs-dark", "parser", popover, scheme="dark"),
    Shot("arcs-phone", "parser", is_phone=True),
    Shot("tree", "phrases"),
    Shot("tree-dark", "phrases", scheme="dark"),
    Shot("strings", "sounds", text="thoosh\nlap"),
    Shot("strings-dark", "sounds", text="thoosh", scheme="dark"),
    Shot("strings-phone", "sounds", text="thoosh\nlap", is_phone=True),
    Shot("pieces", "sounds", first_piece, text="thoosh\nlap"),
    Shot("grammar", "phrases", a_constituent),
    Shot("compare", "ner,quick", text=SENTENCES),
    Shot("compare-dark", "ner,quick", text=SENTENCES, scheme="dark"),
    Shot("compare-phone", "ner,quick", is_phone=True),
    Shot("help", "ner", help_window),
    Shot("teach-open", "ner", teach_opening),
    Shot("teach", "ner", teach_desk),
    Shot("teach-dark", "ner", teach_desk, scheme="dark"),
    Shot("teach-phone", "ner", teach_desk, is_phone=True),
    Shot("training", "ner", training),
    Shot("teach-tree", "parser", teach_tree),
    Shot("teach-tree-phone", "parser", teach_tree, is_phone=True, scheme="dark"),
)


def take(browser: Any, server: Server, shot: Shot, folder: Path) -> None:
    """Take one picture, of the whole page unless something lies over it."""
    context = browser.new_context(viewport=PHONE if shot.is_phone else DESK, color_scheme=shot.scheme)
    page = context.new_page()
    page.goto(server.address + address(shot.models, shot.text, shot.pins))
    page.wait_for_selector(".card")
    settled(page)
    if shot.act is not None:
        shot.act(page)
    page.wait_for_timeout(300)
    is_over = shot.act in (popover, first_piece, a_constituent, help_window)
    path = folder / f"{shot.name}.png"
    page.screenshot(path=path, full_page=not is_over)
    make_small(path)
    context.close()


def main() -> None:
    """Take all pictures, or those whose names are given behind the folder."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    wanted = set(sys.argv[2:])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        models = train_models(Path(os.environ.get("PAGE_MODELS") or place))
        server = Server(models.values(), Path(place) / "teaching")
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(ARGUMENTS))
                for shot in SHOTS:
                    if not wanted or shot.name in wanted:
                        take(browser, server, shot, folder)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
