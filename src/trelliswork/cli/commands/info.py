"""`trelliswork info`: what a model is."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Annotated, Any

import typer

from trelliswork import __version__
from trelliswork.cli.inputs import given_function
from trelliswork.cli.messages import visible
from trelliswork.cli.options import Features
from trelliswork.data.choices import CONLLU_NAMES
from trelliswork.data.readers import OWN as OWN_FORMATS
from trelliswork.errors import TrellisworkError
from trelliswork.lazy import named
from trelliswork.models import load
from trelliswork.models.base import Description, Model
from trelliswork.models.catalogue import ENTRIES
from trelliswork.models.export_folder import flatten
from trelliswork.models.networks.parts import ENCODERS
from trelliswork.plugins import KINDS, plugins_of

STRONGEST = 8
OWN: Mapping[str, Callable[[], Collection[str]]] = {  # the names that the library uses itself
    "encoders": lambda: ENCODERS,
    "formats": lambda: OWN_FORMATS,
    "models": lambda: ENTRIES,
    "structures": lambda: named("trelliswork.distributions.registry:OF_STRUCTURE"),
}


def info(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="[DIR]", help="Directory of a trained model. Without it, list the extensions.", show_default=False
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    top_features: Annotated[
        int, typer.Option(metavar="N", min=0, help="Show the N strongest weights (feature-based models).")
    ] = 20,
    features: Features = None,
) -> None:
    """Describe a model, or list the extensions that are installed.

    Prints its training data, labels, scores, settings and size, and the
    strongest transitions or features it has learned. Without DIR, lists the
    encoders, data formats and structures that other packages bring.

    \b
    Example:
      trelliswork info ner
      trelliswork info
    """
    if model is None:
        print(json.dumps(_extensions(), indent=1) if as_json else _extension_table(_extensions()))
        return
    loaded = load(model, features=given_function(features))
    described = loaded.describe(top_features)
    if as_json:
        print(json.dumps(_record(loaded, described), indent=1, ensure_ascii=False))
        return
    print(f"{model}: {described.kind}, {loaded.n_parameters:,} parameters")
    sections = _sections(loaded.metrics, described)
    kept = getattr(loaded.tokeniser, "loaded", None)
    if kept is not None:
        rows = [("tokeniser", kept.describe().kind), *_rows(flatten(kept.metrics.get("dev") or {}))]
        sections.append(("plain text", rows))
    if loaded.lemmatiser is not None:
        sections.append(("lemmas", [("learned", loaded.lemmatiser.size)]))
    for title, rows in sections:
        print(f"\n{title}")
        shown = [(visible(name), visible(value)) for name, value in rows]
        width = max((len(name) for name, _ in shown), default=0)
        for name, value in shown:
            print(f"  {name:{width}}  {value}")


def _extensions() -> list[dict[str, str]]:
    """List what other packages bring; each is imported, so that one that is broken says so."""
    extensions = []
    for kind, noun in KINDS.items():
        for plugin in plugins_of(kind).values():
            try:
                plugin.load()
                problem = "the library has one of this name" if plugin.name in OWN[kind]() else ""
            except TrellisworkError as error:
                problem = str(error)
            package = f"{plugin.package} {plugin.version}"
            extensions.append({"kind": noun, "name": plugin.name, "package": package, "problem": problem})
    return extensions


def _extension_table(extensions: Sequence[Mapping[str, str]]) -> str:
    lines = [f"trelliswork {__version__}"] + ([] if extensions else ["no extensions are installed"])
    for each in extensions:
        lines.append(f"{each['kind']:<10} {each['name']:<16} {each['package']}")
        lines += [f"           not used: {each['problem']}"] if each["problem"] else []
    return visible("\n".join(lines))


def _sections(metrics: Mapping[str, Any], described: Description) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the sections about a model: its data, labels and training, its own sections, and what it has learned."""
    data = dict(metrics.get("data") or {})
    layout = data.pop("format", None)
    training = metrics.get("training") or {}
    trained = {name: training[name] for name in ("epochs", "best_epoch", "seconds") if name in training}
    sections = [
        ("data", [*_rows(data), *_layout_rows(layout)]),
        ("labels", [(name, _shown(value)) for name, value in described.labels.items()]),
        ("dev scores", _rows(flatten(metrics.get("dev") or {}))),
        ("training", _rows(trained | (training.get("settings") or {}))),
        *((title, _rows(rows)) for title, rows in described.sections),
        ("strongest learned transitions (score added to a sequence)", _transition_rows(described.transitions)),
    ]
    return [(title, rows) for title, rows in sections if rows]


def _layout_rows(layout: dict[str, Any] | None) -> list[tuple[str, str]]:
    if not layout:
        return []
    names = layout.get("names") or (CONLLU_NAMES if layout.get("conllu") else ())

    def shown(i: int | None) -> str:
        return str(names[i - 1]) if i and i <= len(names) else str(i)

    features = ", ".join(map(shown, layout.get("feature_columns") or ())) or "none"
    tag, head = shown(layout.get("tag_column")), layout.get("head_column")
    answer = f"tag {tag}" if head is None else f"head {shown(head)}, label {tag}"
    columns = f"word {shown(layout.get('word_column'))}, {answer}, features {features}"
    return [("columns", columns)]


def _transition_rows(transitions: Sequence[tuple[float, str, str]]) -> list[tuple[str, str]]:
    extremes = (
        transitions if len(transitions) <= 2 * STRONGEST else [*transitions[:STRONGEST], *transitions[-STRONGEST:]]
    )
    return [(f"{before} -> {after}", f"{score:+.2f}") for score, before, after in extremes]


def _record(model: Model, described: Description) -> dict[str, object]:
    return {
        **described.record,
        "parameters": model.n_parameters,
        "settings": described.settings,
        "metrics": model.metrics,
        "transitions": [
            {"from": before, "to": after, "score": round(score, 4)} for score, before, after in described.transitions
        ],
    }


def _rows(values: Mapping[str, object]) -> list[tuple[str, str]]:
    return [(name.replace("_", " "), _shown(value)) for name, value in values.items() if value is not None]


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if value >= 10_000 else str(value)
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
