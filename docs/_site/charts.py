"""Charts of the stored results, put at the top of their pages: bars for times, dots for scores."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.accuracy.runs import RUNS

RESULTS = Path(__file__).parents[1] / "results"
WIDTH, ROW, LETTER = 700, 22, 6.4
Rows = list[tuple[str, list[float]]]


class Chart(NamedTuple):
    """What is shown: a title, an amount or several for each label, and how they are written."""

    title: str
    rows: Rows
    shape: Callable[[float], str] = "{:.2f}".format
    log: bool = False
    ours: str = ""


def added(text: str, name: str) -> str:
    """A page of results with its chart before its first section or table."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        return text
    made = chart_of(name, json.loads(path.read_text(encoding="utf-8")))
    if made is None or not made.rows:
        return text
    picture = f'<figure class="drawing">{svg(made)}<figcaption>{escape(made.title)}</figcaption></figure>\n\n'
    place = min((text.find(mark) for mark in ("\n## ", "\n| ") if mark in text), default=len(text))
    return f"{text[:place]}\n{picture}{text[place:].lstrip()}"


def chart_of(name: str, found: Any) -> Chart | None:
    if name.startswith("bench-"):
        rows = [(f"{each['task']}: {peer}", [ratio]) for each in first_sizes(found) for peer, ratio in peers(each)]
        return Chart(
            "Times as long as Trelliswork takes, at the first size of each task", rows, "{:,.1f}x".format, log=True
        )
    return CHARTS[name](found) if name in CHARTS else None


def ratio(name: str, task: str, peer: str) -> str:
    """How many times as long a peer takes, as the stored results have it, at the first size of a task."""
    found = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    times = next(dict(peers(each))[peer] for each in first_sizes(found) if each["task"] == task)
    return f"{times:.1f}x" if times < 10 else f"{times:,.0f}x"


def first_sizes(found: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first row of each task, as far as it has times of peers."""
    seen: dict[str, dict[str, Any]] = {}
    for each in found:
        if "ratios" in each and "F1" not in each["task"]:
            seen.setdefault(each["task"], each)
    return list(seen.values())


def peers(each: dict[str, Any]) -> list[tuple[str, float]]:
    """Ratios of the peers on one thread."""
    return [(name.removesuffix("@1"), ratio) for name, ratio in each["ratios"].items()
            if name.endswith("@1") and name != "trelliswork@1" and math.isfinite(ratio) and ratio > 0]  # fmt: skip


# --- charts by page ------------------------------------------------------------------------------------------


def accuracy(found: list[dict[str, Any]]) -> Chart:
    titles = {run.name: run.title for run in RUNS if run.corpus.title.startswith("CoNLL-2000")}
    rows: dict[str, list[float]] = {}
    for each in found:
        if each["name"] in titles:
            rows.setdefault(titles[each["name"]], []).append(each["f1"])
    return Chart("CoNLL-2000 chunking: F1 on the test set in per cent, one dot for each seed", list(rows.items()))


def parsing(found: list[dict[str, Any]]) -> Chart:
    rows = [
        (f"{each['name']}: {key.upper()}", [100 * each["test"][key]])
        for each in found for key in ("uas", "las", "f1") if key in each.get("test", {})
    ]  # fmt: skip
    return Chart("Test scores in per cent", rows)


def transduction(found: list[dict[str, Any]]) -> Chart:
    rows = [
        (each["name"], [100 * each["test"]["word_error_rate"]])
        for each in found
        if "word_error_rate" in each.get("test", {})
    ]
    return Chart("Word error rate on the test set in per cent; less is better", rows, "{:.1f}".format)


def parser_speed(found: list[dict[str, Any]]) -> Chart:
    rows = [
        (f"{each['contest']}: {name}", [speed])
        for each in found
        for name, speed in each["sentences_per_second"].items()
    ]
    return Chart("Sentences per second", rows, "{:,.0f}".format, log=True)


def ocr(found: list[dict[str, Any]]) -> Chart:
    rows: dict[str, list[float]] = {}
    for each in found:
        rows.setdefault(each["model"], []).append(each["error"])
    return Chart("Per cent of letters in error, one dot for each fold; less is better", list(rows.items()))


def ocr_neural(found: dict[str, Any]) -> Chart:
    rows = [(name, [each["error"] for each in folds.values()]) for name, folds in found.items()]
    return Chart("Per cent of letters in error, one dot for each fold; less is better", rows)


def entities(found: dict[str, Any]) -> Chart:
    rows = [(f"{each['trained_on']}, {each['models']}, {each['answer']}", list(each["test"])) for each in found["rows"]]
    return Chart("Strict F1 on the test set, one dot for each run", rows)


def attributes(found: dict[str, Any]) -> Chart:
    return Chart("Test F1 in per cent", [(name, [each["f1"]]) for name, each in found.items()])


CHARTS: dict[str, Callable[[Any], Chart]] = {
    "accuracy": accuracy, "parsing": parsing, "transduction": transduction, "parser-speed": parser_speed, "ocr": ocr,
    "ocr-neural": ocr_neural, "entities": entities, "attributes": attributes,
}  # fmt: skip


# --- drawing -------------------------------------------------------------------------------------------------


def svg(chart: Chart) -> str:
    """A line for each row: bars from 1 on a log scale, or dots between the least and the largest."""
    values = [value for _, row in chart.rows for value in row]
    low, high = limits(values, chart.log)
    height = ROW * len(chart.rows) + 34
    left = LETTER * max(len(short(label)) for label, _ in chart.rows) + 14

    def x(value: float) -> float:
        share = (scale(value, chart.log) - scale(low, chart.log)) / (scale(high, chart.log) - scale(low, chart.log))
        return left + share * (WIDTH - left - 80)

    parts = [axis(tick, x(tick), height, chart) for tick in ticks(low, high, chart.log)]
    for i, (label, row) in enumerate(chart.rows):
        y = ROW * i + ROW / 2 + 2
        parts.append(text(left - 10, y + 4, short(label), "end"))
        parts.append(
            bar(x(max(low, min(1.0, high))), x(row[0]), y) if chart.log else dots([x(value) for value in row], y)
        )
        parts.append(
            text(
                max([*map(x, row), x(1.0)] if chart.log else map(x, row)) + 9,
                y + 4,
                chart.shape(sum(row) / len(row)),
                "start",
                "value",
            )
        )
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    return (
        f'<svg class="chart" {size} role="img" font-size="12">'
        f"<title>{escape(chart.title)}</title>{''.join(parts)}</svg>"
    )


def limits(values: list[float], log: bool) -> tuple[float, float]:
    low, high = min(values), max(values)
    if log:
        return min(low, 1.0), max(high, 10.0)
    room = max((high - low) * 0.08, 0.5)
    return max(0.0, low - room), high + room


def scale(value: float, log: bool) -> float:
    return math.log10(value) if log else value


def ticks(low: float, high: float, log: bool) -> list[float]:
    if log:
        return [10.0**e for e in range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high)) + 1)]
    step = next(s for s in (0.5, 1, 2, 5, 10, 20, 50) if (high - low) / s <= 8)
    return [step * i for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def axis(tick: float, x: float, height: float, chart: Chart) -> str:
    line = f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height - 22}"/>'
    return line + text(x, height - 8, f"{tick:,g}" if tick < 1e4 else f"{tick:,.0f}", "middle", "tick")


def text(x: float, y: float, words: str, anchor: str, kind: str = "label") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def bar(start: float, end: float, y: float) -> str:
    kind = "bar" if end >= start else "bar slower"
    left, width = min(start, end), max(abs(end - start), 1.5)
    return f'<rect class="{kind}" x="{left:.1f}" y="{y - 6:.1f}" width="{width:.1f}" height="12" rx="2"/>'


def dots(places: list[float], y: float) -> str:
    return "".join(f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x in places)


def short(label: str, most: int = 40) -> str:
    return label if len(label) <= most else label[: most - 1] + "…"
