"""A model on disk: a folder of plain files, written whole or not at all, and nothing executed at load.

config.json            settings, label set, vocabularies, library and format version
weights.safetensors    the parameters, with their checksum
metrics.json           scores
MODEL_CARD.md          the same for people
tokeniser/             a model folder of its own: how the model reads raw text, if it has learned that
columns/               model folders of the taggers for columns that new text may lack

The folder stays where it is, for a run has its checkpoint there. The new files come into it together, under one hidden
name: with that rename the model is replaced. Giving them their own names can be done again and again, so whoever reads
the folder next finishes what a killed process began.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard, TypeVar
from uuid import uuid4

import safetensors

from trelliswork import __version__
from trelliswork.data.folder_files import check_regular, read_object
from trelliswork.errors import ModelError, OutputError
from trelliswork.lazy import lazy_module
from trelliswork.text.rules import VERSION
from trelliswork.training.exclusive import KEPT, OF_TRAINING, TOKENISER, exclusive_unless_held, is_stray
from trelliswork.writing import PART, part_prefix, removed_at_end

FORMAT_VERSION = 1
Item = TypeVar("Item")
StoredConfig = Mapping[str, Any]  # config.json as it was read: what does not fit is an error where it is used

RULES = "text_rules"  # of config.json: the version of the rules that read raw text when no tokeniser is kept
WEIGHTS = "weights.safetensors"
weight_files = lazy_module("trelliswork.data.weight_files")  # NumPy, which checks of folders do without
METRICS = "metrics.json"
CARD = "MODEL_CARD.md"


@dataclass(frozen=True)
class StoredModel:
    """The content of a model folder. `kind` names the class, `config` is what that class needs to rebuild itself."""

    kind: str
    config: StoredConfig
    weights: Mapping[str, Any]  # arrays; to be written, also torch's tensors
    metrics: Mapping[str, object]
    card: str = ""
    extra: Mapping[str, str] = field(default_factory=dict)  # further text files, by name
    kept: Mapping[str, object] = field(default_factory=dict)  # models that are kept in folders of this one, by name


def write_model(directory: str | Path, model: StoredModel) -> None:
    """Write `model` under a temporary name next to `directory`, then rename.

    An earlier model of that name is replaced; other files in its folder are kept. A folder that is not a model is
    refused, and one that a run is training in.
    """
    target = Path(directory)
    check_output(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with exclusive_unless_held(target, "saving") if target.exists() else nullcontext(), _beside(target) as partial:
            partial.chmod(0o755)
            _write_files(partial, model)
            _write_kept(partial, model.kept)
            put_in_place(partial, target)
    except (OSError, safetensors.SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OutputError(f"{target}: cannot be written: {reason}; free space or choose another folder") from error


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """Yield a new folder next to `target`, which is gone in the end."""
    partial = Path(tempfile.mkdtemp(prefix=part_prefix(target), suffix=PART, dir=target.parent))
    with removed_at_end(partial):
        yield partial


def check_output(directory: str | Path) -> None:
    """Refuse a place where a model cannot or should not be written; cheap, so that it can be asked before training."""
    target = Path(directory)
    finish_replacing(target)
    nearest = next(path for path in (target, *target.absolute().parents) if path.exists())
    if nearest.is_dir() and not os.access(nearest, os.W_OK):
        raise OutputError(f"{target}: no permission to write in {nearest}; choose another folder")
    if nearest != target and not nearest.is_dir():
        raise OutputError(f"{target}: expected {nearest} to be a folder, got a file; choose another name")
    if target.is_file():
        raise OutputError(f"{target}: expected a folder for the model, got a file; choose another name")
    foreign = target.is_dir() and any(
        path.name not in OF_TRAINING and not is_stray(path.name) for path in target.iterdir()
    )
    if foreign and not (target / CONFIG).exists():
        raise OutputError(f"{target}: expected a model or an empty folder, got other files; choose another name")


def _write_files(folder: Path, model: StoredModel) -> None:
    rules = getattr(model.kept.get(TOKENISER), "VERSION", VERSION)
    head = {"kind": model.kind, "format_version": FORMAT_VERSION, "library_version": __version__, RULES: rules}
    texts = {
        CONFIG: json.dumps({**head, **model.config}, ensure_ascii=False, indent=1) + "\n",
        METRICS: json.dumps(model.metrics, ensure_ascii=False, indent=1) + "\n",
        CARD: model.card,
        **model.extra,
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / WEIGHTS).write_bytes(weight_files.pack_weights(model.weights))
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())


def _write_kept(folder: Path, kept: Mapping[str, object]) -> None:
    """Keep other models with the model. One that cannot be saved is not kept."""
    for name in KEPT:
        model = kept.get(name)
        if model is not None and hasattr(model, "save"):
            model.save(folder / name)


def stored_kind(directory: str | Path, home_of: Callable[[str], str], default: str) -> str:
    """Return the kind of the model in a folder; what is not a model of a known kind is a `ModelError`.

    The class is not imported. `default` is the kind that the error names as expected.

    Args:
        directory: a model folder.
        home_of: says where the class of a kind is; refuses kinds that nobody knows.
        default: the kind that is shown as an example in errors.

    Returns:
        The kind.
    """
    folder = Path(directory)
    config = _read_config(folder)
    kind = str(config.get("kind"))
    _check_head(folder, config, kind if home_of(kind) else default)
    check_regular(folder / WEIGHTS)
    return kind


def is_language_model(path: str | Path) -> bool:
    """Return whether a folder has a language model that networks of words can read with."""
    config = Path(path).expanduser() / CONFIG
    return config.is_file() and read_object(config).get("kind") == "RecurrentLanguageModel"


def read_model(directory: str | Path, kind: str) -> StoredModel:
    """Read a model folder back; anything missing, truncated, foreign or too new is a `ModelError`."""
    folder = Path(directory)
    config = _read_config(folder)
    _check_head(folder, config, kind)
    _check_texts(folder, config)
    weights, _ = weight_files.read_arrays(folder / WEIGHTS)
    weight_files.check_finite(weights, folder / WEIGHTS)
    return StoredModel(kind, config, weights, _read_metrics(folder / METRICS))


def _read_config(folder: Path) -> StoredConfig:
    if not folder.is_dir():
        what = "a file" if folder.exists() else "nothing"
        raise ModelError(f"{folder}: expected a model folder, got {what}; check the path")
    finish_replacing(folder)
    return read_object(folder / CONFIG)


def _check_head(folder: Path, config: StoredConfig, kind: str) -> None:
    version = config.get("format_version")
    if "kind" not in config or not isinstance(version, int):
        raise ModelError(f"{folder}: expected a Trelliswork model, got the {CONFIG} of something else")
    if version > FORMAT_VERSION:
        raise ModelError(
            f"{folder}: expected format version {FORMAT_VERSION} or older, got {version}, written by trelliswork "
            f"{config.get('library_version', '?')}; upgrade trelliswork (this is {__version__})"
        )
    if config["kind"] != kind and is_newer(config):
        raise ModelError(f"{folder}: expected a model of kind {kind}, got {config['kind']}; {upgrade(config)}")
    if config["kind"] != kind:
        raise ModelError(f"{folder}: expected a model of kind {kind}, got {config['kind']}; load it as that")


def is_newer(config: StoredConfig) -> bool:
    """Return whether a later version of this library wrote a config.

    >>> is_newer({"library_version": "99.0"}), is_newer({"library_version": __version__}), is_newer({})
    (True, False, False)
    """
    return _numbers(str(config.get("library_version", ""))) > _numbers(__version__)


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"[0-9]{1,9}", version)]


def upgrade(config: StoredConfig) -> str:
    """Return what to do about a model of a later version."""
    return f"trelliswork {config['library_version']} wrote it; upgrade trelliswork (this is {__version__})"


def _check_texts(folder: Path, config: StoredConfig) -> None:
    """Check that labels and templates are lists of texts, and schemes texts, where there are any."""
    for name in ("labels", "templates"):
        texts = config.get(name, [])
        if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
            raise ModelError(f"{folder / CONFIG}: expected a list of texts under {name!r}; copy the model again")
    for name in ("scheme", "data_scheme"):
        if not isinstance(config.get(name, ""), str):
            raise ModelError(f"{folder / CONFIG}: expected a text under {name!r}; copy the model again")


def _read_metrics(path: Path) -> dict[str, Any]:
    metrics = read_object(path)
    try:
        check_metrics(metrics)
    except ValueError as error:
        raise ModelError(f"{path}: {error}; copy the model again or train again") from error
    return metrics


# Checks of metrics.json: what commands read from it must be there in the form in which it was written.

_NUMBERS = ("n_columns", "word_column", "tag_column", "sentence_column")


def check_metrics(metrics: Mapping[str, object]) -> None:
    """Raise `ValueError` unless data, its format, training and its settings, and dev are what they were."""
    data = _section(metrics, "data")
    _section(metrics, "dev")
    _section(_section(metrics, "training"), "settings")
    _items(data, "fields", str)
    _items(data, "examples", str)
    format = _section(data, "format")
    names = _items(format, "names", str)
    others = [format[name] for name in _NUMBERS if format.get(name) is not None]
    for column in (*_items(format, "feature_columns", int), *others):
        if not _is_of(column, int) or column < 1 or (names and column > len(names)):
            raise ValueError(f"expected the number of a column in the format of the data, got {column!r}")


def _section(holder: Mapping[str, object], name: str) -> Mapping[str, object]:
    section = holder.get(name)
    if section is not None and not isinstance(section, dict):
        raise ValueError(f"expected an object under {name!r}, got {type(section).__name__}")
    return section or {}


def _items(holder: Mapping[str, object], name: str, kind: type[Item]) -> list[Item]:
    items = holder.get(name)
    if items is not None and not (isinstance(items, list) and all(_is_of(each, kind) for each in items)):
        raise ValueError(f"expected a list under {name!r}, got {items!r}")
    return list(items or ())


def _is_of(value: object, kind: type[Item]) -> TypeGuard[Item]:
    return isinstance(value, kind) and not isinstance(value, bool)


# A new model in the folder of an earlier one, so that a kill at any moment leaves the one or the other, whole.

CONFIG = "config.json"
NEW = ".new-model"
LINK = ".link"  # the end of names that are there for a moment


def put_in_place(partial: Path, target: Path) -> None:
    """Replace the model in `target` by that in `partial`, a folder next to it, which is gone then."""
    if not target.exists():
        partial.rename(target)
        return
    _finish(target)
    shutil.rmtree(target / NEW, ignore_errors=True)
    partial.rename(target / NEW)
    _finish(target)


def finish_replacing(directory: str | Path) -> None:
    """Finish what a killed process began, as far as the folder can be written."""
    with suppress(OSError):
        _finish(Path(directory))


def _finish(target: Path) -> None:
    """Finish it, maybe in several processes at once: each step can be done again, what is gone was done by another."""
    new = target / NEW
    if not (new / CONFIG).is_file():
        return
    for name in KEPT:
        if not (new / name).exists() and ((target / name / CONFIG).is_file() or any(target.glob(f"{name}/*/{CONFIG}"))):
            shutil.rmtree(target / name, ignore_errors=True)
    try:
        for path in sorted(each for each in new.rglob("*") if each.is_file() and each.suffix != LINK):
            place = target / path.relative_to(new)
            place.parent.mkdir(parents=True, exist_ok=True)
            _link(path, place)
        (new / CONFIG).unlink()  # finished
    except FileNotFoundError:
        if (new / CONFIG).exists():
            raise
    shutil.rmtree(new, ignore_errors=True)


def _link(path: Path, place: Path) -> None:
    """Give a file a further name, which it takes from another."""
    other = path.with_name(f"{path.name}-{uuid4().hex}{LINK}")
    try:
        os.link(path, other)
    except FileNotFoundError:
        raise
    except OSError:  # a file system without links
        shutil.copy2(path, other)
    os.replace(other, place)
