"""The model card: what a model is, in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trelliswork import __version__


def model_card(
    title: str,
    *,
    summary: str,
    labels: Sequence[str],
    settings: Mapping[str, Any],
    metrics: Mapping[str, Any],
    n_parameters: int,
) -> str:
    """Markdown with the settings, labels and scores of a model.

    >>> print(model_card("Tagger", summary="Tags.", labels=["O"], settings={}, metrics={}, n_parameters=3)[:8])
    # Tagger
    """
    sections = [
        f"# {title}",
        f"{summary} Trained with Trelliswork {__version__}; {n_parameters:,} parameters.",
        "## Scores",
        _table(metrics, "score") if metrics else "Not evaluated.",
        "## Labels",
        f"{len(labels)}: " + ", ".join(f"`{label}`" for label in labels),
        "## Settings",
        _table(settings, "value"),
        "## Use",
        '```python\nfrom trelliswork.models import Tagger\n\ntagger = Tagger.load("this folder")\n```',
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
