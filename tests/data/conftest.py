"""Fixtures of the data tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

SHARED_DATA = Path(__file__).parents[2].parent / "shared" / "data"


@pytest.fixture
def shared_data() -> Path:
    """The folder of public corpora next to the repository; they are not part of it."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"public corpora not found at {SHARED_DATA}")
    return SHARED_DATA


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a small file and give its path."""

    def write_file(content: str | bytes, name: str = "train.conll") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file
