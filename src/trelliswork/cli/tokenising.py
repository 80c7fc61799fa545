"""The tokeniser that `trelliswork train` keeps in the folder of a model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from trelliswork.cli.compiling import announce_compiling
from trelliswork.cli.early import AUTO, tokeniser_folder
from trelliswork.cli.messages import say
from trelliswork.data import Choices, ColumnFormat, Sentence, file_kind, infer_format
from trelliswork.data.files import numbered_lines, open_text
from trelliswork.data.readers import open_untagged, read_pretokenised
from trelliswork.errors import DataError
from trelliswork.models.catalogue import TOKENISER
from trelliswork.models.loading import FolderTokeniser, tokeniser_in
from trelliswork.models.recipe import Note, Options
from trelliswork.models.tokenisers.recipe import learn_from_tokens, learn_tokeniser, spaced_documents
from trelliswork.text import Document
from trelliswork.text.spacing import is_unspaced

MOST_SENTENCES = 200_000  # that a tokeniser is learned from
SAMPLE = 2000  # lines that tell how tokens are written


def known_texts(path: str, raw: str | None, choices: Choices, note: Note) -> list[Document]:
    """The texts of a file of tokens: as CoNLL-U spells them, or as the file of raw text has them."""
    format = (
        None if file_kind(path) != "conll" or _is_pretokenised(path) else infer_format(path, choices, with_tags=False)
    )
    if format is not None and format.conllu:
        if raw is not None:
            raise DataError(path, f"CoNLL-U has its text in itself, got --raw {raw} too; leave that out")
        found = spaced_documents(path)
        if found is not None:
            return found
    if raw is None:
        problem = "expected CoNLL-U in which SpaceAfter=No says where words touch, got none"
        raise DataError(path, f"{problem}; give the raw text too, with --raw (of --dev: --raw-dev)")
    if format is None and file_kind(path) == "conll":
        note(f"{path}: a sentence on each line, white space between tokens")
        sentences = read_pretokenised(path)
    else:
        sentences = open_untagged(path, file_kind(path), choices)[1]
    with open_text(raw) as lines:
        text = "".join(f"{line}\n" for line in lines)
    return [Document.aligned(text, (sentence.words for sentence in sentences), raw)]


def _is_pretokenised(path: str) -> bool:
    """Whether lines have different numbers of tokens, so that they are sentences."""
    sample = [line for _, line in islice(numbered_lines(path), SAMPLE) if line.strip() and not line.startswith("#")]
    return not any("\t" in line for line in sample) and len({len(line.split()) for line in sample}) > 1


def given_tokeniser(options: Options) -> Any:
    """The one in the folder that --tokeniser names, which is a tokeniser or keeps one."""
    folder = tokeniser_folder(options)
    if folder is None:
        return None
    found = FolderTokeniser(folder)
    found.tokenise("")  # damage is told before training
    return found


def learned_tokeniser(options: Options, format: ColumnFormat | None, train: Sequence[Sentence]) -> Any:
    """One that is learned from the training data, for text to be cut as they are; on --resume, that of the run.

    None where they say nothing of it: texts that rules have cut, pairs of strings, attributes, whole documents.
    """
    if options.get("tokeniser") != AUTO or options["model"] == TOKENISER:
        return None
    out = Path(options["out"])
    before = tokeniser_in(out) or tokeniser_in(out / f"seed-{options['seed']}") if options["resume"] else None
    if before is not None:
        return before
    quiet = options["quiet"]
    note = partial(say, quiet=quiet)
    if format is not None and format.conllu:
        announce_compiling(quiet=quiet)
        return learn_tokeniser(options["train"], options["dev"], note, options["seed"])
    words = [sentence.words for sentence in islice(train, MOST_SENTENCES) if not sentence.offsets]
    if is_unspaced(words):
        announce_compiling(quiet=quiet)
    return learn_from_tokens(words, note, options["seed"]) if words else None
