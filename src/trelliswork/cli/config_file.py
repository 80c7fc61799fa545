"""The settings of a training run in a TOML file: `[data]`, `[model]` and `[training]`.

Names are those of the options of `trelliswork train`, of `TaggerConfig` and of `TrainingConfig`; `name` in `[model]`
is the option --model. Paths are seen from where the command runs.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from trelliswork.cli.messages import did_you_mean
from trelliswork.cli.options import MOST_THREADS, Columns
from trelliswork.data.settings import keys_of, misfit
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.models.catalogue import entries, entry_of, nearest_model
from trelliswork.reading import open_text
from trelliswork.training.exclusive import SETTINGS

if TYPE_CHECKING:
    from trelliswork.models.recipe import Options

CONFIG_FILE = SETTINGS
MODEL_NAME = "name"
CHOSEN = "chosen"  # the entry of options that says why the model is what it is
SPACE = "space"  # the section of what `trelliswork tune` chooses from
_HEAD = "# Every setting of this model; trelliswork train {name}{features} --out DIR makes it again.\n"

Settings = dict[str, Any]

_FILES = ("train", "dev", "out", "tokeniser")


def known_settings(model: str) -> dict[str, dict[str, str]]:
    """Return the keys of each section, with their types, for a model of that name."""
    sections = entry_of(model).sections
    files = [config for each in entries().values() for config in each.sections["data"]]
    return {
        "data": {**dict.fromkeys(_FILES, "str"), **_keys(files), **keys_of(Columns), "field": "tuple[str, ...]"},
        "model": {MODEL_NAME: "str", **_keys(sections["model"])},
        "training": {"seed": "int", **_keys(sections["training"]), "threads": "int"},
    }


def _keys(configs: Iterable[type]) -> dict[str, str]:
    return {key: kind for config in configs for key, kind in keys_of(config).items()}


def values_in(path: str) -> Settings:
    """Return the settings in a file as they are written, for whichever model; to find out which that is."""
    sections = TomlFile(path).sections.values()
    return {key: value for values in sections if isinstance(values, dict) for key, value in values.items()}


def read_config(path: str, model: str, others: tuple[str, ...] = ()) -> Settings:
    """Return the settings in a file by the names of the options, for a model, which goes before the file's.

    Args:
        path: The TOML file.
        model: Name of the model, which goes before the file's; empty for the file's.
        others: Names of sections that are passed over.

    Returns:
        The settings. A section or key that nobody knows is an error that names the nearest one.
    """
    file = TomlFile(path)
    sections = {section: values for section, values in file.sections.items() if section not in others}
    if SPACE in sections:
        raise file.error(f"expected settings to train with, got [{SPACE}]; search it with trelliswork tune", SPACE)
    known = known_settings(model)
    settings: Settings = {}
    for section, values in sections.items():
        if not isinstance(values, dict):
            problem = f"expected settings under a section, got {section} = {values!r} outside of all"
            raise file.error(f"{problem}; put it under {_section_of(section, known)}", section)
        file.require_known(section, known, "section")
        for key, value in values.items():
            require_used(file, key, known[section], model, f"setting of [{section}] for {model}")
            settings[key] = file.checked(key, value, known[section][key])
    settings["model"] = settings.pop(MODEL_NAME, model)
    return settings


def require_used(file: TomlFile, key: str, known: Mapping[str, str], model: str, what: str) -> None:
    """Refuse a setting that the model does not have, and say which models do.

    Args:
        file: The TOML file.
        key: The setting.
        known: What the model has, by name.
        model: Name of the model.
        what: What the setting is called in the sentence of an error.
    """
    users = [
        name
        for name, entry in entries().items()
        if key in _keys((*entry.sections["model"], *entry.sections["training"]))
    ]
    if key not in known and users:
        other = nearest_model(model, users)
        fix = f'leave it out, or write name = "{other}" under [model]'
        raise file.error(f"expected a {what}, got {key!r}, which {other} has; {fix}", key)
    file.require_known(key, known, what)


def _section_of(key: str, known: Mapping[str, Mapping[str, str]]) -> str:
    of_all = [
        (section, _keys(entry.sections[section])) for entry in entries().values() for section in ("model", "training")
    ]
    return next((f"[{section}]" for section, keys in (*known.items(), *of_all) if key in keys), "a section")


def config_text(settings: Options, name: str = CONFIG_FILE) -> str:
    """Settings, by the names of the options, as TOML; those that are None are left out.

    >>> print(config_text({"train": "a.conll", "model": "window", "hidden": 9}), end="")
    # Every setting of this model; trelliswork train config.toml --out DIR makes it again.
    <BLANKLINE>
    [data]
    train = "a.conll"
    <BLANKLINE>
    [model]
    name = "window"
    hidden = 9
    """
    named = {MODEL_NAME if key == "model" else key: value for key, value in settings.items() if value is not None}
    code = named.get("features")  # a file never chooses code, so it must be given again
    text = _HEAD.format(name=name, features=f" --features {code}" if code else "")
    files = _keys(config for each in entries().values() for config in each.sections["data"])
    others = files.keys() - _keys(entry_of(settings["model"]).sections["data"])
    for section, known in known_settings(settings["model"]).items():
        lines = [f"{key} = {_toml(named[key])}" for key in known if key in named and key not in others]
        text += "\n".join(["", f"[{section}]", *lines, ""]) if lines else ""
    return text


def _toml(value: object) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, bool | int | str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    raise TrellisworkError(f"expected a number, a text, a truth value or a list of them, got {value!r}")


# A TOML file that a user wrote: its sections, and errors that name the line.


class TomlFile:
    """`sections` has what the file says; text that is not TOML is a `DataError`."""

    def __init__(self, path: str) -> None:
        self.path = path
        with open_text(path) as lines:
            self.text = "".join(f"{line}\n" for line in lines)
        self.sections = _parse(self.text, path)

    def error(self, problem: str, name: str) -> DataError:
        """Return an error about a section or a key, with its line."""
        return DataError(self.path, problem, line=_line_of(name, self.text))

    def require_known(self, name: str, known: Mapping[str, object], what: str, of: str = "") -> None:
        """Raise an error that names the nearest known name, if this is none; it is a part of `of`, if that is given.

        Args:
            name: Name that was given.
            known: Names that there are.
            what: What they are names of.
            of: What it is a part of; empty for the file.
        """
        if name not in known:
            fix = did_you_mean(name, known, cutoff=0.5) or f"known are {', '.join(known)}"
            raise self.error(f"expected a {what}, got {name!r}; {fix}", of or name)

    def checked(self, key: str, value: object, kind: str, of: str = "") -> object:
        """Return the value of a key, of `of` if it is a part of that, which must be of its kind.

        Args:
            key: Name of the setting.
            value: Its value.
            kind: What it must be: text, a number, a truth value or a list.
            of: What it is a part of; empty for the file.

        Returns:
            The value.
        """
        if problem := misfit(f"{key} of {of}" if of else key, value, kind):
            raise self.error(f"{problem}; change it", of or key)
        if key == "threads" and isinstance(value, int) and not 1 <= value <= MOST_THREADS:
            raise self.error(f"expected 1 to {MOST_THREADS} threads, got {value}; change it", key)
        return tuple(value) if isinstance(value, list) else value


def _parse(text: str, path: str) -> dict[str, object]:
    place: dict[str, int] = {}
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problem, place = _split_place(str(error), n_lines=text.rstrip().count("\n") + 1)
        cause: Exception = error
    except RecursionError as error:
        problem, cause = "nested too deeply", error
    except ValueError as error:  # Python's limit on the digits of a number, an impossible date
        problem, cause = "a number of thousands of digits, or no date", error
    raise DataError(path, f"expected TOML, got something else ({problem}); fix it", **place) from cause


def _split_place(message: str, n_lines: int) -> tuple[str, dict[str, int]]:
    """Return the problem and the line in a message of tomllib about a text of `n_lines` lines.

    >>> _split_place("Invalid value (at line 4, column 8)", 7), _split_place("Expected '=' (at end of document)", 7)
    (('invalid value', {'line': 4, 'column': 8}), ("expected '='", {'line': 7}))
    """
    problem = message[:1].lower() + message[1:].partition(" (at ")[0]
    place = {name: int(number) for name, number in re.findall(r"(line|column) (\d+)", message)}
    return problem, place or {"line": n_lines}


def _line_of(name: str, text: str) -> int | None:
    """Return the line where a section or a key of that name begins."""
    start = re.compile(rf"""\s*\[?\s*["']?{re.escape(name)}["']?\s*[]=.]""")
    return next((number for number, line in enumerate(text.split("\n"), 1) if start.match(line)), None)
