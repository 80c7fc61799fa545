"""The settings of a training run in a TOML file: `[data]`, `[model]` and `[training]`.

Names are those of the options of `trelliswork train`, of `TaggerConfig` and of `TrainingConfig`; `name` in `[model]`
is the option --model. Paths are seen from where the command runs.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import Any

from trelliswork.data.files import open_text
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.models.presets import PRESETS

CONFIG_FILE = "config.toml"
MODEL_NAME = "name"
_HEAD = "# Every setting of this model; trelliswork train {name} --out DIR makes it again.\n"

Settings = dict[str, Any]

_DATA = dict(train="str", dev="str", out="str", vectors="str", pretrain="str", delimiter="str", scheme="str")
_DATA |= dict(word_column="int", tag_column="int", feature_columns="tuple[int, ...]")
_FEATURES = dict(template="str", features="str", algorithm="str", posterior="str", partial="bool")
_FEATURES |= dict(c1="float", c2="float", temperature="float", smoothing="float", min_freq="float")
_FEATURES |= dict(max_iterations="int", samples="int", cutoff="int", hash_bits="int", induce="int", latent="int")
_FEATURES |= dict(order="int", hidden_units="int", all_states="bool", all_transitions="bool")
_CHECKS = {
    "int": ("a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    "float": ("a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool)),
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "tuple[int, ...]": (
        "a list of whole numbers",
        lambda value: isinstance(value, list) and all(type(each) is int for each in value),
    ),
    "tuple[str, ...]": (
        "a list of texts",
        lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value),
    ),
}
_TEXT = ("a text in quotes", lambda value: isinstance(value, str))


def known_settings(model: str) -> dict[str, dict[str, str]]:
    """The keys of each section, with their types, for a model of that name."""
    from trelliswork.models import TaggerConfig
    from trelliswork.training import TrainingConfig

    own = _types(TaggerConfig) if model in PRESETS else _FEATURES
    learning = _types(TrainingConfig) if model in PRESETS else {"seed": "int"}
    return {"data": _DATA, "model": {MODEL_NAME: "str", **own}, "training": {**learning, "threads": "int"}}


def _types(config: type) -> dict[str, str]:
    return {field.name: str(field.type).removesuffix(" | None") for field in fields(config)}


def read_config(path: str, model: str | None) -> Settings:
    """The settings in a file by the names of the options; `model` goes before the file's.

    A section or key that nobody knows is an error that names the nearest one.
    """
    text = _read(path)
    found = _parsed(path, text)
    of_model = found.get("model")
    name = model or (of_model.get(MODEL_NAME) if isinstance(of_model, dict) else None) or "window"
    known = known_settings(str(name))
    settings: Settings = {}
    for section, values in found.items():
        if not isinstance(values, dict):
            problem = f"expected settings under a section, got {section} = {values!r} outside of all"
            raise DataError(
                path, f"{problem}; put it under {_section_of(section, known)}", line=_line_of(section, text)
            )
        _require_known(path, text, section, known, "section")
        for key, value in values.items():
            _require_known(path, text, key, known[section], f"setting of [{section}] for {name}")
            settings[key] = _checked(path, text, key, value, known[section][key])
    settings["model"] = settings.pop(MODEL_NAME, name)
    return settings


def _read(path: str) -> str:
    with open_text(path) as lines:
        return "".join(f"{line}\n" for line in lines)


def _parsed(path: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problem, place = _split_place(str(error), n_lines=text.rstrip().count("\n") + 1)
        raise DataError(path, f"expected TOML, got something else ({problem}); mend it", **place) from error


def _split_place(message: str, n_lines: int) -> tuple[str, dict[str, int]]:
    """What is wrong, and where, of a message of tomllib about a text of so many lines.

    >>> _split_place("Invalid value (at line 4, column 8)", 7), _split_place("Expected '=' (at end of document)", 7)
    (('invalid value', {'line': 4, 'column': 8}), ("expected '='", {'line': 7}))
    """
    problem = message[:1].lower() + message[1:].partition(" (at ")[0]
    place = {name: int(number) for name, number in re.findall(r"(line|column) (\d+)", message)}
    return problem, place or {"line": n_lines}


def _line_of(name: str, text: str) -> int | None:
    """The line where a section or a key of that name begins."""
    start = re.compile(rf"""\s*\[?\s*["']?{re.escape(name)}["']?\s*[]=.]""")
    return next((number for number, line in enumerate(text.split("\n"), 1) if start.match(line)), None)


def _section_of(key: str, known: Mapping[str, Mapping[str, str]]) -> str:
    return next((f"[{section}]" for section, keys in known.items() if key in keys), "a section")


def _require_known(path: str, text: str, name: str, known: Mapping[str, Any], what: str) -> None:
    if name not in known:
        near = get_close_matches(name, known, n=1, cutoff=0.5)
        fix = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
        raise DataError(path, f"expected a {what}, got {name!r}; {fix}", line=_line_of(name, text))


def _checked(path: str, text: str, key: str, value: Any, kind: str) -> Any:
    expected, fits = _CHECKS.get(kind, _TEXT)
    if not fits(value):
        problem = f"expected {expected} for {key}, got {value!r}; change it"
        raise DataError(path, problem, line=_line_of(key, text))
    if key == "threads" and value < 1:
        raise DataError(path, f"expected at least 1 thread, got {value}; change it", line=_line_of(key, text))
    return tuple(value) if isinstance(value, list) else value


def config_text(settings: Mapping[str, Any], name: str = CONFIG_FILE) -> str:
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
    text = _HEAD.format(name=name)
    for section, known in known_settings(settings["model"]).items():
        lines = [f"{key} = {_toml(named[key])}" for key in known if key in named]
        text += "\n".join(["", f"[{section}]", *lines, ""]) if lines else ""
    return text


def _toml(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, bool | int | str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    raise TrellisworkError(f"expected a number, a text, a truth value or a list of them, got {value!r}")
