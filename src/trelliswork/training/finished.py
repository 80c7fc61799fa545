"""Runs that were trained to their end, as their folder tells."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trelliswork.data.folder_files import read_object, read_regular
from trelliswork.data.json_values import BadJSONError, parse_json
from trelliswork.errors import ModelError
from trelliswork.training.config import TrainingConfig
from trelliswork.training.fingerprint import NO_MATTER, refuse_differences
from trelliswork.training.folder_names import HISTORY, CheckpointFolder
from trelliswork.training.progress import EpochRecord
from trelliswork.training.result import TrainingResult

METRICS = "metrics.json"
LONGER = ("epochs", "patience")  # settings that a finished run may go on with


def finished_run(folder: Path, model: Any, config: TrainingConfig) -> TrainingResult | None:
    """How the run in a folder went, if its history ends with the last epoch or without patience."""
    found = earlier_run(folder, model, config)
    if found is None:
        return None
    n_epochs = len(found.history)
    return found if n_epochs >= config.epochs or n_epochs - found.best_epoch >= config.patience else None


def earlier_run(folder: Path, model: Any, config: TrainingConfig) -> TrainingResult | None:
    """How the run in a folder went that has left a model, a history and no checkpoint.

    That it was made with other settings is an error; more epochs or patience are what it may go on with, and the
    settings that those of the model list as `LATER`.
    """
    if CheckpointFolder(folder).folder.exists() or not (folder / HISTORY).is_file():
        return None
    stored, metrics = (_object_in(folder / name) for name in ("config.json", METRICS))
    if not stored or not metrics:
        return None
    training = _section(metrics, "training", folder)
    history, best = read_history(folder / HISTORY), training.get("best_epoch", 0)
    if not isinstance(best, int):
        raise ModelError(f"{folder / METRICS}: expected a whole number under 'best_epoch', got {best!r}; train anew")
    settings = getattr(model, "config", None)
    network: dict[str, Any] = getattr(settings, "to_dict", dict)()
    later: Sequence[str] = getattr(settings, "LATER", ())
    then = {
        "settings": _plain(_section(training, "settings", folder)),
        "model": _plain(_section(stored, "settings", folder), later) if network else {},
    }
    now = {"settings": _plain(config.to_dict()), "model": _plain(json.loads(json.dumps(network)), later)}
    refuse_differences(then, now, str(folder), "finished")
    score = next((record.score for record in history if record.epoch == best), None)
    return TrainingResult(history, best, score)


def _section(holder: Mapping[str, Any], name: str, folder: Path) -> Mapping[str, Any]:
    found = holder.get(name, {})
    if not isinstance(found, dict):
        raise ModelError(f"{folder}: expected an object under {name!r}, got {type(found).__name__}; train anew")
    return found


def _plain(settings: Mapping[str, Any], may_differ: Sequence[str] = (*NO_MATTER, *LONGER)) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in may_differ}


def read_history(path: Path) -> list[EpochRecord]:
    """The epochs in a file."""
    try:
        return [EpochRecord(**parse_json(line)) for line in read_regular(path).decode("utf-8").splitlines()]
    except (UnicodeDecodeError, BadJSONError, TypeError) as error:
        raise ModelError(f"{path}: expected a line of JSON for each epoch, got something else; train anew") from error


def _object_in(path: Path) -> dict[str, Any]:
    """What a file of JSON holds; nothing if there is none."""
    return read_object(path) if path.exists() else {}
