"""`demo` and its report, and `warmup`."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.cli.conftest import Answer, Cli
from tests.cli.pages import check_page
from tests.conftest import RECORDER
from trelliswork.cli.main import run
from trelliswork.cli.report.charts import element, nice_ticks


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "out"


@pytest.fixture(scope="module")
def shown(folder: Path) -> Answer:
    import contextlib
    import io

    out, err = io.StringIO(), io.StringIO()
    with RECORDER.needs("demo"), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run(["demo", "--out", str(folder), "--epochs", "2", "--sentences", "120"])
    return Answer(status, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def page(shown: Answer, folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


def test_the_demo_tells_its_story(shown: Answer, folder: Path) -> None:
    assert shown.status == 0
    for told in ("most frequent tag of each word", "neural CRF", "calibration error", "three best", "--pin 5=B-LOC"):
        assert told in shown.out
    assert str(folder / "report.html") in shown.out
    assert sorted(path.name for path in folder.iterdir()) == ["data", "model", "report.html", "trellis.svg"]


def test_the_demo_model_works_with_the_other_commands(cli: Cli, shown: Answer, folder: Path) -> None:
    assert cli("evaluate", folder / "model", folder / "data" / "test.conll").status == 0


def test_the_report_is_well_formed_and_needs_nothing_else(page: str) -> None:
    check_page(page)
    assert set(re.findall(r"https?://[^\s\"<]+", page)) <= {"http://www.w3.org/2000/svg"}


def test_the_report_has_its_pictures(page: str) -> None:
    assert "<title>Trellis of: " in page
    assert re.findall(r'role="img" aria-label="([^"]+)"', page) == [
        "training loss per token by epoch",
        "dev F1 in % by epoch",
        "Gold tags against predicted tags",
        "Share of right answers by stated confidence",
    ]
    assert "ECE" in page and page.count("<li>") == 3


def test_the_trellis_stands_alone(shown: Answer, folder: Path) -> None:
    root = ElementTree.parse(folder / "trellis.svg").getroot()
    cells = [title for title in root.iter("{http://www.w3.org/2000/svg}title") if "P(" in (title.text or "")]
    words = {(title.text or "").split(" = ")[0] for title in cells}
    probabilities = [float((title.text or "").rsplit(" = ", 1)[1]) for title in cells]
    assert len(cells) == 10 * 11 and "P(Lincoln" in words
    assert sum(probabilities) == pytest.approx(10, abs=0.01)  # a distribution over tags at each of ten words


def test_text_is_escaped() -> None:
    assert element("text", "&lt;", aria_label='a "b" <c>') == (
        '<text aria-label="a &quot;b&quot; &lt;c&gt;">&lt;</text>'
    )


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [(0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]), (46, 93, [40, 50, 60, 70, 80, 90, 100]), (3, 3, [3, 4])],
)
def test_ticks_are_round_and_cover(low: float, high: float, ticks: list[float]) -> None:
    assert nice_ticks(low, high) == ticks
