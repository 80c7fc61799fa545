"""Every picture: all its texts, none over another, everything on the paper; bad input is a sentence."""

from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.draw.pictures import SVG, check, circles_of, root_of, texts_of
from trelliswork import draw
from trelliswork.errors import OutputError, ScoreError

NASTY = ["<b>&\"'", "a\x00b\ud800", "tab\tand\nline", "x" * 200, "日本語", "", "é́"]


@dataclass
class Node:
    label: str
    children: list[Any] = field(default_factory=list)


def random_tree(rng: random.Random, depth: int) -> Node:
    label = rng.choice(["S", "NP", "VP", "ADVP-TMP-WITH-A-LONG-NAME"])
    if depth == 0:
        return Node(label, [rng.choice(["word", "a", "incomprehensibilities"])])
    return Node(label, [random_tree(rng, rng.randrange(depth)) for _ in range(rng.randint(1, 3))])


def random_heads(rng: random.Random, n: int) -> list[int]:
    """Each word hangs from an earlier one in a random order, so that arcs cross."""
    order = rng.sample(range(1, n + 1), n)
    heads = [0] * n
    for i, m in enumerate(order):
        heads[m - 1] = rng.choice(order[:i]) if i else 0
    return heads


# --- the pictures --------------------------------------------------------------------------------------------


def test_trellis() -> None:
    table = torch.tensor([[0.7, 0.3, 0.0], [0.25, 0.5, 0.25]], requires_grad=True)
    picture = draw.trellis(table, ["New", "York"], ["O", "B-LOC", "I-LOC"], best=torch.tensor([0, 1]))
    check(picture, "New", "York", "O", "B-LOC", "I-LOC", "70%", "25%", "0%")
    rings = [each for each in root_of(picture).iter(f"{SVG}circle") if each.get("stroke-width") == "3.5"]
    assert [each.get("fill-opacity") for each in rings] == ["0.7", "0.5"]
    assert draw.trellis(table, ["New", "York"], ["O", "B-LOC", "I-LOC"], best=["O", "B-LOC"]).svg == picture.svg


def test_a_large_trellis_leaves_the_thin_lines_out() -> None:
    n, c = 30, 12
    picture = draw.trellis([[1 / c] * c] * n, [f"w{t}" for t in range(n)], [f"T{j}" for j in range(c)])
    check(picture)
    assert not list(root_of(picture).iter(f"{SVG}line"))


def test_segments() -> None:
    tokens = ["The", "European", "Central", "Bank", "acted"]
    picture = draw.segments(tokens, [(0, 1, "O"), (1, 4, "ORG"), (4, 5, "A-VERY-LONG-LABEL")], [0.9, 0.8, 0.996])
    check(picture, *tokens, "O 90%", "ORG 80%", "A-VERY-LONG-LABEL >99%")
    check(draw.segments(tokens, []), *tokens)


def test_segments_that_overlap_are_stacked() -> None:
    picture = draw.segments(["a", "b", "c"], [(0, 2, "X"), (1, 3, "Y"), (2, 3, "Z")])
    check(picture, "X", "Y", "Z")
    height = {each.content: each.bottom for each in texts_of(picture)}
    assert height["X"] == height["Z"] < height["Y"]


def test_tree_has_its_tokens_on_one_line_under_all_nodes() -> None:
    tree = Node("S", [Node("NP", ["She"]), Node("VP", [Node("V", ["saw"]), Node("NP", ["stars"])])])
    picture = draw.tree(tree)
    check(picture, "S", "NP", "VP", "V", "She", "saw", "stars")
    bottoms = {each.content: each.bottom for each in texts_of(picture)}
    assert bottoms["She"] == bottoms["saw"] == bottoms["stars"] > bottoms["V"] == bottoms["NP"] > bottoms["VP"]
    check(draw.tree(tree, ["He", "saw", "moons"]), "He", "saw", "moons")
    assert "(S (NP She) (VP (V saw) (NP stars)))" in picture.svg


def test_tree_of_bare_nodes_takes_tokens_below() -> None:
    tree = Node("S", [Node("NP"), Node("VP", [Node("V"), Node("NP")])])
    check(draw.tree(tree), "S", "NP", "VP", "V")
    check(draw.tree(tree, ["She", "saw", "stars"]), "S", "NP", "VP", "V", "She", "saw", "stars")
    check(draw.tree(Node("lonely")), "lonely")


@pytest.mark.parametrize("seed", range(4))
def test_trees_of_any_shape_keep_their_texts_apart(seed: int) -> None:
    check(draw.tree(random_tree(random.Random(seed), 5)))


def test_a_deep_tree_needs_no_recursion() -> None:
    tree = Node("leaf", ["end"])
    for _ in range(3000):
        tree = Node("X", [tree, "w"])
    assert len(texts_of(draw.tree(tree))) == 6002


def test_dependencies() -> None:
    tokens = ["A", "hearing", "is", "scheduled", "on", "the", "issue"]
    labels = ["det", "nsubj", "aux", "root", "case", "det", "nmod"]
    picture = draw.dependencies(tokens, [2, 4, 4, 0, 7, 7, 2], labels, [0.9] * 7)
    check(picture, *tokens, *(f"{label} 90%" for label in labels))
    assert len(list(root_of(picture).iter(f"{SVG}polygon"))) == 7


def test_dependencies_take_the_marginals_of_all_arcs() -> None:
    table = torch.zeros(3, 3)
    table[2, 1], table[0, 2] = 0.6, 0.7
    check(draw.dependencies(["She", "sleeps"], torch.tensor([2, 0]), probabilities=table), "60%", "root 70%")


@pytest.mark.parametrize("seed", range(6))
def test_arcs_are_stacked_and_their_labels_apart(seed: int) -> None:
    rng = random.Random(seed)
    n = 11
    tokens = [rng.choice(["a", "of", "parliament", "incomprehensibilities"]) for _ in range(n)]
    labels = [rng.choice(["x", "nsubj:pass", "dep"]) for _ in range(n)]
    check(draw.dependencies(tokens, random_heads(rng, n), labels), *tokens, *labels)


def test_a_longer_arc_runs_over_a_shorter_one() -> None:
    picture = draw.dependencies(["a", "b", "c"], [3, 3, 0], ["long", "short", "root"])
    tops = {each.content: each.top for each in texts_of(picture)}
    assert tops["root"] < tops["long"] < tops["short"] < tops["a"]


def test_automaton() -> None:
    arcs = [(0, 0, "b"), (0, 1, "a"), (1, 0, "c"), (1, 2, "d"), (1, 2, "e"), (2, 0, ""), (0, 2, "skip"), (2, 2, "f")]
    picture = draw.automaton(arcs, 0, [2], 3)
    check(picture, "0", "1", "2", "a", "b", "c", "d", "e", "f", "ε", "skip")
    assert len(circles_of(picture)) == 4, "the final state has two rings"
    assert len(list(root_of(picture).iter(f"{SVG}polygon"))) == len(arcs) + 1, "an arrow for each arc and the start"
    xs = {each.content: each.left for each in texts_of(picture)}
    assert xs["0"] < xs["1"] == xs["2"]


def test_automaton_with_final_weights_and_unreachable_states() -> None:
    check(draw.automaton([(0, 1, "a/0.5")], {0}, {1: "0.25"}, 4), "0", "1/0.25", "2", "3", "a/0.5")
    check(draw.automaton([], 0, [], 1), "0")
    assert draw.automaton([(0, 1, "a")], torch.tensor(0), torch.tensor([1]), 2).svg


@pytest.mark.parametrize("seed", range(4))
def test_the_states_of_an_automaton_stand_apart(seed: int) -> None:
    rng = random.Random(seed)
    arcs = [(rng.randrange(6), rng.randrange(6), rng.choice("abc")) for _ in range(10)]
    picture = draw.automaton(arcs, 0, [5], 6)
    check(picture)
    states = [circle for circle in circles_of(picture) if circle.radius == 20]
    assert len(states) == 6
    gaps = [abs(complex(a.x - b.x, a.y - b.y)) for i, a in enumerate(states) for b in states[:i]]
    assert min(gaps) > 60


def test_a_large_automaton_is_drawn_without_weighing() -> None:
    rng = random.Random(0)
    arcs = [(rng.randrange(40), rng.randrange(40), "a") for _ in range(120)]
    assert len(texts_of(draw.automaton(arcs, 0, [1], 40))) == 160


def test_alignment() -> None:
    table = [[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.0, 0.3, 0.7]]
    picture = draw.alignment(table, ["-", "c", "a"], path=torch.tensor([0, 1, 2]))
    check(picture, "-", "c", "a", "frame", "path", "0", "1", "2")
    cells = [each for each in root_of(picture).iter(f"{SVG}rect") if each.get("fill-opacity")]
    assert [each.get("fill-opacity") for each in cells] == ["0.9", "0.1", "0.2", "0.8", "0.3", "0.7"]
    check(draw.alignment(table, ["-", "c", "a"]))
    check(draw.alignment([[1.0]] * 250, ["long symbol"], [0] * 250))


@pytest.mark.parametrize(
    "picture",
    [
        lambda: draw.trellis([[1.0] * len(NASTY)] * len(NASTY), NASTY, NASTY, best=range(len(NASTY))),
        lambda: draw.segments(NASTY, [(i, i + 1, each) for i, each in enumerate(NASTY)]),
        lambda: draw.tree(Node(NASTY[0], NASTY)),
        lambda: draw.dependencies(NASTY, [0, *range(1, len(NASTY))], NASTY),
        lambda: draw.automaton([(0, 1, each) for each in NASTY], 0, {1: NASTY[0]}, 2),
        lambda: draw.alignment([[0.5] * len(NASTY)] * 2, NASTY, [0, 4]),
    ],
    ids=["trellis", "segments", "tree", "dependencies", "automaton", "alignment"],
)
def test_any_text_can_be_drawn(picture: Any) -> None:
    check(picture(), "<b>&\"'", "日本語", "a\ufffdb\ufffd", "tab⇥and⏎line", "x" * 39 + "…")
    assert "x" * 200 in picture().svg, "the whole of a text that is cut is there on pointing at it"
    assert picture().svg == picture().svg


# --- the drawing ---------------------------------------------------------------------------------------------


def test_a_drawing_is_saved_whole_and_shown(tmp_path: Path) -> None:
    picture = draw.segments(["a"], [(0, 1, "X")])
    target = tmp_path / "picture.svg"
    target.write_text("old")
    picture.save(target)
    assert target.read_text(encoding="utf-8") == picture.svg == picture._repr_svg_()
    assert picture.svg in picture._repr_html_()
    assert len(repr(picture)) < 80, "a prompt shows a line, not the whole file"
    assert [each.name for each in tmp_path.iterdir()] == ["picture.svg"]


@pytest.mark.parametrize("place", ["missing/picture.svg", "."])
def test_a_drawing_that_cannot_be_saved_says_so_and_leaves_nothing(tmp_path: Path, place: str) -> None:
    with pytest.raises(OutputError, match="cannot be written"):
        draw.segments(["a"], []).save(tmp_path / place)
    assert not list(tmp_path.iterdir())


def test_drawing_needs_nothing_but_the_standard_library() -> None:
    code = "import sys, trelliswork.draw; print(sorted({'torch', 'numba', 'numpy', 'scipy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attempt", "sentence"),
    [
        (lambda: draw.dependencies(["a", "b", "c"], [0, 1, 7]), r"heads must lie in 0\.\.3; got 7 at token 3"),
        (lambda: draw.dependencies(["a"], [1]), "cannot be its own head; got 1 at token 1"),
        (lambda: draw.dependencies(["a"], [0, 1]), "heads must be 1, one for each token; got 2"),
        (lambda: draw.dependencies(["a"], [0.5]), "the head of token 1 must be a whole number; got 0.5"),
        (lambda: draw.dependencies(["a"], [0], ["x", "y"]), "labels must be 1"),
        (lambda: draw.dependencies(["a"], [0], probabilities=[0.1, 0.2]), "probabilities must be 1"),
        (lambda: draw.trellis([[1.0]], [], ["A"]), "tokens must not be empty"),
        (lambda: draw.trellis([[1.0]], "word", ["A"]), "tokens must be a list"),
        (lambda: draw.trellis(torch.ones(1, 1, 1), ["a"], ["A"]), r"got \[1, 1, 1\]; pick one row of the batch"),
        (lambda: draw.trellis([[1.0], [1.0, 2.0]], ["a", "b"], ["A"]), "rows of different lengths"),
        (lambda: draw.trellis([[3.2]], ["a"], ["A"]), r"must lie in 0\.\.1; got 3.2 at token 0, tag 0"),
        (lambda: draw.trellis([[float("nan")]], ["a"], ["A"]), "got nan at token 0, tag 0"),
        (lambda: draw.trellis([["high"]], ["a"], ["A"]), "probabilities must be numbers; got 'high'"),
        (lambda: draw.trellis([[1.0]], ["a"], ["A"], best=[1]), r"best must lie in 0\.\.0; got 1 at token 0"),
        (lambda: draw.trellis([[1.0]], ["a"], ["A"], best=["B"]), "got 'B' at token 0"),
        (lambda: draw.segments(["a"], [(0, 2, "X")]), r"got \(0, 2\) at segment 0"),
        (lambda: draw.segments(["a"], [(0, 1)]), r"a segment is \(start, end, label\)"),
        (lambda: draw.tree("(S a)"), r"a tree has \.label and \.children; got str"),
        (lambda: draw.tree(Node("S", ["a"]), ["a", "b"]), "as many as the tree has leaves, 1; got 2"),
        (lambda: draw.automaton([(0, 2, "a")], 0, [1], 2), r"states must lie in 0\.\.1; got 2 at arc 0"),
        (lambda: draw.automaton([(0, 1)], 0, [1], 2), r"an arc is \(source, target, text\)"),
        (lambda: draw.automaton([], 1, [], 1), r"initial must lie in 0\.\.0; got 1"),
        (lambda: draw.automaton([], 0, [], 0), "at least one state"),
        (lambda: draw.alignment([], ["a"]), "at least one frame"),
        (lambda: draw.alignment([[0.5, 0.5]], ["a"]), r"must be \[1, 1\], one row for each frame"),
    ],
)
def test_bad_input_is_a_sentence(attempt: Any, sentence: str) -> None:
    with pytest.raises(ScoreError, match=sentence):
        attempt()


def test_a_tree_that_contains_itself_is_refused() -> None:
    tree = Node("S", [])
    tree.children.append(tree)
    with pytest.raises(ScoreError, match="contains itself"):
        draw.tree(tree)


def test_a_label_has_one_colour_in_every_picture() -> None:
    first = draw.segments(["a", "b"], [(0, 1, "PER"), (1, 2, "LOC")])
    second = draw.segments(["a", "b"], [(0, 1, "LOC"), (1, 2, "ORG")])
    of_first, of_second = (
        {each.text: each.get("fill") for each in root_of(picture).iter(f"{SVG}text") if each.get("font-size") == "12"}
        for picture in (first, second)
    )
    assert of_first["LOC"] == of_second["LOC"]
    assert len({of_first["PER"], of_first["LOC"], of_second["ORG"]}) == 3


def test_an_alignment_of_letters_speaks_of_letters() -> None:
    picture = draw.alignment([[0.9, 0.1], [0.2, 0.8], [0.0, 1.0]], ["c", "a"], columns=["k", "a", "a"])
    check(picture, "k", "a", "c")
    assert "frame" not in picture.svg
    with pytest.raises(ScoreError, match="a text for each of the 3 rows"):
        draw.alignment([[0.9, 0.1], [0.2, 0.8], [0.0, 1.0]], ["c", "a"], columns=["k"])
