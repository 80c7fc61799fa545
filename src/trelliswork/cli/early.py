"""Checks before torch and numba are loaded, which takes seconds: files to read, folders to write to."""

from __future__ import annotations

import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING

from trelliswork.data.folder_files import read_object
from trelliswork.data.settings import settings_in
from trelliswork.errors import ModelError, OutputError, TrellisworkError
from trelliswork.lazy import lazy_module, require
from trelliswork.models.catalogue import entries
from trelliswork.models.storage import CONFIG, check_output
from trelliswork.reading import require_file
from trelliswork.training.exclusive import HISTORY, CheckpointFolder, exclusive
from trelliswork.training.shares import n_processes
from trelliswork.writing import check_target

if TYPE_CHECKING:
    from trelliswork.data import brat
    from trelliswork.models import loading, storage
    from trelliswork.models.recipe import Options
else:
    brat, loading = lazy_module("trelliswork.data.brat"), lazy_module("trelliswork.models.loading")
    storage = lazy_module("trelliswork.models.storage")


# Names after --pretrained, checked before torch is loaded: a folder, or a model of the Hugging Face hub.

NEEDED = ("transformers", "a pretrained encoder", "transformers")  # a module, what for, and its extra
HUB = "https://huggingface.co"
SECONDS = 5.0  # to wait for an answer of the hub
_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
_OWN_OPTIONS = "pretrained_"  # how the names of options begin that say more about an encoder


def check_encoder(options: Mapping[str, object], defaults: Mapping[str, object]) -> None:
    """Refuse an encoder that is not there, a missing library, and options about an encoder when none is named.

    Args:
        options: All options by name.
        defaults: The values of options that stand for nothing.
    """
    name = options.get("pretrained")
    if name and storage.is_language_model(str(name)):
        return
    if name:
        require(*NEEDED)
        check_name(str(name))
        return
    if options.get("init") is not None:
        return  # the network may have one
    for option, value in options.items():
        if option.startswith(_OWN_OPTIONS) and value is not None and value != defaults.get(option):
            given = "--" + option.replace("_", "-")
            raise TrellisworkError(f"{given} is about a pretrained encoder; add --pretrained NAME|DIR or leave it out")


def check_name(name: str) -> None:
    """Refuse what is neither the folder of a transformer nor the name of one on the hub."""
    path = Path(name).expanduser()
    if path.exists():
        _check_folder(name, path)
    elif name.startswith((".", "~", os.sep)) or not _NAME.fullmatch(name):
        raise TrellisworkError(f"{name}: expected the folder of a model of Hugging Face, got nothing; check the path")
    elif not _is_cached(name):
        _ask_hub(name)


def _check_folder(name: str, path: Path) -> None:
    expected = f"{name}: expected a folder with a model of Hugging Face"
    if not path.is_dir():
        raise TrellisworkError(f"{expected}, got a file; name the folder")
    if not (path / "config.json").is_file():
        raise TrellisworkError(f"{expected}, got one without config.json; check the path")
    config = read_object(path / "config.json")
    if "model_type" not in config:
        fix = "start from it with --init" if "format_version" in config else "check the path"
        raise TrellisworkError(f"{expected}, got a config.json without model_type; {fix}")
    if not any(path.glob("*.safetensors")):
        raise TrellisworkError(f"{expected}, got one without weights in safetensors; save it again with transformers")


def _is_cached(name: str) -> bool:
    """Return whether an earlier download left the model where `huggingface_hub` keeps them."""
    home = os.environ.get("HF_HOME", "~/.cache/huggingface")
    cache = Path(os.environ.get("HF_HUB_CACHE", f"{home}/hub")).expanduser()
    return any((cache / f"models--{name.replace('/', '--')}" / "snapshots").glob("*/config.json"))


def _ask_hub(name: str) -> None:
    """Refuse a name that the hub does not know, or cannot be asked about."""
    fix = "check the name, or give a folder"
    if os.environ.get("HF_HUB_OFFLINE", "0").upper() in ("1", "ON", "YES", "TRUE"):
        raise TrellisworkError(f"{name}: not among the models on this machine, and HF_HUB_OFFLINE is set; {fix}")
    hub = os.environ.get("HF_ENDPOINT", HUB)
    request = urllib.request.Request(f"{hub}/{name}/resolve/main/config.json", method="HEAD")
    try:
        urllib.request.urlopen(request, timeout=SECONDS).close()
    except urllib.error.HTTPError as error:
        if error.code == 404 or (error.code == 401 and "HF_TOKEN" not in os.environ):
            raise TrellisworkError(f"{name}: no folder, and {hub} has no public model of that name; {fix}") from error
    except OSError as error:
        raise TrellisworkError(
            f"{name}: no folder, not among the models on this machine, and {hub} cannot be reached; {fix}"
        ) from error


AUTO, RULES = "auto", "rules"  # tokenisers without a folder


def check_training(options: Options) -> None:
    """Refuse a run whose files are missing or whose folder cannot or should not be written."""
    check_files(options)
    if n_processes() > 1:
        if options["seeds"] > 1:
            raise TrellisworkError("--seeds needs a single process; start each seed by itself with --seed")
        return  # the first of them makes the folder
    out, begun = Path(options["out"]), options["force"] or options["resume"]
    for folder in [out] if options["seeds"] == 1 else seed_folders(out, options["seed"], options["seeds"]):
        check_folder(folder, begun)


def check_files(options: Options) -> None:
    """Refuse files and folders to read from that are missing, and options whose packages are."""
    configs = {config for entry in entries().values() for config in entry.configs}
    files = [str(about.option) for config in configs for _, about in settings_in(config) if about.metavar == "FILE"]
    check_paths(read=[options.get(name) for name in ("train", "dev", *sorted(files))])
    defaults = {str(about.option): each.default for config in configs for each, about in settings_in(config)}
    check_encoder(options, defaults)
    if options.get("init") is not None:
        loading.known_kind(options["init"])
    tokeniser_folder(options)


def check_paths(*, read: Sequence[str | None] = (), write: Sequence[str | None] = ()) -> None:
    """Refuse files to read that are missing and files to write that cannot be; None and "-" are no files."""
    for path in read:
        if path is not None and not _stands_for_documents(path):
            require_file(path)
    for path in write:
        if path not in (None, "-"):
            check_target(path)


def _stands_for_documents(path: str) -> bool:
    """Return whether a path is a folder of BRAT documents, or a pattern that some of them match."""
    return brat.is_brat(path) and (Path(path).is_dir() or (has_magic(path) and bool(glob(path))))


def tokeniser_folder(options: Options) -> Path | None:
    """Return the folder that --tokeniser names, which is a tokeniser or keeps one."""
    given = options.get("tokeniser")
    if given in (None, AUTO, RULES):
        return None
    kept = loading.tokeniser_in(given)
    folder = Path(given) if kept is None else kept.folder
    if not (folder / CONFIG).exists():
        raise ModelError(f"{given}: expected --tokeniser auto, rules or the folder of a tokeniser; got no such folder")
    return folder


@contextmanager
def reserved(out: Path, force: bool, resume: bool = False) -> Iterator[None]:
    """Keep the folder of a model for the one run inside; refuse early what could not or should not be written.

    Args:
        out: Folder of the model.
        force: Whether a model that is there is replaced.
        resume: Whether a run that is there goes on.

    Returns:
        A context in which the folder is locked.
    """
    check_output(out)
    with exclusive(out):
        check_folder(out, force, resume)
        yield


def check_folder(out: Path, force: bool, resume: bool = False) -> None:
    """Refuse early what could not or should not be written.

    Args:
        out: Folder of the model.
        force: Whether a model that is there is replaced.
        resume: Whether a run that is there goes on.
    """
    check_output(out)
    unfinished, is_model = CheckpointFolder(out).exists, (out / CONFIG).exists()
    if resume and is_model and not unfinished and not (out / HISTORY).is_file():
        raise OutputError(f"{out}: holds a model without a run to resume; train anew with --force")
    if resume or force:
        return
    if unfinished:
        raise OutputError(f"{out}: holds an unfinished run; add --resume to continue, or --force to start again")
    if is_model:
        raise OutputError(f"{out}: holds a model already; add --force to replace it or choose another folder")


def seed_folders(out: Path, first: int, n: int) -> list[Path]:
    """Return the folders of models with `n` seeds; a folder that holds one model is refused.

    Args:
        out: Folder of all models.
        first: The first seed.
        n: Number of seeds.

    Returns:
        A folder for each seed.
    """
    if (out / CONFIG).exists():
        raise OutputError(f"{out}: holds one model, and --seeds makes a folder of several; choose another folder")
    folders = [out / f"seed-{first + i}" for i in range(n)]
    for folder in folders:
        check_output(folder)
    return folders
