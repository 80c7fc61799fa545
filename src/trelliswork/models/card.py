"""The model card: what a model is, in Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trelliswork import __version__
from trelliswork.models.base import Model

_USE = '```python\nimport trelliswork as tw\n\nmodel = tw.load("this folder")\n```'


def model_card(model: Model) -> str:
    """Markdown with the settings, labels and scores of a model, as it describes itself."""
    described = model.describe(0)
    sections = [
        f"# {type(model).__name__}",
        f"{described.kind[:1].upper()}{described.kind[1:]}. Trained with Trelliswork {__version__}; {model.size}.",
        "## Scores",
        _table(model.metrics, "score") if model.metrics else "Not evaluated.",
        "## Labels",
        "\n".join(f"- {title}: {_cell(found)}" for title, found in described.labels.items()),
        "## Settings",
        _table(described.settings, "value"),
        "## Use",
        _USE,
    ]
    return "\n\n".join(sections) + "\n"


def _table(values: Mapping[str, Any], heading: str) -> str:
    rows = [f"| {name} | {_cell(value)} |" for name, value in flatten(values).items()]
    return "\n".join([f"| | {heading} |", "|---|---|", *rows])


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested mappings as one, with dotted names.

    >>> flatten({"dev": {"f1": 0.9}})
    {'dev.f1': 0.9}
    """
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
