"""Manifests of recordings: on each line a file, a tab and its transcript. Paths are relative to the manifest.

>>> from trelliswork.data.recordings import open_recordings
>>> columns, recordings = open_recordings("digits.tsv", Choices())                        # doctest: +SKIP
>>> recordings[0].text, recordings[0].target                                              # doctest: +SKIP
('wav/ann-0.wav', ('3', '1', '4'))
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from trelliswork.data.choices import Choices
from trelliswork.data.media import SHOWN, Media, is_recording, read_media
from trelliswork.data.pairs import SHORT, SHOWN_UNITS, PairColumns, PairFormat, Row, Units, columns_for, rows_of
from trelliswork.data.sentence import Sentence
from trelliswork.data.unicode_forms import form_of
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.reading import name_of

if TYPE_CHECKING:
    from torch import Tensor

    from trelliswork.runtime.arrays import Float

RECORDINGS = "recordings"  # what recognizers learn from, as `Model.learns_from` has it


@dataclass(frozen=True, slots=True)
class Recording(Sentence):
    """A file with its transcript, if that is known: `words` is its path, `text` the path as the manifest has it.

    `frames` are what a network reads of it, once they are computed; it is as long as they are.
    """

    frames: Float[Tensor, "t d"] | None = field(default=None, compare=False, repr=False)

    def __len__(self) -> int:
        return 1 if self.frames is None else len(self.frames)


@dataclass(frozen=True)
class RecordingFormat(PairFormat):
    """The way to cut transcripts into symbols, and the kind of the recordings and the width of their vectors.

    >>> RecordingFormat(target="blanks").cut_target("3 1 4")
    ('3', '1', '4')
    """

    media: str = ""  # vectors, image or sound; empty is any
    dim: int = 0  # of vectors
    rate: int = 0  # of sound; sound at another rate is resampled

    def like(self, media: Media) -> RecordingFormat:
        """Return the format of recordings like this one."""
        return replace(self, media=media.kind, dim=media.dim, rate=media.rate)

    def check(self, media: Media, first: str) -> None:
        """Raise an error if a recording is unlike those of training, or unlike the first one."""
        if self.media and media.kind != self.media:
            raise TrellisworkError(
                f"expected {SHOWN[self.media]}, as in {first}, got {SHOWN[media.kind]}; leave it out"
            )
        if self.dim and media.dim != self.dim:
            raise TrellisworkError(
                f"expected vectors of {self.dim} numbers, as in {first}, got {media.dim}; leave it out"
            )


@dataclass(frozen=True)
class ManifestColumns(PairColumns):
    """The columns of a manifest: files as words, transcripts as tags."""

    SIDES: ClassVar[tuple[str, str]] = ("file", "transcript")

    def describe(self) -> str:
        units = (
            "" if self.tag_column is None else f", transcript = {self.tag_column} ({SHOWN_UNITS[self.pairs.target]})"
        )
        form = f"; Unicode form {self.form}" if self.form else ""
        return f"recordings, {self.n_columns} columns: file = {self.word_column}{units}{form}"


def open_recordings(path: str | Path, choices: Choices) -> tuple[ManifestColumns, list[Recording]]:
    """Return the columns of a manifest and its recordings with their transcripts, each file read once as a check.

    Args:
        path: A manifest.
        choices: What is known of its columns, of how transcripts are cut, and of the recordings.
    """
    columns = ManifestColumns(*columns_for(choices, True, name_of(path)))
    rows = list(rows_of(path, columns))
    if not rows:
        raise DataError(name_of(path), "expected lines of a file, a tab and a transcript, got none; the file is empty")
    format = choices.pairs if isinstance(choices.pairs, RecordingFormat) else RecordingFormat()
    if format.target == "auto":
        format = replace(format, target=_units(row.target for row in rows))
    resolved = format.resolve([Row(0, "", row.target, 0) for row in rows])
    format = replace(format, source="characters", target=resolved.target, spelling=resolved.spelling)
    first = "training" if format.media else ""
    recordings = []
    for row in rows:
        each = _recording(row, format, path, choices, first)
        if not first:
            format, first = format.like(read_media(each.words[0])), row.source
        recordings.append(each)
    form = form_of(row.target for row in rows)
    n_columns = max(row.n_columns for row in rows)
    return replace(columns, n_columns=n_columns, pairs=format, form=form), recordings


def open_new_recordings(path: str | Path, choices: Choices) -> tuple[ManifestColumns | None, Iterator[Recording]]:
    """Return new recordings: those of a manifest, whose transcripts may be missing, or the file itself as the only one.

    They are read as they are asked for, each file once as a check.
    """
    format: RecordingFormat = choices.pairs
    if is_recording(path):
        row = Row(1, str(path), "", 1)
        return None, (_recording(each, format, "", choices, "training") for each in [row])
    columns = replace(ManifestColumns(*columns_for(choices, True, name_of(path))), pairs=format)
    rows = rows_of(path, columns, optional=True)
    return columns, (_recording(row, format, path, choices, "training") for row in rows)


def _recording(row: Row, format: RecordingFormat, manifest: str | Path, choices: Choices, first: str) -> Recording:
    """Return the recording of a row; what is wrong with its file is an error of the line."""
    folder = Path(choices.folder if choices.folder is not None else Path(manifest).parent)
    written = row.source.strip()
    path = written if not manifest else str(folder / written)
    try:
        format.check(read_media(path), first)
    except TrellisworkError as error:
        problem = error.problem if isinstance(error, DataError) else str(error)
        if not manifest:
            raise DataError(path, problem) from error
        raise DataError(name_of(manifest), f"{written}: {problem}", line=row.line) from error
    target = format.cut_target(row.target.strip()) if row.target.strip() else None
    name = name_of(manifest) if manifest else path
    return Recording((path,), line=row.line, file=name, text=written, target=target, target_text=row.target.strip())


def _units(texts: Iterable[str]) -> Units:
    """Return "blanks" if symbols such as phones or digits have blanks between them; words are cut into characters.

    >>> _units(["3 1 4", "K AE T"]), _units(["a man sleeps", "two dogs run"]), _units(["cat"])
    ('blanks', 'characters', 'characters')
    """
    cut = [text.split() for text in texts]
    several = 2 * sum(len(parts) > 1 for parts in cut) >= len(cut)
    short = sum(len(part) for parts in cut for part in parts) <= SHORT * sum(map(len, cut))
    return "blanks" if several and short else "characters"
