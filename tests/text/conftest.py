"""A treebank from outside, for the tests that need real text."""

from __future__ import annotations

from pathlib import Path

import pytest

EWT = Path(__file__).parents[2].parent / "shared/data/ud_english_ewt"


@pytest.fixture(scope="session")
def ewt() -> Path:
    """UD English EWT, next to the repository."""
    if not EWT.is_dir():
        pytest.skip(f"UD English EWT not found at {EWT}")
    return EWT
