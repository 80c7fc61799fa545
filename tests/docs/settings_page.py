"""docs/settings.md, made from the dataclasses of settings: `python -m tests.docs.settings_page` writes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trelliswork.cli.panels import Columns
from trelliswork.data.settings import About, Settings, kinds_of, settings_in
from trelliswork.models.families import FAMILIES
from trelliswork.models.networks.parts import CHARACTERS, ENCODERS
from trelliswork.models.taggers.networks.scorers import SCORERS, SEGMENT_SCORERS

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"
HEAD = """# Settings

Every setting of `trelliswork train` and `trelliswork tune`, by its key in TOML files. Those with an option can be given
on the command line too (`min_freq` as `--min-freq`). "By the model" in `--help` means that a named model may have a
default of its own. A whole number is at most 2,147,483,647 if no other bound is given, a seed has at most 64 bits. This
page is written by `python -m tests.docs.settings_page`; a test keeps it so.
"""
MORE = """| `field` | none | list of texts | `--field` | How members of JSON records are called: `tokens=words`. |
| `tokeniser` | `auto` | `auto`, `rules` or a folder | `--tokeniser` | What finds the words of plain text later. |
"""
NAMES = {
    "int": "whole number", "float": "number", "bool": "true or false", "str": "text",
    "int | str": "number from 1, or name", "tuple[int | str, ...]": "list of numbers from 1, or names",
}  # fmt: skip


def page() -> str:
    """The whole page."""
    parts = [HEAD, "## Columns of the data: `[data]`\n", table(Columns) + MORE]
    for family in FAMILIES:
        parts.append(f"## {family.title}: {', '.join(f'`{name}`' for name in family.phrases)}\n")
        for section, configs in (("data", family.data), ("model", family.model), ("training", family.training)):
            for config in configs:
                parts += [f"### `[{section}]`, {config.__name__}\n", table(config)]
    parts += ["## Which part of a network reads which setting\n", "| setting | value | reads |", "|---|---|---|"]
    tables = {"encoder": ENCODERS, "scorer": SCORERS, "segments": SEGMENT_SCORERS, "characters": CHARACTERS}
    for name, found in tables.items():
        for value, part in found.items():
            read = [] if part is None else sorted({each for each in part.settings.values() if each != name})
            parts.append(f"| `{name}` | `{value}` | {', '.join(f'`{each}`' for each in read) or 'nothing'} |")
    return "\n".join(parts) + "\n"


def table(config: type[Settings]) -> str:
    """One row a setting."""
    return "\n".join(["| key | default | values | option | |", "|---|---|---|---|---|", *rows(config), ""])


def rows(config: type[Settings]) -> Iterator[str]:
    kinds = kinds_of(config)
    for each, about in settings_in(config):
        if about.option is not None:
            option = f"`--{about.option.replace('_', '-')}`" if about.option else ""
            default = about.default_text or shown(each.default)
            cells = [f"`{about.option or each.name}`", default, values(kinds[each.name], about), option, about.help]
            yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def values(kind: str, about: About) -> str:
    if about.choices:
        return ", ".join(f"`{each}`" for each in about.choices)
    name = NAMES.get(kind, "list")
    return f"{name}, {about.bounds.removeprefix('be ').removeprefix('lie ')}" if about.bounds_given else name


def shown(value: Any) -> str:
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{list(value) if isinstance(value, tuple) else value}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
