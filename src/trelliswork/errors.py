"""Errors of the library, each one sentence: what was expected, what was found, how to fix it.

    >>> raise ScoreError("lengths must lie in 1..12; got 15 at row 3; pad the emissions or shorten the row")

The command line prints the sentence and exits with status 2; a library user catches `TrellisworkError`
(or `ValueError`, which it is).
"""

from __future__ import annotations

TYPE_CHECKING = False  # importing nothing, this can be imported before all else
if TYPE_CHECKING:
    from pathlib import Path


class TrellisworkError(ValueError):
    """Base of every error this library raises on purpose."""


class ScoreError(TrellisworkError):
    """Scores, masks, lengths or values of the wrong shape, type or range."""


class ConstraintError(TrellisworkError):
    """A constraint that leaves nothing, or forbids the gold structure."""


class TermError(TrellisworkError):
    """A lambda term that cannot be read, has no type, or has no normal form within the limit of steps."""


class DataError(TrellisworkError):
    """A file that cannot be read as what it should be.

    Args:
        file: The file, or what else cannot be read.
        problem: What was expected, what was found, how to fix it.
        line: The line, from 1.
        column: The column, from 1.

    >>> DataError("train.conll", "expected 3 columns, got 2", line=812, column=2).args[0]
    'train.conll:812:2: expected 3 columns, got 2'
    """

    def __init__(self, file: str | Path, problem: str, *, line: int | None = None, column: int | None = None):
        self.file, self.problem, self.line, self.column = str(file), problem, line, column
        place = ":".join(str(part) for part in (file, line, column) if part is not None)
        super().__init__(f"{place}: {problem}")


class ModelError(TrellisworkError):
    """A model directory with a missing, truncated or foreign file."""


class OutputError(TrellisworkError):
    """An output that cannot be written: no space, no permission, a folder in the way."""


class MissingExtraError(TrellisworkError, ImportError):
    """A package of an extra that is not installed; the message has the line to type.

    Args:
        use: What needs the extra.
        extra: Its name.
        problem: The error of the import.

    >>> MissingExtraError("export to ONNX", "onnx", "No module named 'onnx'").args[0]
    'export to ONNX needs the extra [onnx] (No module named \'onnx\'); install it with pip install "trelliswork[onnx]"'
    """

    def __init__(self, use: str, extra: str, problem: object):
        super().__init__(
            f'{use} needs the extra [{extra}] ({problem}); install it with pip install "trelliswork[{extra}]"'
        )


class TrellisworkWarning(UserWarning):
    """Something to know that does not stop anything; the command line prints it as a note."""


_OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory", "unable to allocate")


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error of Python, numpy or torch means that memory is short.

    >>> is_out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory")), is_out_of_memory(ValueError())
    (True, False)
    """
    text = str(error).lower()
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(part in text for part in _OUT_OF_MEMORY)
    )
