"""The reference pages of settings are what the settings say."""

from __future__ import annotations

from tests.docs.settings_page import DOCS, INDEX, pages
from trelliswork.cli.config_file import known_settings
from trelliswork.models.catalogue import entries


def test_the_pages_are_made_from_the_settings() -> None:
    files = [DOCS / INDEX, *(DOCS / "settings").glob("*.md")]
    written = {path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8") for path in files}
    assert written == pages(), "run python -m tests.docs.settings_page"


def test_every_key_of_a_toml_file_is_on_a_page() -> None:
    text = "".join(pages().values())
    others = {"train", "dev", "out", "name", "threads"}
    keys = {key for name in entries() for section in known_settings(name).values() for key in section}
    assert [key for key in sorted(keys - others) if f"| `{key}` |" not in text] == []


def test_every_model_is_on_one_page_and_no_page_is_long() -> None:
    of_models = {name: text for name, text in pages().items() if name != INDEX}
    for model in entries():
        assert sum(f"\n- `{model}`: " in text for text in of_models.values()) == 1, model
        assert f"`{model}`" in pages()[INDEX]
    assert max(text.count("\n") for text in pages().values()) < 200
