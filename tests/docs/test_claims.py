"""No claim without its source: every figure of README and documents is a stored result, or cited."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import claims
from tests.docs.claims import Figure, figures_of, is_stored
from tests.docs.documents import ROOT

# Results are the source. Decisions are dated records of what was tried: their figures are of that day.
# The page of commands is what `--help` says.
APART = ("results", "decisions", "commands.md")
FOLDERS = {each: each.relative_to(ROOT / "docs").parts[0] for each in sorted((ROOT / "docs").rglob("*.md"))}
PAGES = [ROOT / "README.md", *(each for each, folder in FOLDERS.items() if folder not in APART and folder[0] != "_")]


def wrong(figure: Figure) -> str:
    if figure.cited or is_stored(figure.text, figure.results):
        return ""
    names = ", ".join(path.name for path in figure.results)
    return f"{figure.text} is not in {names}" if names else f"{figure.text} has no link to docs/results or a source"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_figure_has_its_source(page: Path) -> None:
    found = [f"{page.relative_to(ROOT)}:{figure.line}: {wrong(figure)}" for figure in figures_of(page) if wrong(figure)]
    assert found == []


def test_the_readme_has_many_figures() -> None:
    assert len(list(figures_of(ROOT / "README.md"))) > 20


PAGE = """# A page

Ours takes 0.73 ms ([chain](results/chain.md)), and the best F1 is 94.5; it takes 3 hours.

## Elsewhere

| model | F1 |
|---|---|
| CRF | 94.08 |
| theirs | [95.1](https://example.org/paper) |

A 12x speed-up is claimed by `nothing 4.5 %`.

```
F1 99.9
```
"""


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "chain.md").write_text("| ours | 19x |\n")
    (tmp_path / "results" / "chain.json").write_text('[{"ms": {"ours": 0.7344, "is": true}, "f1": 0.94513}]')
    monkeypatch.setattr(claims, "RESULTS", tmp_path / "results")
    found = tmp_path / "page.md"
    found.write_text(PAGE)
    return found


def test_figures_are_found_with_their_sources(page: Path) -> None:
    found = list(figures_of(page))
    assert [(each.text, each.line) for each in found] == [
        ("0.73", 3), ("0.73", 3), ("94.5", 3), ("94.08", 9), ("95.1", 10), ("12", 12)
    ]  # fmt: skip
    assert [bool(wrong(each)) for each in found] == [False, False, False, True, False, True]
    assert "94.08 has no link to docs/results" in wrong(found[3])


@pytest.mark.parametrize("text", ["0.73", "0.7", "94.5", "95", "19"])
def test_a_number_is_stored_as_it_is_or_more_precisely(page: Path, text: str) -> None:
    assert is_stored(text, (page.parent / "results" / "chain.md",))


@pytest.mark.parametrize("text", ["0.74", "0.735", "94.6", "94", "18"])
def test_another_number_is_not_stored(page: Path, text: str) -> None:
    assert is_stored(text, (page.parent / "results" / "chain.md",)) is False
