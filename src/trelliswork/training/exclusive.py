"""One run at a time in a folder."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trelliswork.errors import OutputError

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]


@contextmanager
def exclusive(out: Path | None) -> Iterator[None]:
    """Refuse a second run into `out` while one is going on; the lock of a killed run goes with its process."""
    if out is None or fcntl is None:
        yield
        return
    path = lock_file(out)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            problem = "another run is training there"
            raise OutputError(f"{out}: {problem}; wait for its end, stop it, or choose another folder") from None
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def lock_file(out: Path) -> Path:
    """Outside of the folder, which holds nothing but what a model needs."""
    name = hashlib.blake2b(str(out.resolve()).encode(), digest_size=8).hexdigest()
    return Path(tempfile.gettempdir()) / f"trelliswork-{os.getuid()}-{name}.lock"
