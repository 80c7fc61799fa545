"""A tree over its tokens: parents centred over their children, all tokens on one line at the bottom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from trelliswork.draw.inputs import as_texts
from trelliswork.draw.svg import (
    HEAT,
    INK,
    LINE,
    MARGIN,
    SOFT,
    Drawing,
    drawing,
    element,
    path_data,
    text,
    text_width,
)
from trelliswork.errors import ScoreError

LEVEL, GAP, LETTER = 50.0, 16.0, 14.0
MOST_NODES = 20_000
BEND = (
    LEVEL - LETTER - 6
)  # a line leaves its parent slanted over this height, and is upright below it, clear of taller sisters


@dataclass
class Box:
    """A node or a token, with the room its subtree takes."""

    label: str
    is_token: bool
    children: list[Box] = field(default_factory=list)
    width: float = 0.0
    height: int = 0  # levels above the tokens
    x: float = 0.0


def tree(tree: object, tokens: Sequence[str] | None = None) -> Drawing:
    """Anything with `.label` and `.children`; children are of the same kind, or tokens (any other object).

    `tokens` are written in place of the leaves, in order; under them where the leaves are nodes without children.
    """
    boxes = _boxes(tree)
    if tokens is not None:
        boxes = _with_tokens(boxes, as_texts(tokens, "tokens"))
    root = boxes[0]
    _measure(boxes)
    _place(root, boxes)
    bottom = MARGIN + LETTER + LEVEL * root.height
    parts = [
        *(_branch(box, child, bottom) for box in boxes for child in box.children),
        *(_name(box, bottom) for box in boxes),
    ]
    sentence = " ".join(box.label for box in _leaves(root))
    return drawing(root.width + 2 * MARGIN, bottom + MARGIN, f"Tree of: {sentence}", _bracket_text(root), parts)


# --- reading -------------------------------------------------------------------------------------------------


def _boxes(tree: object) -> list[Box]:
    """Return the nodes and tokens, each before its children; without recursion, for trees of any depth."""
    if not hasattr(tree, "label") or not hasattr(tree, "children"):
        raise ScoreError(f"a tree has .label and .children; got {type(tree).__name__}; pass its root node")
    root = Box(str(tree.label), is_token=False)
    boxes, waiting = [], [(tree, root)]
    while waiting:
        node, box = waiting.pop()
        boxes.append(box)
        if len(boxes) > MOST_NODES:
            raise ScoreError(f"a tree may have {MOST_NODES} nodes; got more; look for a node that contains itself")
        children = () if box.is_token else tuple(node.children or ())
        box.children = [_box(child) for child in children]
        waiting.extend(reversed(list(zip(children, box.children, strict=True))))
    return boxes


def _box(child: Any) -> Box:
    is_node = hasattr(child, "label") and hasattr(child, "children")
    return Box(str(child.label if is_node else child), is_token=not is_node)


def _with_tokens(boxes: list[Box], tokens: Sequence[str]) -> list[Box]:
    leaves = _leaves(boxes[0])
    if len(leaves) != len(tokens):
        raise ScoreError(f"tokens must be as many as the tree has leaves, {len(leaves)}; got {len(tokens)}")
    added = []
    for leaf, token in zip(leaves, tokens, strict=True):
        if leaf.is_token:
            leaf.label = token
        else:
            leaf.children.append(Box(token, is_token=True))
            added.append(leaf.children[0])
    return boxes + added


def _leaves(root: Box) -> list[Box]:
    leaves, waiting = [], [root]
    while waiting:
        box = waiting.pop()
        waiting.extend(reversed(box.children))
        if not box.children:
            leaves.append(box)
    return leaves


# --- layout --------------------------------------------------------------------------------------------------


def _measure(boxes: Sequence[Box]) -> None:
    """Bottom up: how much room each subtree takes, and how high it is."""
    # A node without children is not a token: if there are tokens, it is drawn above their line.
    lowest = 1 if any(box.is_token for box in boxes) else 0
    for box in reversed(boxes):
        below = sum(child.width for child in box.children) + GAP * max(len(box.children) - 1, 0)
        box.width = max(text_width(box.label, bold=True), below)
        box.height = max((child.height + 1 for child in box.children), default=0 if box.is_token else lowest)


def _place(root: Box, boxes: Sequence[Box]) -> None:
    """Top down: children side by side in the room of their parent, the parent over the middle of them."""
    lefts = {id(root): MARGIN}
    for box in boxes:
        left = lefts[id(box)]
        inner = sum(child.width for child in box.children) + GAP * max(len(box.children) - 1, 0)
        at = left + (box.width - inner) / 2
        box.x = left + box.width / 2
        for child in box.children:
            lefts[id(child)] = at
            at += child.width + GAP


def _branch(parent: Box, child: Box, bottom: float) -> str:
    start, end = bottom - LEVEL * parent.height + 5, bottom - LEVEL * child.height - LETTER - 1
    turn = start + BEND
    line = path_data("M", parent.x, start, "L", child.x, turn, "V", max(end, turn))
    colour = LINE if child.is_token else SOFT
    return element("path", d=line, fill="none", stroke=colour, stroke_width=1.5, stroke_linejoin="round")


def _name(box: Box, bottom: float) -> str:
    if box.is_token:
        return text(box.x, bottom, box.label, fill=INK, font_weight=600)
    return text(box.x, bottom - LEVEL * box.height, box.label, fill=HEAT, font_weight=600)


def _bracket_text(root: Box) -> str:
    """Return the tree in brackets, as a description."""
    pieces: list[str] = []
    waiting: list[Box | str] = [root]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            pieces.append(each)
        elif each.is_token:
            pieces.append(f" {each.label}")
        else:
            pieces.append(f" ({each.label}")
            waiting.append(")")
            waiting.extend(reversed(each.children))
    return "".join(pieces).strip()
