"""The tutorials run, print what they say they print, and show the pictures they draw."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import trelliswork
from tests.docs.documents import PACKAGE
from tests.docs.refresh_tutorials import refresh
from tests.docs.tutorials import (
    DOCS,
    FOLDER,
    INDEX,
    is_exact,
    n_exact,
    other_pages,
    pages,
    pictures_of,
    run,
    same_up_to_rounding,
    shown,
    steps_of,
    with_outputs,
)

NEEDS = {"training": "optuna"}
EXTRAS = {"training": ("optuna",), "sklearn": ("sklearn",), "switching": ("sklearn",)}  # pages beside the tutorials
NOT_DRAWN = (
    "StructuredDistribution",
    "WeightedCFG",
    "kl_divergence",
)  # CFGs are drawn once
TRAINS_LONG = ("training", "choosing", "parser-training", "parsing", "translation")  # for `make trust`
WITHOUT_PICTURE = ("parser-training",)  # its neighbours draw the trees


def in_turn(listed: list[Path]) -> list[Any]:
    """The pages; those that train for seconds are thorough tests."""
    return [pytest.param(page, marks=pytest.mark.thorough if page.stem in TRAINS_LONG else ()) for page in listed]


@pytest.mark.parametrize("page", in_turn(pages()), ids=lambda page: page.stem)
def test_a_page_runs_and_shows_what_comes_out(page: Path, tmp_path: Path) -> None:
    if page.stem in NEEDS:
        pytest.importorskip(NEEDS[page.stem], reason="an extra of the package is not installed")
    text = page.read_text(encoding="utf-8")
    assert steps_of(text), f"{page.name}: no ```python block"
    assert pictures_of(text) or page.stem in WITHOUT_PICTURE, f"{page.name}: no picture; embed ![...](name.svg)"
    printed, exact = run(page, tmp_path), n_exact(text)
    for i, (step, said, found) in enumerate(zip(steps_of(text), shown(text), printed, strict=True)):
        same = said is None or said == found or (i >= exact and same_up_to_rounding(said, found))
        assert same, f"{page.name}:{step.line}: prints something else: {found}"
    for picture in pictures_of(text):
        assert (tmp_path / picture).is_file(), f"{page.name} does not save {picture}"
        drawn, kept = (tmp_path / picture).read_text("utf-8"), (FOLDER / picture).read_text("utf-8")
        same = drawn == kept or (not is_exact(picture, text) and same_up_to_rounding(kept, drawn))
        assert same, f"{picture} is not what the page draws; python -m tests.docs.refresh_tutorials {page.stem}"


@pytest.mark.parametrize("page", other_pages(), ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_a_page_of_the_site_runs_and_prints_what_it_shows(page: Path, tmp_path: Path) -> None:
    for module in EXTRAS.get(page.stem, ()):
        pytest.importorskip(module, reason="an extra of the package is not installed")
    text = page.read_text(encoding="utf-8")
    printed, exact = run(page, tmp_path), n_exact(text)
    for i, (step, said, found) in enumerate(zip(steps_of(text), shown(text), printed, strict=True)):
        same = (said or "") == found or (i >= exact and same_up_to_rounding(said or "", found))
        assert same, f"{page.name}:{step.line}: prints something else: {found}"


def test_the_index_lists_every_page_and_nothing_else() -> None:
    linked = set(re.findall(r"\]\(([\w-]+)\.md\)", INDEX.read_text(encoding="utf-8")))
    there = {page.stem for page in pages()}
    assert linked == there


def test_every_structure_has_a_page() -> None:
    there = {page.stem for page in pages()}
    folders = {math.parent.name for math in PACKAGE.glob("structures/*/math.md")}
    assert folders - {"grammar"} <= there  # `constituency` is about grammars as well


def test_every_picture_belongs_to_a_page() -> None:
    used = {picture for page in pages() for picture in pictures_of(page.read_text(encoding="utf-8"))}
    assert {picture.name for picture in FOLDER.glob("*.svg")} == used


# --- the reading itself --------------------------------------------------------------------------------------

PAGE = """# A page

```python
x = 2
```

Then:

```python
print(x)
open("a.svg", "w").write("<svg/>")
```
```text
3
```

```text
no output
```

![a picture](a.svg)
"""


def test_steps_share_a_namespace_and_are_compared(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert [step.line for step in steps_of(PAGE)] == [3, 9]
    assert shown(PAGE) == [None, "3\n"]
    assert run(page, tmp_path) == ["", "2\n"]
    assert with_outputs(PAGE, ["", "2\n"]) == PAGE.replace("\n3\n", "\n2\n")


def test_refreshing_writes_outputs_and_pictures(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    refresh(page)
    assert page.read_text() == PAGE.replace("\n3\n", "\n2\n")
    assert (tmp_path / "a.svg").read_text() == "<svg/>"


def test_an_error_names_the_line_of_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace("print(x)", "print(y)"))
    with pytest.raises(NameError) as caught:
        run(page, tmp_path)
    assert caught.traceback[-1].lineno + 1 == 10


def test_only_what_is_trained_may_differ_and_only_in_its_numbers() -> None:
    trained = PAGE.replace("print(x)", "train(x)")
    assert (n_exact(PAGE), n_exact(trained)) == (2, 1)
    assert is_exact("a.svg", PAGE) and not is_exact("a.svg", trained)
    assert same_up_to_rounding("p = 0.5172 of 12", "p = 0.5173 of 12")
    assert not same_up_to_rounding("p = 0.5172", "p = 0.5672")
    assert not same_up_to_rounding("O 0.5", "B 0.5")


def test_every_structure_is_in_the_gallery() -> None:
    text = (DOCS / "gallery.md").read_text(encoding="utf-8")
    distributions = [name for name in trelliswork.distributions.__all__ if hasattr(trelliswork, name)]
    missing = [name for name in distributions if f"tw.{name}" not in text and name not in NOT_DRAWN]
    assert not missing, f"draw {missing} in docs/gallery.md"
    assert all("picture = " in step.code for step in steps_of(text)[1:])
