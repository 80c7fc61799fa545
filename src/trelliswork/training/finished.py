"""Runs that were trained to their end, as their folder tells."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trelliswork.data import Sentence
from trelliswork.data.folder_files import read_object, read_regular
from trelliswork.data.json_values import BadJSONError, parse_json
from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.training.config import TrainingConfig
from trelliswork.training.exclusive import HISTORY, CheckpointFolder
from trelliswork.training.progress import EpochRecord
from trelliswork.training.result import TrainingResult

if TYPE_CHECKING:
    from torch import nn

NO_MATTER = ("checkpoint_every",)  # settings that may change between one start and the next


def fingerprint(
    model: nn.Module, train: Sequence[Sentence], dev: Sequence[Sentence] | None, config: TrainingConfig
) -> dict[str, Any]:
    """Return settings, model and data as plain values."""
    settings = getattr(getattr(model, "config", None), "to_dict", dict)
    description = {
        "settings": {name: value for name, value in config.to_dict().items() if name not in NO_MATTER},
        "model": {"kind": type(model).__name__, **settings()},
        "training data": _of_data(train),
        "dev data": _of_data(dev or ()),
        "shapes": {name: list(tensor.shape) for name, tensor in model.state_dict().items()},
    }
    return json.loads(json.dumps(description))


def _of_data(sentences: Sequence[Sentence]) -> dict[str, Any]:
    digest = hashlib.blake2b(digest_size=16)
    for sentence in sentences:
        answers = (each for each in (sentence.heads, sentence.brackets, sentence.target) if each is not None)
        digest.update(json.dumps([sentence.words, sentence.tags, sentence.features, *answers]).encode())
    return {"sentences": len(sentences), "tokens": sum(map(len, sentences)), "content": digest.hexdigest()}


def refuse_differences(then: Mapping[str, Any], now: Mapping[str, Any], place: str, kind: str = "interrupted") -> None:
    """Raise an error that says what differs between the run that left something there and this one."""
    differences = [text for part in now for text in _differences(part, then.get(part, {}), now[part])]
    if differences:
        more = f" and {len(differences) - 3} more" if len(differences) > 3 else ""
        raise TrellisworkError(
            f"{place}: expected the settings and data of the {kind} run; {'; '.join(differences[:3])}{more}; "
            "give the same again, or train anew without --resume"
        )


def _differences(part: str, then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    names = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    if part.endswith("data"):
        sizes = [f"{each.get('sentences', 0):,} sentences of {each.get('tokens', 0):,} tokens" for each in (then, now)]
        same_size = "content" if sizes[0] == sizes[1] else f"it had {sizes[0]}, and has {sizes[1]}"
        return [f"the {part} differs ({same_size})"] if names else []
    where = "the shape of " if part == "shapes" else ""
    return [f"{where}{name} was {then.get(name)!r} and is {now.get(name)!r}" for name in names]


METRICS = "metrics.json"
LONGER = ("epochs", "patience")  # settings that a finished run may go on with


def finished_run(folder: Path, model: Any, config: TrainingConfig) -> TrainingResult | None:
    """Return the result of the run in a folder, if its history ends with the last epoch or without patience."""
    result = earlier_run(folder, model, config)
    if result is None:
        return None
    n_epochs = len(result.history)
    return result if n_epochs >= config.epochs or n_epochs - result.best_epoch >= config.patience else None


def earlier_run(folder: Path, model: Any, config: TrainingConfig) -> TrainingResult | None:
    """Return the result of a run that has left a model, a history and no checkpoint in a folder.

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
    section = holder.get(name, {})
    if not isinstance(section, dict):
        raise ModelError(f"{folder}: expected an object under {name!r}, got {type(section).__name__}; train anew")
    return section


def _plain(settings: Mapping[str, Any], may_differ: Sequence[str] = (*NO_MATTER, *LONGER)) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in may_differ}


def read_history(path: Path) -> list[EpochRecord]:
    """Return the epochs in a file."""
    try:
        return [EpochRecord(**parse_json(line)) for line in read_regular(path).decode("utf-8").splitlines()]
    except (UnicodeDecodeError, BadJSONError, TypeError) as error:
        raise ModelError(f"{path}: expected a line of JSON for each epoch, got something else; train anew") from error


def _object_in(path: Path) -> dict[str, Any]:
    """Return the object in a file of JSON; an empty one if there is no file."""
    return read_object(path) if path.exists() else {}
