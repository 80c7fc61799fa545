"""The tokeniser that `trelliswork train` keeps in the folder of a model."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from trelliswork.cli.inputs import say
from trelliswork.cli.kernels import announce_compiling
from trelliswork.data import ColumnFormat
from trelliswork.errors import ModelError
from trelliswork.models.families import TOKENISER
from trelliswork.models.loading import FolderTokeniser, tokeniser_in
from trelliswork.models.recipe import Options
from trelliswork.models.storage import CONFIG
from trelliswork.models.tokenisers.recipe import learn_tokeniser

AUTO, RULES = "auto", "rules"


def given_tokeniser(options: Options) -> Any:
    """The one in the folder that --tokeniser names, which is a tokeniser or keeps one."""
    folder = options.get("tokeniser")
    if folder in (None, AUTO, RULES):
        return None
    found = tokeniser_in(folder) or FolderTokeniser(Path(folder))
    if not (found.folder / CONFIG).exists():
        raise ModelError(f"{folder}: expected --tokeniser auto, rules or the folder of a tokeniser; got no such folder")
    found.tokenise("")  # damage is told before training
    return found


def learned_tokeniser(options: Options, format: ColumnFormat | None) -> Any:
    """One that is learned from the training file, if that says where words touch; on --resume, that of the run."""
    if options.get("tokeniser") != AUTO or options["model"] == TOKENISER or format is None or not format.conllu:
        return None
    out = Path(options["out"])
    before = tokeniser_in(out) or tokeniser_in(out / f"seed-{options['seed']}") if options["resume"] else None
    if before is not None:
        return before
    quiet = options["quiet"]
    announce_compiling(quiet=quiet)
    return learn_tokeniser(options["train"], options["dev"], partial(say, quiet=quiet), options["seed"])
