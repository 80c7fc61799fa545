"""docs/settings.md and docs/settings/, made from the dataclasses of settings: `python -m tests.docs.settings_page`
writes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from trelliswork.cli.options import Columns
from trelliswork.data.settings import About, Settings, kinds_of, settings_in
from trelliswork.models.catalogue import Entry, by_title, entries
from trelliswork.models.networks.config import Machine
from trelliswork.models.networks.parts import CHARACTERS, ENCODERS
from trelliswork.models.taggers.networks.config import SCORERS, SEGMENT_SCORERS
from trelliswork.training.config import TrainingConfig

DOCS = Path(__file__).parents[2] / "docs"
INDEX, TRAINING, PARTS = "settings.md", "settings/training-of-networks.md", "settings/parts-of-networks.md"
HEAD = """# Settings

Every setting of `trelliswork train` and `trelliswork tune`, by its key in TOML files; the models are on pages of their
own. Settings with an option can be given on the command line too (`min_freq` as `--min-freq`);
`trelliswork train --model NAME --help` lists those of one model. A whole number is at most 2,147,483,647 if no other
bound is given, a seed has at most 64 bits. These pages are written by `python -m tests.docs.settings_page`; a test
keeps them so.
"""
MORE = """| `field` | none | list of texts | `--field` | How members of JSON records are called: `tokens=words`. |
| `tokeniser` | `auto` | `auto`, `rules` or a folder | `--tokeniser` | What finds the words of plain text later. |
"""
OF_NETWORKS = (TrainingConfig, Machine)  # on a page of their own
NAMES = {
    "int": "whole number", "float": "number", "bool": "true or false", "str": "text",
    "int | str": "number from 1, or name", "tuple[int | str, ...]": "list of numbers from 1, or names",
}  # fmt: skip


def pages() -> dict[str, str]:
    """All pages by their paths below docs/."""
    titles = by_title(entries().values())
    found = {path_of(title): page(title, group) for title, group in titles.items()}
    found |= {TRAINING: training_page(), PARTS: parts_page()}
    return {INDEX: index(titles, list(found)), **found}


def path_of(title: str) -> str:
    return f"settings/{title.lower().replace(' ', '-')}.md"


def index(titles: dict[str, list[Entry]], others: Sequence[str]) -> str:
    lines = [HEAD, "## Models\n", "| page | models |", "|---|---|"]
    for title, group in titles.items():
        models = ", ".join(f"`{each.name}`" for each in group)
        lines.append(f"| [{title}]({path_of(title)}) | {models} |")
    lines += [
        f"| [Training of networks]({TRAINING}) | the section `[training]` of every network |",
        f"| [Parts of networks]({PARTS}) | which part of a network reads which setting |",
        "\n## Columns of the data: `[data]`\n",
        table(Columns) + MORE,
        "```{toctree}\n:hidden:\n",
        *(each.removesuffix(".md") for each in others),
        "```",
    ]
    return "\n".join(lines) + "\n"


def page(title: str, group: Sequence[Entry]) -> str:
    """The models of one title."""
    parts = [f"# Settings: {title[0].lower()}{title[1:]}\n", "Back to [all settings](../settings.md).\n"]
    for sections, alike in groupby(group, lambda each: each.sections):
        models = list(alike)
        parts.append(f"## {', '.join(f'`{each.name}`' for each in models)}\n")
        parts += [f"- `{each.name}`: {each.phrase}{differing(each)}" for each in models]
        parts.append("")
        for section, configs in sections.items():
            for config in configs:
                if config not in OF_NETWORKS:
                    parts += [f"### `[{section}]`, {config.__name__}\n", table(config)]
        if models[0].is_network:
            link = Path(TRAINING).name
            parts.append(f"The section `[training]` is that of [every network]({link}).\n")
    return "\n".join(parts)


def differing(entry: Entry) -> str:
    """Return the settings of a named network that differ from the defaults."""
    values = {**entry.values, **entry.learning} if entry.is_network else {}
    return "; " + ", ".join(f"`{key}` {shown(value)}" for key, value in values.items()) if values else ""


def training_page() -> str:
    parts = ["# Settings: training of networks\n", "Back to [all settings](../settings.md).\n"]
    for config in OF_NETWORKS:
        parts += [f"## `[training]`, {config.__name__}\n", table(config)]
    return "\n".join(parts)


def parts_page() -> str:
    parts = ["# Settings: parts of networks\n", "Back to [all settings](../settings.md).\n"]
    parts += ["| setting | value | reads |", "|---|---|---|"]
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


def write() -> None:
    (DOCS / "settings").mkdir(exist_ok=True)
    for path in (DOCS / "settings").glob("*.md"):
        path.unlink()
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
