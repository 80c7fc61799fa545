"""The folder of a search: its journal, the trial that runs, the best settings and the best model.

study.log      every trial, as Optuna keeps it
trials/N       the trial that runs, or was stopped
best           the best model
best.toml      its settings, fit for trelliswork train
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from trelliswork.cli.config_file import (
    CONFIG_FILE,
    MODEL_NAME,
    SPACE,
    TomlFile,
    config_text,
    known_settings,
    read_config,
    require_used,
    values_in,
)
from trelliswork.data import atomic_write
from trelliswork.data.settings import Around, Numbers, OneOf, Space, settings_in
from trelliswork.errors import DataError, OutputError, TrellisworkError
from trelliswork.models.catalogue import entry_of, recipe_of
from trelliswork.models.storage import CONFIG
from trelliswork.training.exclusive import LOCK, exclusive
from trelliswork.training.result import SearchResult
from trelliswork.training.trials import JOURNAL
from trelliswork.writing import is_part_of

if TYPE_CHECKING:
    from trelliswork.models.recipe import Options

BEST, BEST_FILE, TRIALS, AGAIN = "best", "best.toml", "trials", "trained"
OURS = {JOURNAL, f"{JOURNAL}.lock", BEST, BEST_FILE, TRIALS, AGAIN, LOCK}


@contextmanager
def reserved_search(folder: Path, *, force: bool, resume: bool) -> Iterator[None]:
    """Keep the folder for the one search inside; refuse early one that cannot or should not be searched in.

    Args:
        folder: Folder of the search.
        force: Whether an earlier search there is removed.
        resume: Whether it goes on.

    Returns:
        A context in which the folder is locked.
    """
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder}: expected a folder for the search, got a file; choose another name")
    foreign = sorted(path.name for path in folder.iterdir() if not _is_ours(path.name)) if folder.exists() else []
    if foreign:
        raise OutputError(
            f"{folder}: expected a search or an empty folder, got a folder with {foreign[0]}; choose another name"
        )
    with exclusive(folder, "tuning"):
        if (folder / JOURNAL).exists() and not resume and not force:
            raise OutputError(f"{folder}: holds a search already; add --resume to continue, or --force to start again")
        _clear(folder, all=force and not resume)
        yield


def _is_ours(name: str) -> bool:
    return name in OURS or is_part_of(name, Path(BEST_FILE)) or _is_left_lock(name)


def _is_left_lock(name: str) -> bool:
    """Return whether Optuna was killed as it gave up the lock of its journal, which it renames first."""
    return name.startswith(f"{JOURNAL}.lock") and name.endswith(".rename")


def _clear(folder: Path, *, all: bool) -> None:
    """Remove what a kill left half-written, or all of a search."""
    for path in folder.iterdir():
        if is_part_of(path.name, Path(BEST_FILE)) or _is_left_lock(path.name):
            path.unlink(missing_ok=True)
    if all:
        for name in (TRIALS, BEST):
            shutil.rmtree(folder / name, ignore_errors=True)
        for name in (BEST_FILE, f"{JOURNAL}.lock", JOURNAL):
            (folder / name).unlink(missing_ok=True)


def publish_best(folder: Path, result: SearchResult) -> None:
    """Make the model of the best trial the best model; those of others that have ended go.

    The settings go first and the model last: what a kill leaves undone is done when the search goes on.
    """
    best = None if result.best is None else folder / TRIALS / str(result.best.number)
    if best is not None and (best / CONFIG).exists():
        written = str(best / CONFIG_FILE)
        settings = read_config(written, values_in(written)[MODEL_NAME])
        for path, out in ((folder / BEST_FILE, AGAIN), (best / CONFIG_FILE, BEST)):
            with atomic_write(path) as file:
                file.write(config_text({**settings, "out": str(folder / out)}, path.name))
        shutil.rmtree(folder / BEST, ignore_errors=True)
        best.rename(folder / BEST)
    for row in result.rows:
        if row.state != "stopped":
            shutil.rmtree(folder / TRIALS / str(row.number), ignore_errors=True)
    if (folder / TRIALS).is_dir() and not any((folder / TRIALS).iterdir()):
        (folder / TRIALS).rmdir()


# What `trelliswork tune` chooses from: the section `[space]` of a file, or a space around the model's own settings.

_RANGE = {"low": "float", "high": "float", "log": "bool", "step": "float"}
_NUMBERS = ("int", "float")
_NOT_CHOSEN = (MODEL_NAME, "seed", "threads", "vector_dim", "checkpoint_every", "features")
_EXAMPLE = "lr = {low = 1e-4, high = 1e-2, log = true} or encoder = ['lstm', 'gru']"


def read_space(path: str, model: str) -> Space | None:
    """Return the section [space] of a file of settings; None without one."""
    file = TomlFile(path)
    choices = file.sections.get(SPACE)
    if choices is None:
        return None
    if not isinstance(choices, dict) or not choices:
        raise file.error(f"expected settings to choose under [{SPACE}], got {choices!r}; write {_EXAMPLE}", SPACE)
    known = _known(model)
    space = {}
    for name, value in choices.items():
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
    kinds = {**sections["model"], **sections["training"]}
    return {name: kind for name, kind in kinds.items() if name not in _NOT_CHOSEN}


def _choice(file: TomlFile, name: str, value: object, kind: str) -> Numbers | OneOf:
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


def default_space(options: Options) -> Space:
    """Return a space around the settings of a model: those that say where to search, if they matter for it."""
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
