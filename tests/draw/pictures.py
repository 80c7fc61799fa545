"""Reading a drawing back: its texts, the room they take, and whether everything lies on the paper."""

from __future__ import annotations

import re
from itertools import combinations
from typing import NamedTuple
from xml.etree import ElementTree

from trelliswork.draw import Drawing
from trelliswork.draw.svg import DARK, text_width

SVG = "{http://www.w3.org/2000/svg}"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


class Text(NamedTuple):
    content: str
    left: float
    right: float
    top: float
    bottom: float


class Circle(NamedTuple):
    x: float
    y: float
    radius: float


def root_of(drawing: Drawing) -> ElementTree.Element:
    return ElementTree.fromstring(drawing.svg)


def texts_of(drawing: Drawing) -> list[Text]:
    found = []
    for element in root_of(drawing).iter(f"{SVG}text"):
        content, size = element.text or "", float(element.attrib["font-size"])
        width = text_width(content, size, bold=element.get("font-weight") in ("600", "700"))
        x, y = float(element.attrib["x"]), float(element.attrib["y"])
        left = x - width * {"middle": 0.5, "end": 1.0, "start": 0.0}[element.attrib["text-anchor"]]
        found.append(Text(content, left, left + width, y - 0.75 * size, y + 0.1 * size))
    return found


def circles_of(drawing: Drawing) -> list[Circle]:
    circles = root_of(drawing).iter(f"{SVG}circle")
    return [Circle(*(float(each.attrib[name]) for name in ("cx", "cy", "r"))) for each in circles]


def overlapping(texts: list[Text]) -> list[tuple[str, str]]:
    return [
        (a.content, b.content)
        for a, b in combinations(texts, 2)
        if a.left < b.right and b.left < a.right and a.top < b.bottom and b.top < a.bottom
    ]


def outside(drawing: Drawing) -> list[str]:
    """What leaves the paper: texts, rectangles, circles, and the lines and curves by their points."""
    root = root_of(drawing)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    assert (width, height) == (float(root.attrib["width"]), float(root.attrib["height"]))
    wrong = [t.content for t in texts_of(drawing) if t.left < 0 or t.right > width or t.top < 0 or t.bottom > height]
    for circle in circles_of(drawing):
        if not (circle.radius <= circle.x <= width - circle.radius):
            wrong.append(str(circle))
        if not (circle.radius <= circle.y <= height - circle.radius):
            wrong.append(str(circle))
    for element in root.iter():
        at = {name: float(value) for name, value in element.attrib.items() if NUMBER.fullmatch(value)}
        xs = [at.get(name, 0) for name in ("x1", "x2")] + [at.get("x", 0) + at.get("width", 0)]
        ys = [at.get(name, 0) for name in ("y1", "y2")] + [at.get("y", 0) + at.get("height", 0)]
        if (element.tag != f"{SVG}text" and not all(0 <= x <= width for x in xs)) or not all(
            0 <= y <= height for y in ys
        ):
            wrong.append(element.tag)
        if element.tag == f"{SVG}polygon":
            corners = [tuple(map(float, pair.split(","))) for pair in element.attrib["points"].split()]
            wrong += [f"corner {c}" for c in corners if not (0 <= c[0] <= width and 0 <= c[1] <= height)]
    return wrong


def check(drawing: Drawing, *expected: str) -> None:
    """A drawing that can be shown: well-formed, described, on its paper, its texts there and apart."""
    root = root_of(drawing)
    assert root.attrib["role"] == "img"
    assert [child.tag for child in root][:3] == [f"{SVG}title", f"{SVG}desc", f"{SVG}rect"]
    assert all(child.text for child in list(root)[:2])
    texts = texts_of(drawing)
    missing = set(expected) - {each.content for each in texts}
    assert not missing
    assert overlapping(texts) == []
    assert outside(drawing) == []
    # no ids and no rule for anything but these pictures: they would reach the rest of the page
    assert not [each for each in root.iter() if "id" in each.attrib or ("class" in each.attrib and each is not root)]
    rules = re.fullmatch(r"@media \(prefers-color-scheme:dark\)\{(.*)\}", next(root.iter(f"{SVG}style")).text or "")
    assert rules and all(rule.startswith(".trelliswork [") for rule in rules[1].split("}") if rule)
    assert {each.get(name) for each in root.iter() for name in ("fill", "stroke")} <= {None, "none", *DARK}
