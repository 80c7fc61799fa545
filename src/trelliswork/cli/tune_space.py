"""What `trelliswork tune` chooses from: the section `[space]` of a file, or a space around the model's own settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trelliswork.cli.config_file import MODEL_NAME, SPACE, known_settings, require_used
from trelliswork.cli.toml_file import TomlFile
from trelliswork.data.settings import settings_in
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.models.catalogue import entry_of, recipe_of
from trelliswork.training.search_space import Around, Numbers, OneOf, Space

_RANGE = {"low": "float", "high": "float", "log": "bool", "step": "float"}
_NUMBERS = ("int", "float")
_NOT_CHOSEN = (MODEL_NAME, "seed", "threads", "vector_dim", "checkpoint_every", "features")
_EXAMPLE = "lr = {low = 1e-4, high = 1e-2, log = true} or encoder = ['lstm', 'gru']"


def read_space(path: str, model: str) -> Space | None:
    """The section [space] of a file of settings; None without one."""
    file = TomlFile(path)
    found = file.sections.get(SPACE)
    if found is None:
        return None
    if not isinstance(found, dict) or not found:
        raise file.error(f"expected settings to choose under [{SPACE}], got {found!r}; write {_EXAMPLE}", SPACE)
    known = _known(model)
    space = {}
    for name, value in found.items():
        require_used(file, name, known, model, f"setting of {model} to choose")
        try:
            space[name] = _choice(file, name, value, known[name])
        except DataError:
            raise
        except TrellisworkError as error:
            raise file.error(f"{name}: {error}", name) from error
    return space


def _known(model: str) -> dict[str, str]:
    sections = known_settings(model)
    found = {**sections["model"], **sections["training"]}
    return {name: kind for name, kind in found.items() if name not in _NOT_CHOSEN}


def _choice(file: TomlFile, name: str, value: Any, kind: str) -> Numbers | OneOf:
    if isinstance(value, list):
        return OneOf(tuple(file.checked(name, each, kind) for each in value))
    if not isinstance(value, dict) or kind not in _NUMBERS:
        ranges = f"a list of values{' or a range' if kind in _NUMBERS else ''}"
        raise file.error(f"expected {ranges} for {name}, got {value!r}; write {_EXAMPLE}", name)
    for key, part in value.items():
        file.require_known(key, _RANGE, f"part of the range of {name}", of=name)
        file.checked(key, part, kind if _RANGE[key] == "float" else _RANGE[key], of=name)
    if not {"low", "high"} <= set(value):
        raise file.error(f"expected low and high for {name}, got {value!r}; write {_EXAMPLE}", name)
    return Numbers(**value, whole=kind == "int")


def default_space(options: Mapping[str, Any]) -> Space:
    """A space around the settings of a model: those that say where to search, if they matter for it."""
    values, space = recipe_of({**options, "resume": False}).search_values(), {}
    for config in entry_of(options["model"]).configs:
        for each, about in settings_in(config):
            matters = all(values.get(name) in allowed for name, allowed in about.searched_with.items())
            where = about.search
            if isinstance(where, Around):
                where = where.of(values[each.name]) if values[each.name] else None
            if where is not None and matters:
                space[about.option or each.name] = where
    return space
