"""An automaton: states from left to right by their distance from the start, arcs with texts, finals ringed twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from trelliswork.draw.curves import SMALL, Curve, curves_of, layers_of, positions
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
    described = f"Start: {_listed(starts)}. End: {_listed(ends)}. " + "; ".join(f"{s} to {e}: {t}" for s, e, t in edges)
    return drawing(size.real, size.imag, f"Automaton with {n} states and {len(edges)} arcs", described, parts)


def _listed(states: Iterable[int]) -> str:
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
