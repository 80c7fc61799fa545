"""Does it pay to be asked about the uncertain sentences first? A simulated annotator on CoNLL-2000.

    python -m benchmarks.teaching DATA --out docs/results

A CRF over features begins with some labelled sentences of the training file. In each round an order chooses the next
sentences from the rest, the annotator corrects the tags that the model predicts (what is right costs a glance, what is
wrong a correction), and the model is trained again on all that is labelled. Orders are those of `trelliswork serve`:
entropy, margin and expected error, and random for comparison. F1 is that on the official test file, which chooses
nothing. Everything is drawn from the training file by seed. `--points teaching.json` draws an earlier run anew.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trelliswork.data import Sentence, read_conll
from trelliswork.draw.svg import INK, LINE, MARGIN, PALETTE, SOFT, drawing, element, hint, text
from trelliswork.models import FeatureTagger
from trelliswork.models.taggers.features.learners.config import LearningConfig
from trelliswork.web.asking import Question
from trelliswork.web.teaching.uncertainty import uncertainties
from trelliswork.writing import atomic_write

ORDERS = ("random", "entropy", "margin", "error")
EFFORTS = {"sentences": "labelled sentences", "tokens": "labelled tokens", "corrections": "corrected tags"}
WIDTH, HEIGHT, LEFT, BOTTOM = 560.0, 340.0, 60.0, 50.0
Point = dict[str, Any]


def ranked(order: str, model: FeatureTagger, rest: Sequence[Sentence], source: random.Random) -> list[int]:
    """The numbers of the sentences, the next to decide first."""
    if order == "random":
        return source.sample(range(len(rest)), len(rest))
    bare = [Sentence(each.words, features=each.features) for each in rest]
    scores = uncertainties(model, Question("uncertainty", {}, bare, [], [], {}))
    return sorted(range(len(rest)), key=lambda i: -scores[i][order])


def taught(
    order: str, train: list[Sentence], test: list[Sentence], seed: int, sizes: tuple[int, int, int]
) -> list[Point]:
    """The points of one curve: after each round, sentences, tokens, corrections and F1."""
    first, step, most = sizes
    source = random.Random(seed)
    chosen = set(source.sample(range(len(train)), first))
    known = [train[i] for i in sorted(chosen)]
    rest = [each for i, each in enumerate(train) if i not in chosen]
    points: list[Point] = []
    corrections = corrected = 0
    while True:
        model = FeatureTagger.fit(known, LearningConfig(max_iterations=60))
        f1 = model.evaluate(test)["score"]
        tokens = sum(map(len, known))
        points.append({
            "order": order, "seed": seed, "sentences": len(known), "tokens": tokens, "corrections": corrections,
            "corrected_sentences": corrected, "f1": f1,
        })  # fmt: skip
        print(json.dumps(points[-1]), flush=True)
        if len(known) >= most:
            return points
        taken = ranked(order, model, rest, source)[:step]
        asked = [rest[i] for i in taken]
        wrong = [
            sum(a != b for a, b in zip(each.tags or (), found, strict=True))
            for each, found in zip(asked, model.tag(asked), strict=True)
        ]
        corrections, corrected = corrections + sum(wrong), corrected + sum(n > 0 for n in wrong)
        known += asked
        gone = set(taken)
        rest = [each for i, each in enumerate(rest) if i not in gone]


def chart(points: Sequence[Point], x: str, x_title: str) -> str:
    """F1 against an effort, a line for each order, as SVG."""
    curves = {order: mean_curve(points, order, x) for order in ORDERS}
    xs = [each for curve in curves.values() for each, _ in curve]
    ys = [100 * each for curve in curves.values() for _, each in curve]
    x_most, y_least, y_most = max(xs), min(ys) - 0.5, max(ys) + 0.5

    def place(a: float, b: float) -> tuple[float, float]:
        across = LEFT + a / x_most * (WIDTH - LEFT - 90)
        return across, HEIGHT - BOTTOM - (100 * b - y_least) / (y_most - y_least) * (HEIGHT - BOTTOM - 2 * MARGIN)

    parts = [text((WIDTH - 30) / 2, HEIGHT - MARGIN, x_title, fill=SOFT)]
    for tick in range(int(y_least) + 1, int(y_most) + 1, 2):
        _, y = place(0, tick / 100)
        parts.append(element("line", x1=LEFT, y1=y, x2=WIDTH - 90, y2=y, stroke=LINE))
        parts.append(text(LEFT - 8, y + 5, f"{tick}", anchor="end", fill=SOFT))
    for a in ticks(x_most):
        parts.append(text(place(a, 0)[0], HEIGHT - BOTTOM + 18, f"{a:,.0f}", fill=SOFT))
    for (order, curve), colour in zip(curves.items(), PALETTE, strict=False):
        places = [place(*each) for each in curve]
        line = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        parts.append(element("polyline", points=line, fill="none", stroke=colour, stroke_width=2))
        for (a, b), (effort, f1) in zip(places, curve, strict=True):
            told = hint(f"{order}: F1 {100 * f1:.2f} at {effort:,.0f}")
            parts.append(element("circle", told, cx=f"{a:.1f}", cy=f"{b:.1f}", r=3, fill=colour))
    for i, order in enumerate(ORDERS):
        parts.append(text(WIDTH - 84, 40 + 20 * i, order, anchor="start", fill=PALETTE[i]))
    parts.append(text(MARGIN, 2 * MARGIN, "F1", anchor="start", fill=INK))
    told = f"F1 on the CoNLL-2000 test file against {x_title}, for four orders of sentences."
    return drawing(WIDTH, HEIGHT, f"F1 against {x_title}", told, parts).svg


def ticks(most: float) -> list[float]:
    """Round numbers up to a number.

    >>> ticks(1642)
    [0, 500, 1000, 1500]
    """
    step = next(s for s in (10**e * m for e in range(7) for m in (1, 2, 5)) if most / s <= 5)
    return [step * i for i in range(int(most / step) + 1)]


def at_effort(points: Sequence[Point], order: str, x: str, effort: float) -> float:
    """F1 at an effort, on the line between two rounds."""
    curve = mean_curve(points, order, x)
    return float(np.interp(effort, [a for a, _ in curve], [f1 for _, f1 in curve]))


def compared(points: Sequence[Point]) -> str:
    """F1 of each order at the same effort: the largest that all of them reach."""
    rows = ["| at the same number of | " + " | ".join(ORDERS) + " |", "|---" * (len(ORDERS) + 1) + "|"]
    for x, title in EFFORTS.items():
        most = min(mean_curve(points, order, x)[-1][0] for order in ORDERS)
        found = [f"{100 * at_effort(points, order, x, most):.2f}" for order in ORDERS]
        rows.append(f"| {title}: {most:,.0f} | " + " | ".join(found) + " |")
    return "\n".join(rows)


def mean_curve(points: Sequence[Point], order: str, x: str) -> list[tuple[float, float]]:
    """Effort and F1 after each round, averaged over seeds."""
    sizes = sorted({each["sentences"] for each in points if each["order"] == order})
    found = []
    for size in sizes:
        rows = [each for each in points if each["order"] == order and each["sentences"] == size]
        found.append((sum(each[x] for each in rows) / len(rows), sum(each["f1"] for each in rows) / len(rows)))
    return found


def report(points: Sequence[Point], pool: int, command: str, seconds: float) -> str:
    """The page of results."""
    sizes = sorted({each["sentences"] for each in points})
    seeds = sorted({each["seed"] for each in points})
    rows = ["| order | " + " | ".join(f"{size:,}" for size in sizes) + " |", "|---" * (len(sizes) + 1) + "|"]
    for order in ORDERS:
        curve = mean_curve(points, order, "corrections")
        rows.append(f"| {order} | " + " | ".join(f"{100 * f1:.2f} ({effort:,.0f})" for effort, f1 in curve) + " |")
    return f"""# Teaching: which sentence next?

A simulated annotator on CoNLL-2000 (chunks): a CRF over features (words and the part-of-speech column, 60 iterations of
L-BFGS) begins with {sizes[0]} of the first {pool:,} sentences of the training file, drawn at random; each round
{sizes[1] - sizes[0]} more are chosen from the rest, corrected, and the model is trained again. F1 of spans on the
official test file, which chooses nothing, as the mean of {len(seeds)} seeds ({", ".join(map(str, seeds))}), by the
number of labelled sentences; in brackets how many tags the annotator had to correct so far.

{chr(10).join(rows)}

![F1 against labelled sentences](teaching-sentences.svg)

![F1 against labelled tokens](teaching-tokens.svg)

![F1 against corrected tags](teaching-corrections.svg)

What pays depends on what costs. F1 at the largest effort that all orders reach:

{compared(points)}

Sentences that the model is unsure of are longer and have more to correct. Who pays by the sentence or by the word that
is read gets more from them; who pays by the correction alone, a glance at what is right costing nothing, does better at
random, where a correction comes with more words that only had to be confirmed.

Measured with `{command}` in {seconds:,.0f} s.
"""


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="folder with train.txt and test.txt of CoNLL-2000")
    parser.add_argument("--out", default="docs/results")
    parser.add_argument("--pool", type=int, default=2500, help="sentences to choose from, the first of the file")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--sizes", type=int, nargs=3, default=(50, 50, 400), metavar=("FIRST", "STEP", "MOST"))
    parser.add_argument("--points", help="teaching.json of an earlier run, to be drawn anew")
    given = parser.parse_args()
    found = json.loads(Path(given.points).read_text()) if given.points else run(given)
    points: list[Point] = found["points"]
    files = {
        "teaching.md": report(points, given.pool, found["command"], found["seconds"]),
        "teaching.json": json.dumps(found, indent=1) + "\n",
        **{f"teaching-{x}.svg": chart(points, x, title) for x, title in EFFORTS.items()},
    }
    for name, content in files.items():
        with atomic_write(Path(given.out) / name) as file:
            file.write(content)


def run(given: argparse.Namespace) -> dict[str, Any]:
    """All curves, with the command and the time that they took."""
    train, test = (list(read_conll(Path(given.data) / f"{name}.txt")) for name in ("train", "test"))
    began, sizes = time.perf_counter(), " ".join(map(str, given.sizes))
    points = [
        point for seed in range(given.seeds) for order in ORDERS
        for point in taught(order, train[: given.pool], test, seed, tuple(given.sizes))
    ]  # fmt: skip
    command = f"python -m benchmarks.teaching conll2000 --pool {given.pool} --seeds {given.seeds} --sizes {sizes}"
    return {"command": command, "seconds": time.perf_counter() - began, "points": points}


if __name__ == "__main__":
    main()
