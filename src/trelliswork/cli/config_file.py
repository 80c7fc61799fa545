"""The settings of a training run in a TOML file: `[data]`, `[model]` and `[training]`.

Names are those of the options of `trelliswork train`, of `TaggerConfig` and of `TrainingConfig`; `name` in `[model]`
is the option --model. Paths are seen from where the command runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from trelliswork.cli.panels import Columns
from trelliswork.cli.toml_file import TomlFile
from trelliswork.data.settings import keys_of
from trelliswork.errors import TrellisworkError
from trelliswork.models.families import FAMILIES, family_of, nearest_model
from trelliswork.training.folder_names import SETTINGS

CONFIG_FILE = SETTINGS
MODEL_NAME = "name"
CHOSEN = "chosen"  # the entry of options that says why the model is what it is
SPACE = "space"  # the section of what `trelliswork tune` chooses from
_HEAD = "# Every setting of this model; trelliswork train {name}{features} --out DIR makes it again.\n"

Settings = dict[str, Any]

_FILES = ("train", "dev", "out", "tokeniser")


def known_settings(model: str) -> dict[str, dict[str, str]]:
    """The keys of each section, with their types, for a model of that name."""
    family = family_of(model)
    files = [config for each in FAMILIES for config in each.data]
    return {
        "data": {**dict.fromkeys(_FILES, "str"), **_keys(files), **keys_of(Columns), "field": "tuple[str, ...]"},
        "model": {MODEL_NAME: "str", **_keys(family.model)},
        "training": {"seed": "int", **_keys(family.training), "threads": "int"},
    }


def _keys(configs: Iterable[type]) -> dict[str, str]:
    return {key: kind for config in configs for key, kind in keys_of(config).items()}


def values_in(path: str) -> Settings:
    """The settings in a file as they are written, for whichever model; to find out which that is."""
    sections = TomlFile(path).sections.values()
    return {key: value for values in sections if isinstance(values, dict) for key, value in values.items()}


def read_config(path: str, model: str, others: tuple[str, ...] = ()) -> Settings:
    """The settings in a file by the names of the options, for a model, which goes before the file's.

    A section or key that nobody knows is an error that names the nearest one; sections of `others` are passed over.
    """
    file = TomlFile(path)
    found = {section: values for section, values in file.sections.items() if section not in others}
    if SPACE in found:
        raise file.error(f"expected settings to train with, got [{SPACE}]; search it with trelliswork tune", SPACE)
    known = known_settings(model)
    settings: Settings = {}
    for section, values in found.items():
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
    """Refuse a setting that the model does not have, and say which models do."""
    users = [name for family in FAMILIES if key in _keys((*family.model, *family.training)) for name in family.phrases]
    if key not in known and users:
        other = nearest_model(model, users)
        fix = f'leave it out, or write name = "{other}" under [model]'
        raise file.error(f"expected a {what}, got {key!r}, which {other} has; {fix}", key)
    file.require_known(key, known, what)


def _section_of(key: str, known: Mapping[str, Mapping[str, str]]) -> str:
    of_all = [(section, _keys(getattr(family, section))) for family in FAMILIES for section in ("model", "training")]
    return next((f"[{section}]" for section, keys in (*known.items(), *of_all) if key in keys), "a section")


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
    code = named.get("features")  # a file never chooses code, so it must be given again
    text = _HEAD.format(name=name, features=f" --features {code}" if code else "")
    others = _keys(config for each in FAMILIES for config in each.data).keys() - _keys(
        family_of(settings["model"]).data
    )
    for section, known in known_settings(settings["model"]).items():
        lines = [f"{key} = {_toml(named[key])}" for key in known if key in named and key not in others]
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
