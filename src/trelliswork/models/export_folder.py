"""Exports for other programs: folders that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from trelliswork import __version__
from trelliswork.errors import OutputError
from trelliswork.models.base import Model
from trelliswork.writing import PART, exchange, part_prefix


def check_folder(directory: str | Path, names: set[str], *, force: bool = False) -> None:
    """Refuse a folder that has other files than an export of these, or one already, unless it is to be replaced.

    Args:
        directory: the folder to write.
        names: the files that an export consists of.
        force: whether an earlier export may be replaced.
    """
    target = Path(directory)
    if target.is_file():
        raise OutputError(f"{target}: expected a folder to export to, got a file; name a folder")
    present = {path.name for path in target.iterdir()} if target.is_dir() else set()
    if present - names - {"__pycache__"}:
        raise OutputError(f"{target}: expected an empty folder or an earlier export, got other files; name another")
    if present and not force:
        raise OutputError(f"{target}: there is an export already; name another folder, or replace it with --force")


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """Yield a new folder that takes the place of `target` when the block ends without error."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=part_prefix(target), suffix=PART, dir=target.parent) as name:
            made = Path(name) / target.name
            made.mkdir()
            yield made
            _put(made, target, Path(name) / "earlier")
    except OSError as error:
        reason = error.strerror or error
        raise OutputError(f"{target}: cannot be written: {reason}; free space or choose another folder") from error


def _put(made: Path, target: Path, earlier: Path) -> None:
    """Put `made` in the place of `target`, which stays if that fails; at once, where the system can exchange names."""
    if not target.exists():
        made.rename(target)
        return
    if exchange(made, target):
        return
    target.rename(earlier)
    try:
        made.rename(target)
    except OSError:
        os.replace(earlier, target)
        raise


# The model card: what a model is, in Markdown.

_USE = '```python\nimport trelliswork as tw\n\nmodel = tw.load("this folder")\n```'


def model_card(model: Model) -> str:
    """Return markdown with the settings, labels and scores of a model, as it describes itself."""
    described = model.describe(0)
    sections = [
        f"# {type(model).__name__}",
        f"{described.kind[:1].upper()}{described.kind[1:]}. Trained with Trelliswork {__version__}; {model.size}.",
        "## Scores",
        _table(model.metrics, "score") if model.metrics else "Not evaluated.",
        "## Labels",
        "\n".join(f"- {title}: {_cell(text)}" for title, text in described.labels.items()),
        "## Settings",
        _table(described.settings, "value"),
        "## Use",
        _USE,
    ]
    return "\n\n".join(sections) + "\n"


def _table(values: Mapping[str, object], heading: str) -> str:
    rows = [f"| {name} | {_cell(value)} |" for name, value in flatten(values).items()]
    return "\n".join([f"| | {heading} |", "|---|---|", *rows])


def flatten(values: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Return nested mappings as one, with dotted names.

    >>> flatten({"dev": {"f1": 0.9}})
    {'dev.f1': 0.9}
    """
    flat: dict[str, object] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
