"""Training on what was taught, in a process of its own, and the better model in the place of the one that is served."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import tomllib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from trelliswork.cli.config_file import config_text, known_settings
from trelliswork.data import Choices, Sentence, json_text
from trelliswork.data.json_values import Json, JsonObject
from trelliswork.data.readers import open_tagged
from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.reading import numbered_lines
from trelliswork.training.exclusive import SETTINGS
from trelliswork.web.pool import Pool
from trelliswork.web.problems import Problem
from trelliswork.web.teaching.lesson import ARCS, UNKNOWN, Lesson
from trelliswork.writing import atomic_write

LINES = 200  # of the log that are kept


class Training:
    """One training at a time; `data` may name the files `train` and `dev`."""

    def __init__(self, pool: Pool, data: dict[str, str | None]) -> None:
        self._pool, self._data = pool, data
        self._log: deque[str] = deque(maxlen=LINES)
        self._state: JsonObject = {"state": "idle"}
        self._task: asyncio.Task[None] | None = None

    def state(self) -> JsonObject:
        """Return the answer to GET /v1/teach/training."""
        empty = {"before": None, "after": None, "swapped": None, "problem": None}
        return {**empty, **self._state, "log": list(self._log)}

    async def begin(self, lesson: Lesson, *, on_swap: Callable[[], None]) -> None:
        """Start in the background."""
        if self._state["state"] == "running":
            raise Problem(409, "a model is being trained already; wait until it is finished")
        self._log.clear()
        self._state = {"state": "running", "model": lesson.model}
        self._task = asyncio.create_task(self._run(lesson, on_swap))

    async def stop(self) -> None:
        """End a training that runs."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self, lesson: Lesson, on_swap: Callable[[], None]) -> None:
        try:
            await self._train(lesson, on_swap)
            self._state["state"] = "done"
        except (TrellisworkError, OSError) as error:
            self._state |= {"state": "failed", "problem": str(error)}

    async def _train(self, lesson: Lesson, on_swap: Callable[[], None]) -> None:
        """Train, score both models on the dev sentences, and keep the better one."""
        served = self._pool.folders[lesson.model]
        material = await asyncio.to_thread(prepare_material, lesson, served, self._data)
        self._log.extend(material.notes)
        out = _new_folder(lesson.folder)
        await self._command("trelliswork", "train", str(material.config), "--out", str(out))
        before, after = [await self._score(folder, material.dev) for folder in (served, str(out))]
        self._state |= {"before": before, "after": after, "swapped": after > before}
        if after > before:
            await self._pool.replace(lesson.model, str(out))
            on_swap()
        what = "the new model is served now" if after > before else "the old model stays"
        self._log.append(f"dev score {100 * before:.2f} before, {100 * after:.2f} after: {what}")

    async def _score(self, folder: str, dev: Path) -> float:
        """Return the score of a model on the dev sentences, found in a process of its own."""
        last = await self._command("trelliswork.web.teaching.uncertainty", folder, str(dev), quiet=True)
        return float(json.loads(last)["score"])

    async def _command(self, module: str, *arguments: str, quiet: bool = False) -> str:
        """Run a module of this package; its lines go to the log, unless it is quiet. Return the last line."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "trelliswork.runtime.parents", str(os.getpid()), module, *arguments,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        assert process.stdout is not None
        last = ""
        try:
            while line := await process.stdout.readline():
                last = line.decode(errors="replace").rstrip()[:500] or last
                if not quiet and line.strip():
                    self._log.append(last)
            status = await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if status:
            reason = last.removeprefix("error: ") or f"status {status}"
            raise TrellisworkError(f"{module} {arguments[0]} failed: {reason}")
        return last


def _new_folder(folder: Path) -> Path:
    number = 1
    while (folder / f"model-{number}").exists():
        number += 1
    return folder / f"model-{number}"


# The files that a model is trained on again: its own sentences and those that were taught.

# Settings about the layout of files, which are JSON lines here.
LAYOUT = {"train", "dev", "out", "word_column", "tag_column", "feature_columns", "delimiter", "scheme", "tokeniser"}
PARTIAL = "partial"
ALONE = "the data that the model was trained on was not found; training on what was taught alone"


class Material(NamedTuple):
    """A file of settings to train with, the dev sentences, and what is worth knowing about them."""

    config: Path
    dev: Path
    notes: list[str]


def prepare_material(lesson: Lesson, model: str, data: Mapping[str, str | None]) -> Material:
    """Write train.jsonl, dev.jsonl and config.toml into the folder of a lesson, whose model is in a folder.

    `data` may name the files `train` and `dev`; else they are those that the settings of the model name.

    Args:
        lesson: The lesson that was taught.
        model: The folder of the model.
        data: Files `train` and `dev`, where they are not those of the settings of the model.

    Returns:
        The file of settings, the dev sentences, and notes.
    """
    folder, notes = lesson.folder, list[str]()
    settings, about = _settings(model), _about(model)
    train, dev = (data.get(name) or _existing(settings.get(name), model) for name in ("train", "dev"))
    if dev is None:
        problem = "no dev sentences are known, which would show whether the new model is better"
        raise TrellisworkError(f"{problem}; start the server with --dev FILE")
    if lesson.answers == ARCS:
        return _trees(lesson, settings, train, dev)
    own = [] if train is None else list(_read_tagged(train, about))
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
    _write(folder / "dev.jsonl", _read_tagged(dev, about))
    notes.append(f"{len(own)} sentences of its own and {len(taught)} that were taught")
    more = {PARTIAL: True} if takes_partial else {}
    return _write_config(folder, settings, folder / "train.jsonl", folder / "dev.jsonl", notes, **more)


def _trees(lesson: Lesson, settings: Mapping[str, Json], own: str | None, dev: str) -> Material:
    """Return the treebank of a parser followed by what was taught."""
    folder, taught = lesson.folder, lesson.taught.path.read_text(encoding="utf-8")
    if not (own or taught):
        raise TrellisworkError("nothing to train on; decide about some sentences first")
    with atomic_write(folder / "train.conllu") as file:
        for _, line in numbered_lines(own) if own else ():
            file.write(line.rstrip("\n") + "\n")
        file.write("\n" + taught)
    notes = [] if own else [ALONE]
    notes.append(f"{len(lesson.taught.records)} trees that were taught" + (f", behind those of {own}" if own else ""))
    return _write_config(folder, settings, folder / "train.conllu", Path(dev), notes)


def _write_config(
    folder: Path, settings: Mapping[str, Json], train: Path, dev: Path, notes: list[str], **more: Json
) -> Material:
    """Return the settings of the model with other files, written into the folder."""
    kept = {key: value for key, value in settings.items() if key not in LAYOUT}
    kept |= {"model": kept.pop("name"), "train": str(train), "dev": str(dev), **more}
    with atomic_write(folder / SETTINGS) as file:
        file.write(config_text(kept))
    return Material(folder / SETTINGS, dev, notes)


def _settings(model: str) -> JsonObject:
    path = Path(model) / SETTINGS
    try:
        sections = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        problem = f"{path}: expected the settings that the model was trained with, got none ({error})"
        raise ModelError(f"{problem}; train it with trelliswork train") from error
    return {key: value for values in sections.values() for key, value in values.items()}


def _about(model: str) -> JsonObject:
    stored = json.loads((Path(model) / "metrics.json").read_text(encoding="utf-8"))
    layout: JsonObject = (stored.get("data") or {}).get("format") or {}
    return layout


def _existing(path: str | None, model: str) -> str | None:
    """Return a file as the settings of a model name it, seen from here or from its folder."""
    places = [] if path is None else [Path(path), Path(model) / path, Path(model).parent / path]
    return next((str(each) for each in places if each.is_file()), None)


def _read_tagged(path: str, about: Mapping[str, Json]) -> Iterator[Sentence]:
    columns = about.get("feature_columns")
    choices = Choices(
        word_column=about.get("word_column"), tag_column=about.get("tag_column"),
        feature_columns=None if columns is None else tuple(columns),
    )  # fmt: skip
    yield from open_tagged(path, choices if not path.endswith((".jsonl", ".json")) else Choices())[1]


def _sentence(record: Mapping[str, Json]) -> Sentence:
    features: Sequence[Sequence[str]] = record.get("features", ())
    return Sentence(tuple(record["tokens"]), tuple(record["tags"]), tuple(map(tuple, features)))


def _write(path: Path, sentences: Iterable[Sentence]) -> None:
    with atomic_write(path) as file:
        file.writelines(json_text(Sentence(each.words, each.tags, each.features)) for each in sentences)
