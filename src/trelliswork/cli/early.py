"""Checks before torch and numba are loaded, which takes seconds: files to read, folders to write to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING

from trelliswork.cli.encoder_names import check_encoder
from trelliswork.data.settings import settings_in
from trelliswork.errors import ModelError, OutputError, TrellisworkError
from trelliswork.lazy import lazy_module
from trelliswork.models.catalogue import entries
from trelliswork.models.storage import CONFIG, check_output
from trelliswork.reading import require_file
from trelliswork.training.exclusive import HISTORY, CheckpointFolder, exclusive
from trelliswork.training.shares import n_processes
from trelliswork.writing import check_target

if TYPE_CHECKING:
    from trelliswork.data import brat
    from trelliswork.models import loading
    from trelliswork.models.recipe import Options
else:
    brat, loading = lazy_module("trelliswork.data.brat"), lazy_module("trelliswork.models.loading")

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
    """Keep the folder of a model for the one run inside; refuse early what could not or should not be written."""
    check_output(out)
    with exclusive(out):
        check_folder(out, force, resume)
        yield


def check_folder(out: Path, force: bool, resume: bool = False) -> None:
    """Refuse early what could not or should not be written."""
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
    """Return the folders of models with `n` seeds; a folder that holds one model is refused."""
    if (out / CONFIG).exists():
        raise OutputError(f"{out}: holds one model, and --seeds makes a folder of several; choose another folder")
    folders = [out / f"seed-{first + i}" for i in range(n)]
    for folder in folders:
        check_output(folder)
    return folders
