"""An automaton: states from left to right by their distance from the start, arcs with texts, finals ringed twice."""

from __future__ import annotations

import cmath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb, pi

from trelliswork.draw.inputs import as_index, as_list
from trelliswork.draw.svg import (
    ACCENT,
    EMPTY,
    HEAT,
    INK,
    MARGIN,
    PAPER,
    SOFT,
    Drawing,
    arrow_head,
    drawing,
    element,
    hint,
    path_data,
    text,
    text_width,
)
from trelliswork.errors import ScoreError

RADIUS, ENTRY = 20.0, 30.0
Arcs = list[tuple[int, int, str]]


def automaton(arcs: Sequence[tuple[int, int, str]], initial: object, finals: object, n_states: int) -> Drawing:
    """Draw arcs (source, target, text); `initial` is a state or several, `finals` states, or a mapping to texts.

    >>> automaton([(0, 0, "b"), (0, 1, "a"), (1, 0, "b")], 0, [1], 2)  # doctest: +SKIP

    Args:
        arcs: (source, target, text) of each arc.
        initial: A state or several.
        finals: States, or a mapping from states to the texts at them.
        n_states: Number of states.

    Returns:
        The picture; it shows in notebooks, and `save(file)` writes it.
    """
    n = as_index(n_states, "n_states")
    if n < 1:
        raise ScoreError(f"an automaton has at least one state; got n_states = {n_states}")
    edges = _arcs(arcs, n)
    starts = _states(initial, n, "initial")
    ends = dict.fromkeys(_states(finals, n, "finals"), "")
    if isinstance(finals, Mapping):
        ends = {as_index(state, "a final state"): str(note) for state, note in finals.items()}
    names = [f"{state}/{ends[state]}" if ends.get(state) else str(state) for state in range(n)]
    radius = max(RADIUS, *(text_width(name, SMALL) / 2 + 9 for name in names))
    places = positions(layers_of(edges, starts, n), edges, radius)
    entries = [places[state] - radius - ENTRY / 2 for state in starts]
    curves = curves_of(edges, places, radius, entries)
    shift, size = _frame(places, curves, radius)
    parts = [
        *(_entry(places[state] + shift, radius) for state in starts),
        *(_arc(curve, shift, text_) for curve, (_, _, text_) in zip(curves, edges, strict=True)),
        *(_note(curve, shift, text_) for curve, (_, _, text_) in zip(curves, edges, strict=True)),
        *(_state(places[s] + shift, radius, names[s], s in starts, s in ends) for s in range(n)),
    ]
    described = f"Start: {_joined_names(starts)}. End: {_joined_names(ends)}. " + "; ".join(
        f"{s} to {e}: {t}" for s, e, t in edges
    )
    return drawing(size.real, size.imag, f"Automaton with {n} states and {len(edges)} arcs", described, parts)


def _joined_names(states: Iterable[int]) -> str:
    return ", ".join(map(str, states)) or "none"


def _arcs(arcs: object, n: int) -> Arcs:
    checked = []
    for i, arc in enumerate(as_list(arcs, "arcs")):
        if not isinstance(arc, Sequence) or isinstance(arc, str) or len(arc) != 3:
            raise ScoreError(f"an arc is (source, target, text); got {arc!r} at arc {i}")
        source, target = (as_index(state, f"a state of arc {i}") for state in arc[:2])
        for state in (source, target):
            if not 0 <= state < n:
                raise ScoreError(
                    f"states must lie in 0..{n - 1}; got {state} at arc {i}; raise n_states or correct the arc"
                )
        checked.append((source, target, str(arc[2]) or "ε"))
    return checked


def _states(states: object, n: int, name: str) -> list[int]:
    """Return one state, several, or the keys of a mapping."""
    if isinstance(states, (Mapping, set, frozenset)):
        states = sorted(states)
    given = states.tolist() if hasattr(states, "tolist") else states
    several = [given] if isinstance(given, (int, float)) else as_list(given, name)
    indices = [as_index(state, f"a state of {name}") for state in several]
    for state in indices:
        if not 0 <= state < n:
            raise ScoreError(f"{name} must lie in 0..{n - 1}; got {state}")
    return indices


def _frame(places: Sequence[complex], curves: Sequence[Curve], radius: float) -> tuple[complex, complex]:
    """Return what to add to every point, and the size of the picture."""
    xs = [place.real + side for place in places for side in (-radius - ENTRY, radius + 3)]
    ys = [place.imag + side for place in places for side in (-radius - 3, radius + 3)]
    for curve in curves:
        box = curve.label
        xs += [box.middle.real - box.width / 2, box.middle.real + box.width / 2, *(p.real for p in curve.samples)]
        ys += [box.middle.imag - box.height / 2, box.middle.imag + box.height / 2, *(p.imag for p in curve.samples)]
    low = complex(min(xs), min(ys))
    return complex(MARGIN, MARGIN) - low, complex(max(xs), max(ys)) - low + 2 * complex(MARGIN, MARGIN)


def _entry(place: complex, radius: float) -> str:
    tip = place - radius - 2
    return element("line", x1=tip.real - ENTRY + 4, y1=tip.imag, x2=tip.real - 6, y2=tip.imag, stroke=SOFT,
                   stroke_width=2.5) + arrow_head(tip.real, tip.imag, 1.0, 0.0, SOFT)  # fmt: skip


def _arc(curve: Curve, shift: complex, shown: str) -> str:
    first, *inner, last = (point + shift for point in curve.controls)
    heading = (last - inner[-1]) / abs(last - inner[-1])
    stop = last - 5 * heading
    numbers = [part for point in (*inner, stop) for part in (point.real, point.imag)]
    line = path_data("M", first.real, first.imag, "C" if len(inner) == 2 else "Q", *numbers)
    head = arrow_head(last.real, last.imag, heading.real, heading.imag, HEAT)
    return element("g", [hint(shown), element("path", d=line, fill="none", stroke=HEAT, stroke_width=1.6), head])


def _note(curve: Curve, shift: complex, shown: str) -> str:
    middle, box = curve.label.middle + shift, curve.label
    back = element(
        "rect", x=middle.real - box.width / 2, y=middle.imag - box.height / 2,
        width=box.width, height=box.height, rx=3, fill=PAPER,
    )  # fmt: skip
    return back + text(middle.real, middle.imag + 4.5, shown, size=SMALL, fill=INK)


def _state(place: complex, radius: float, name: str, is_start: bool, is_end: bool) -> str:
    x, y = place.real, place.imag
    colour = ACCENT if is_end else INK
    circles = [element("circle", cx=x, cy=y, r=radius, fill=EMPTY, stroke=colour, stroke_width=1.8)]
    if is_end:
        circles.append(element("circle", cx=x, cy=y, r=radius - 4, fill="none", stroke=colour, stroke_width=1.4))
    return "".join([*circles, text(x, y + 4.5, name, size=SMALL, font_weight=700 if is_start else None)])


# Curves of arcs that keep clear of each other, and places for their texts.

RADIUS, ROW, LEAST_COLUMN, SMALL = 20.0, 96.0, 120.0, 13.0
BENDS = (0.0, -44.0, 44.0, -80.0, 80.0, -120.0, 120.0, -170.0, 170.0, -230.0, 230.0, -300.0, 300.0)
LOOPS = tuple((side, size) for size in (44.0, 100.0, 156.0, 212.0) for side in (-pi / 2, pi / 2))
PLACES = (0.5, 0.42, 0.58, 0.34, 0.66, 0.27, 0.73)
N_SAMPLES, LOOP_CONTROLS = 24, 4
MOST_WEIGHED = 80  # with more arcs, they heed the states alone: weighing all against all would take long


@dataclass(frozen=True)
class Box:
    """A text's room around its middle."""

    middle: complex
    width: float
    height: float = 18.0

    def holds(self, point: complex, margin: float = 0.0) -> bool:
        away = point - self.middle
        return abs(away.real) < self.width / 2 + margin and abs(away.imag) < self.height / 2 + margin

    def meets(self, other: Box) -> bool:
        away = other.middle - self.middle
        return (
            abs(away.real) < (self.width + other.width) / 2 + 3
            and abs(away.imag) < (self.height + other.height) / 2 + 1
        )


@dataclass(frozen=True)
class Line:
    """One way for an arc: the controls of a Bézier curve from rim to rim, points on it, how far it goes about."""

    controls: tuple[complex, ...]
    samples: tuple[complex, ...]
    effort: float


@dataclass(frozen=True)
class Curve:
    """An arc drawn: its line, and the room of its text."""

    controls: tuple[complex, ...]
    samples: tuple[complex, ...]
    label: Box


def layers_of(arcs: Sequence[tuple[int, int, str]], initial: Sequence[int], n_states: int) -> list[list[int]]:
    """States by their distance from the initial ones; what cannot be reached follows after.

    Args:
        arcs: (source, target, text) of each arc.
        initial: States of the first layer.
        n_states: Number of states.

    Returns:
        The states of each layer.
    """
    targets: dict[int, list[int]] = {state: [] for state in range(n_states)}
    for source, target, _ in arcs:
        targets[source].append(target)
    layers: list[list[int]] = []
    seen: set[int] = set()
    frontier = sorted(set(initial))
    while len(seen) < n_states:
        frontier = frontier or [next(state for state in range(n_states) if state not in seen)]
        seen.update(frontier)
        layers.append(frontier)
        frontier = list(dict.fromkeys(t for s in frontier for t in targets[s] if t not in seen))
    return layers


def positions(layers: Sequence[Sequence[int]], arcs: Sequence[tuple[int, int, str]], radius: float) -> list[complex]:
    """Place a column for each layer, wide enough for the texts; each state near the height of those before it.

    Args:
        layers: States of each column.
        arcs: (source, target, text) of each arc, whose texts need room.
        radius: Radius of a state.

    Returns:
        The centre x + iy of each state.
    """
    column_of = {state: column for column, layer in enumerate(layers) for state in layer}
    places: dict[int, complex] = {}
    x = 0.0
    for column, layer in enumerate(layers):
        if column:
            texts = [t for s, e, t in arcs if {column_of[s], column_of[e]} == {column - 1, column}]
            x += max(LEAST_COLUMN, 2 * radius + 46 + max((text_width(each, SMALL) for each in texts), default=0.0))
        before = {state: [places[s].imag for s, e, _ in arcs if e == state and s in places] or [0.0] for state in layer}
        order = sorted(layer, key=lambda state: (sum(before[state]) / len(before[state]), state))
        for i, state in enumerate(order):
            places[state] = complex(x, (i - (len(order) - 1) / 2) * max(ROW, 2 * radius + 40))
    return [places[state] for state in range(len(places))]


def curves_of(
    arcs: Sequence[tuple[int, int, str]], places: Sequence[complex], radius: float, entries: Sequence[complex]
) -> list[Curve]:
    """Return a curve for each arc, in their order, and then a place for each text; `entries` are kept clear.

    Args:
        arcs: (source, target, text) of each arc.
        places: Centre of each state.
        radius: Radius of a state.
        entries: Centres of the arrows into initial states, which no text may cover.

    Returns:
        A curve with the place of its text for each arc.
    """
    is_weighed = len(arcs) <= MOST_WEIGHED
    lines: dict[int, Line] = {}
    for i in sorted(range(len(arcs)), key=lambda i: _reach(arcs[i], places)):
        ways = _ways(places[arcs[i][0]], places[arcs[i][1]], radius)
        others = list(lines.values()) if is_weighed else []
        lines[i] = min(ways, key=lambda line: line.effort + _hindrance(line, others, places, radius, entries))
    labels: dict[int, Box] = {}
    for i, (_, _, label) in enumerate(arcs):
        spots = _spots(lines[i], text_width(label, SMALL) + 8)
        if is_weighed:
            samples = [point for j, line in lines.items() if j != i for point in line.samples] + list(entries)
            boxes = [*labels.values(), *(Box(place, 2 * radius, 2 * radius) for place in places)]
            labels[i] = min(spots, key=lambda box: _crowding(box, samples, boxes))
        else:
            labels[i] = spots[0]
    return [Curve(lines[i].controls, lines[i].samples, labels[i]) for i in range(len(arcs))]


def _reach(arc: tuple[int, int, str], places: Sequence[complex]) -> tuple[bool, float]:
    """Short arcs choose first; loops, which always find room, last."""
    return arc[0] == arc[1], abs(places[arc[1]] - places[arc[0]])


def _ways(source: complex, target: complex, radius: float) -> list[Line]:
    if source == target:
        candidates = [_loop(source, radius, side, size) for side, size in LOOPS]
    else:
        candidates = [_bow(source, target, radius, bend) for bend in BENDS]
    through = 20.0 if target.real < source.real else 0.0  # a way back reads better around the rest
    efforts = (6.0 * i if i else through for i in range(len(candidates)))
    return [Line(controls, _samples(controls), effort) for controls, effort in zip(candidates, efforts, strict=True)]


def _spots(line: Line, width: float) -> list[Box]:
    """Return candidate positions of an arc's label: on the line, or above a loop."""
    if len(line.controls) == LOOP_CONTROLS:
        top, foot = bezier(line.controls, 0.5), (line.controls[0] + line.controls[-1]) / 2
        return [Box(top + 12 * (top - foot) / abs(top - foot), width)]
    return [Box(bezier(line.controls, place), width) for place in PLACES]


def _loop(centre: complex, radius: float, side: float, size: float) -> tuple[complex, ...]:
    leave, enter = cmath.exp(1j * (side - 0.5)), cmath.exp(1j * (side + 0.5))
    return (
        centre + radius * leave,
        centre + (radius + size) * cmath.exp(1j * (side - 0.55)),
        centre + (radius + size) * cmath.exp(1j * (side + 0.55)),
        centre + (radius + 1) * enter,
    )


def _bow(source: complex, target: complex, radius: float, bend: float) -> tuple[complex, ...]:
    along = (target - source) / abs(target - source)
    control = (source + target) / 2 + bend * along * 1j
    return (
        source + radius * (control - source) / abs(control - source),
        control,
        target + (radius + 1) * (control - target) / abs(control - target),
    )


def bezier(controls: Sequence[complex], t: float) -> complex:
    """Return the point of a Bézier curve at t in 0..1."""
    n = len(controls) - 1
    return sum((comb(n, i) * t**i * (1 - t) ** (n - i) * point for i, point in enumerate(controls)), 0j)


def _samples(controls: Sequence[complex]) -> tuple[complex, ...]:
    return tuple(bezier(controls, (i + 0.5) / N_SAMPLES) for i in range(N_SAMPLES))


def _hindrance(
    line: Line, others: Sequence[Line], places: Sequence[complex], radius: float, entries: Sequence[complex]
) -> float:
    """Rate how badly a line would run: through a state worst, along another line bad, across one tolerable."""
    cost = 0.0
    inner = line.samples[3:-3]
    for place in places:
        cost += 60 * sum(abs(point - place) < radius + 6 for point in inner)
    cost += 30 * sum(abs(point - entry) < 8 for entry in entries for point in inner)
    for other in others:
        if not _rooms_meet(line.samples, other.samples, 9):
            continue
        near = sum(any(abs(point - each) < 9 for each in other.samples[3:-3]) for point in inner)
        cost += 14 * (near > 0) + 15 * max(0, near - 4)
    return cost


def _rooms_meet(mine: Sequence[complex], others: Sequence[complex], margin: float) -> bool:
    """Return whether the rectangles around two lines come near each other: cheaper than all pairs of points."""
    return all(
        min(a) < max(b) + margin and min(b) < max(a) + margin
        for a, b in (
            ([p.real for p in mine], [p.real for p in others]),
            ([p.imag for p in mine], [p.imag for p in others]),
        )
    )


def _crowding(box: Box, samples: Sequence[complex], boxes: Sequence[Box]) -> int:
    return 20 * sum(box.meets(other) for other in boxes) + sum(box.holds(point, 2) for point in samples)
