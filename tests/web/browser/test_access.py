"""For everybody: keyboard alone, screen readers, both themes with enough contrast, and a phone's width."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.browser.conftest import TEXT, settled

LEAST_CONTRAST = 4.5
# Of each text that is seen: its colour and what it is painted on, both made of what lies under them.
CONTRASTS = """() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, under) => top.slice(0, 3).map((v, i) => v * top[3] + under[i] * (1 - top[3]));
  const ground = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.push(rgba(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255]);
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => {
    const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const isSeen = element.checkVisibility({checkOpacity: true, checkVisibilityCSS: true});
    if (!isSeen || !walker.currentNode.textContent.trim()) continue;
    if (element.closest('.unseen, .skip, :disabled, option, svg.trelliswork, style, script')) continue;
    const style = getComputedStyle(element);
    const on = element.closest('svg') ? ground(element.closest('svg').parentElement) : ground(element);
    const colour = over(rgba(element.closest('svg') ? style.fill : style.color), on);
    found.push([ratio(colour, on), walker.currentNode.textContent.trim().slice(0, 30), element.className.toString()]);
  }
  return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_enough_contrast(open_page: Any, scheme: str) -> None:
    page = open_page("ner,quick,pos", pins="s26-31=LOC", color_scheme=scheme)
    page.get_by_role("tab", name="Votes").first.click()
    page.wait_for_selector(".votes")
    page.locator(".reading .word").first.click()
    page.wait_for_selector("#popover:not([hidden])")
    found = page.evaluate(CONTRASTS)
    page.keyboard.press("Escape")
    for models in ("parser", "phrases", "sounds"):
        if page.locator(".card").count() > 1:
            page.locator("#compare").click()
        page.locator("#models .pill", has_text=models).click()
        settled(page)
        found += page.evaluate(CONTRASTS)
    assert len(found) > 200
    assert [each for each in found if each[0] < LEAST_CONTRAST] == []


def test_dark_by_preference_and_by_the_switch(open_page: Any) -> None:
    def paper(page: Any) -> str:
        found: str = page.locator(".card").first.evaluate("e => getComputedStyle(e).backgroundColor")
        return found

    light, dark = "rgb(255, 255, 255)", "rgb(18, 24, 32)"
    page = open_page("ner", color_scheme="dark")
    assert paper(page) == dark
    page.locator("#theme").click()
    assert paper(page) == light and page.locator("#theme").inner_text() == "Theme: light"
    page.locator("#theme").click()
    page.reload()
    page.wait_for_selector(".card:not([aria-busy])")
    page.emulate_media(color_scheme="light")
    assert paper(page) == dark and page.locator("#theme").inner_text() == "Theme: dark"
    page.get_by_role("tab", name="Trellis").click()
    page.wait_for_selector(".panel svg.trelliswork")
    assert page.locator(".panel svg rect").first.evaluate("e => getComputedStyle(e).fill") == dark


@pytest.mark.parametrize("names", ["ner,quick", "pos", "parser", "phrases", "sounds"])
def test_nothing_is_wider_than_a_phone(open_page: Any, names: str) -> None:
    page = open_page(names, viewport={"width": 360, "height": 740}, has_touch=True)
    widths = "() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    wide, screen = page.evaluate(widths)
    assert wide <= screen
    for tab in page.get_by_role("tab").all():
        tab.click()
        page.wait_for_timeout(50)
    wide, screen = page.evaluate(widths)
    assert wide <= screen
    page.locator(".reading .word").first.click()
    box = page.locator("#popover").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= screen


@pytest.mark.parametrize("width", [320, 360, 390])
def test_teaching_is_no_wider_than_a_phone(open_page: Any, width: int) -> None:
    page = open_page("ner", viewport={"width": width, "height": 740}, has_touch=True)
    page.click("#mode-teach")
    page.wait_for_selector(".opening, .desk .reading .word")
    if page.locator(".opening").count() == 0:
        page.get_by_role("button", name="Another file").click()
    page.wait_for_selector(".opening-choices select")
    widest = "() => Math.max(...[...document.querySelectorAll('main *')].map((e) => e.getBoundingClientRect().right))"
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    assert page.evaluate(widest) <= width


def test_everything_by_keyboard(open_page: Any) -> None:
    page = open_page("ner")
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.textContent") == "Skip to the answer"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.className") == "word"
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    assert page.evaluate("() => document.activeElement.innerText") == "Chase"
    assert page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.getAttribute('role')") == "option"
    page.keyboard.press("ArrowDown")
    chosen = page.evaluate("() => document.activeElement.dataset.label")
    page.keyboard.press("Enter")
    settled(page)
    assert chosen in page.locator(".pin b").inner_text()
    assert page.evaluate("() => document.activeElement.innerText").startswith("Chase")  # the focus is where it was
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    assert page.evaluate("() => document.activeElement.innerText").startswith("Chase")
    page.keyboard.press("Control+z")
    settled(page)
    assert page.locator(".pin").count() == 0
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    assert page.locator("#help").is_hidden()
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.getAttribute('role')") == "tab"
    page.keyboard.press("ArrowRight")
    assert page.evaluate("() => document.activeElement.textContent") == "Trellis"


def test_names_and_roles(open_page: Any) -> None:
    page = open_page("ner")
    assert page.get_by_role("textbox", name="Your text").count() == 1
    assert page.get_by_role("article", name="Answer of ner").count() == 1
    word = page.get_by_role("button", name="Chase: B-ORG 41%, unsure: 2.28 bits")
    assert word.get_attribute("aria-haspopup") == "dialog"
    assert page.get_by_role("status").first.get_attribute("aria-live") == "polite"
    unnamed = page.evaluate(
        "() => [...document.querySelectorAll('button, select, input, textarea, [role=button]')]"
        ".filter(e => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length)).length"
    )
    assert unnamed == 0
    word.click()
    assert page.get_by_role("dialog", name="Chase").get_by_role("option").count() > 5


def test_a_link_to_models_that_are_not_there_says_so(open_page: Any) -> None:
    page = open_page("other", TEXT)
    assert page.locator("#text-note").inner_text() == "The link names other, which this server does not have."
    assert page.locator(".card h2").inner_text() == "ner"


def test_no_script_or_style_is_inline(open_page: Any) -> None:
    page = open_page("ner")
    answer = page.request.get(page.url.split("#")[0])
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self'" in policy and "style-src 'self'" in policy and "unsafe" not in policy
    assert page.locator("script:not([src]), style, [style*=color]").count() == 0


def test_a_token_is_asked_for_and_sent(browser: Any, server: Any) -> None:
    page = browser.new_context().new_page()
    sent: list[str | None] = []

    def guarded(route: Any) -> None:
        given = route.request.headers.get("authorization")
        sent.append(given)
        if given == "Bearer open sesame":
            route.continue_()
        else:
            body = '{"status": 401, "detail": "expected the token of this server"}'
            route.fulfill(status=401, content_type="application/problem+json", body=body)

    page.route("**/v1/**", guarded)
    page.goto(server.address)
    page.get_by_label("Token").fill("open sesame")
    page.keyboard.press("Enter")
    page.wait_for_selector(".span")
    assert sent[0] is None and set(sent[1:]) == {"Bearer open sesame"}
    page.context.close()
