"""The files that a model is trained on again: its own sentences and those that were taught."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from trelliswork.cli.config_file import config_text, known_settings
from trelliswork.data import Choices, Sentence, json_text
from trelliswork.data.files import numbered_lines
from trelliswork.data.readers import open_tagged
from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.training.folder_names import SETTINGS
from trelliswork.web.teaching.lesson import ARCS, UNKNOWN, Lesson
from trelliswork.writing import atomic_write

# Settings about the layout of files, which are JSON lines here.
LAYOUT = {"train", "dev", "out", "word_column", "tag_column", "feature_columns", "delimiter", "scheme", "tokeniser"}
PARTIAL = "partial"
ALONE = "the data that the model was trained on was not found; training on what was taught alone"


class Material(NamedTuple):
    """A file of settings to train with, the dev sentences, and what is worth knowing about them."""

    config: Path
    dev: Path
    notes: list[str]


def prepared(lesson: Lesson, model: str, data: Mapping[str, str | None]) -> Material:
    """Write train.jsonl, dev.jsonl and config.toml into the folder of a lesson, whose model is in a folder.

    `data` may name the files `train` and `dev`; else they are those that the settings of the model name.
    """
    folder, notes = lesson.folder, list[str]()
    settings, about = _settings(model), _about(model)
    train, dev = (data.get(name) or _existing(settings.get(name), model) for name in ("train", "dev"))
    if dev is None:
        problem = "no dev sentences are known, which would show whether the new model is better"
        raise TrellisworkError(f"{problem}; start the server with --dev FILE")
    if lesson.answers == ARCS:
        return _trees(lesson, settings, train, dev)
    own = [] if train is None else list(_tagged(train, about))
    if not own:
        notes.append(ALONE)
    taught = [_sentence(record) for record in lesson.taught.records]
    takes_partial = PARTIAL in known_settings(str(settings["name"]))["model"]
    if not takes_partial:
        whole = [each for each in taught if UNKNOWN not in (each.tags or ())]
        if len(whole) < len(taught):
            notes.append(f"{len(taught) - len(whole)} sentences with unknown tags left out: a network needs them all")
        taught = whole
    if not (own or taught):
        raise TrellisworkError("nothing to train on; decide about some sentences first")
    _write(folder / "train.jsonl", [*own, *taught])
    _write(folder / "dev.jsonl", _tagged(dev, about))
    notes.append(f"{len(own)} sentences of its own and {len(taught)} that were taught")
    more = {PARTIAL: True} if takes_partial else {}
    return _configured(folder, settings, folder / "train.jsonl", folder / "dev.jsonl", notes, **more)


def _trees(lesson: Lesson, settings: Mapping[str, Any], own: str | None, dev: str) -> Material:
    """The treebank of a parser with what was taught behind it."""
    folder, taught = lesson.folder, lesson.taught.path.read_text(encoding="utf-8")
    if not (own or taught):
        raise TrellisworkError("nothing to train on; decide about some sentences first")
    with atomic_write(folder / "train.conllu") as file:
        for _, line in numbered_lines(own) if own else ():
            file.write(line.rstrip("\n") + "\n")
        file.write("\n" + taught)
    notes = [] if own else [ALONE]
    notes.append(f"{len(lesson.taught.records)} trees that were taught" + (f", behind those of {own}" if own else ""))
    return _configured(folder, settings, folder / "train.conllu", Path(dev), notes)


def _configured(
    folder: Path, settings: Mapping[str, Any], train: Path, dev: Path, notes: list[str], **more: Any
) -> Material:
    """The settings of the model with other files, written into the folder."""
    kept = {key: value for key, value in settings.items() if key not in LAYOUT}
    kept |= {"model": kept.pop("name"), "train": str(train), "dev": str(dev), **more}
    with atomic_write(folder / SETTINGS) as file:
        file.write(config_text(kept))
    return Material(folder / SETTINGS, dev, notes)


def _settings(model: str) -> dict[str, Any]:
    path = Path(model) / SETTINGS
    try:
        sections = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        problem = f"{path}: expected the settings that the model was trained with, got none ({error})"
        raise ModelError(f"{problem}; train it with trelliswork train") from error
    return {key: value for values in sections.values() for key, value in values.items()}


def _about(model: str) -> dict[str, Any]:
    stored = json.loads((Path(model) / "metrics.json").read_text(encoding="utf-8"))
    found: dict[str, Any] = (stored.get("data") or {}).get("format") or {}
    return found


def _existing(path: str | None, model: str) -> str | None:
    """A file as the settings of a model name it, seen from here or from its folder."""
    places = [] if path is None else [Path(path), Path(model) / path, Path(model).parent / path]
    return next((str(each) for each in places if each.is_file()), None)


def _tagged(path: str, about: Mapping[str, Any]) -> Iterator[Sentence]:
    columns = about.get("feature_columns")
    choices = Choices(
        word_column=about.get("word_column"), tag_column=about.get("tag_column"),
        feature_columns=None if columns is None else tuple(columns),
    )  # fmt: skip
    yield from open_tagged(path, choices if not path.endswith((".jsonl", ".json")) else Choices())[1]


def _sentence(record: Mapping[str, Any]) -> Sentence:
    features: Sequence[Sequence[str]] = record.get("features", ())
    return Sentence(tuple(record["tokens"]), tuple(record["tags"]), tuple(map(tuple, features)))


def _write(path: Path, sentences: Iterable[Sentence]) -> None:
    with atomic_write(path) as file:
        file.writelines(json_text(Sentence(each.words, each.tags, each.features)) for each in sentences)
