"""The reference page of settings is what the settings say."""

from __future__ import annotations

from tests.docs.settings_page import PAGE, page
from trelliswork.cli.config_file import known_settings
from trelliswork.models.families import MODELS


def test_the_page_is_made_from_the_settings() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.docs.settings_page"


def test_every_key_of_a_toml_file_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    others = {"train", "dev", "out", "name", "threads"}
    keys = {key for name in MODELS for section in known_settings(name).values() for key in section}
    assert [key for key in sorted(keys - others) if f"| `{key}` |" not in text] == []
