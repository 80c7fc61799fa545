"""The site builds strictly, has a page for everything, and its own parts do what they say."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.dom.minidom
from pathlib import Path

import pytest

from tests.docs.documents import PACKAGE, ROOT, rows
from tests.docs.tutorials import DOCS

pytest.importorskip("furo", reason="the extra docs is not installed")
sys.path.insert(0, str(DOCS))

from _site import charts, checks, formulas, pictures, sources

from trelliswork import draw


@pytest.mark.thorough
def test_the_site_builds_without_a_warning_or_a_broken_link(tmp_path: Path) -> None:
    command = [sys.executable, str(DOCS / "_site"), "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    html = tmp_path / "html"
    assert (html / "search.html").is_file() and (html / "searchindex.js").is_file()
    chain = (html / "math" / "chain.html").read_text(encoding="utf-8")
    assert "<munder>" in chain and 'href="../equations.html#s4-63"' in chain
    assert "<svg" in (html / "tutorials" / "chain.html").read_text(encoding="utf-8")
    assert 'class="chart"' in (html / "results" / "bench-chain.html").read_text(encoding="utf-8")


def sources_of(page: Path) -> list[Path]:
    """Return the files whose text a page shows: its own, and one that it names."""
    named = re.findall(r"^<!-- text: (\S+) -->", page.read_text(encoding="utf-8"), re.M)
    return [page, *(page.parent / each for each in named)]


def prose(page: Path) -> str:
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)


def headings(page: Path) -> set[str]:
    """Return the places of a page that links lead to."""
    lines = [line for source in sources_of(page) for line in re.findall(r"^#+ +(.*)", prose(source), re.M)]
    words = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line).lower() for line in lines]
    return {re.sub(r"[^\w -]", "", each).strip().replace(" ", "-") for each in words}


def test_links_between_pages_lead_to_files_and_headings() -> None:
    """What shows without building the site."""
    pages = [page for page in DOCS.rglob("*.md") if not page.relative_to(DOCS).parts[0].startswith("_")]
    n_links = 0
    for source in {source.resolve() for page in pages for source in sources_of(page)}:
        for path, place in re.findall(r"\]\((?!\w+:)([^)#\s]*)#?([^)\s]*)\)", prose(source)):
            target, n_links = source.parent / path if path else source, n_links + 1
            assert target.exists(), f"{source}: {path}"
            assert not place or target.suffix != ".md" or place in headings(target), f"{source}: {path}#{place}"
    assert n_links > 400


# --- formulas ------------------------------------------------------------------------------------------------


def test_every_formula_of_the_mathematics_is_well_formed() -> None:
    pages = sorted(PACKAGE.rglob("math.md"))
    found = 0
    for page in pages:
        for each in re.findall(r"<math.*?</math>", formulas.with_formulas(page.read_text("utf-8"), "equations.html")):
            xml.dom.minidom.parseString(each)
            found += 1
    assert len(pages) == 12 and found > 400


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y_{t-1}", "<msub><mi>y</mi><mrow><mi>t</mi><mo>−</mo><mn>1</mn></mrow></msub>"),
        ("W_ij", "<msub><mi>W</mi><mrow><mi>i</mi><mi>j</mi></mrow></msub>"),
        ("e^r", "<msup><mi>e</mi><mi>r</mi></msup>"),
        ("α̂_t", "<msub><mi>α̂</mi><mi>t</mi></msub>"),
        ("max_y s", '<munder><mo>max</mo><mi>y</mi></munder><mspace width="0.17em"/><mi>s</mi>'),
        ("W* ρ", '<msup><mi>W</mi><mo>∗</mo></msup><mspace width="0.17em"/><mi>ρ</mi>'),
    ],
)
def test_notation(text: str, expected: str) -> None:
    assert formulas.formula(text) == f'<math displaystyle="true">{expected}</math>'


def test_code_is_no_formula_and_names_with_underscores_stay() -> None:
    page = "Text `y_t`, log_prob, y_t.\n\n    trelliswork train a --model b\n\n    p(y) = Σ_y exp(y)   [S4.92]  (3)\n"
    found = formulas.with_formulas(page, "e.html")
    assert "`y_t`, log_prob, <math>" in found and "    trelliswork train" in found
    assert '<a href="e.html#s4-92">[S4.92]</a>' in found and '<span class="number">(3)</span>' in found


# --- equations and what is absent ----------------------------------------------------------------------------


def test_every_numbered_equation_of_the_notes_is_in_the_index_or_said_to_be_absent() -> None:
    indexed = {int(each[3:]) for row in rows() for each in row.equations if re.fullmatch(r"S4\.\d+", each)}
    text = (DOCS / "math" / "absent.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| ((?:\d+(?:-\d+)?(?:, )?)+) \|", text, re.M)
    absent: set[int] = set()
    for first, _, last in (part.partition("-") for cell in cells for part in cell.split(", ")):
        absent |= set(range(int(first), int(last or first) + 1))
    both = indexed & absent
    assert not both, f"docs/math/absent.md lists {sorted(both)}, which docs/equations.md has: take them off the page"
    neither = set(range(1, 808)) - indexed - absent
    assert not neither, f"neither docs/equations.md nor docs/math/absent.md has {sorted(neither)}"


def test_an_equation_leads_to_its_function_and_its_test() -> None:
    link = sources.link("structures/chain/structure.py:forward")
    assert 'href="source/structures/chain/structure.html#forward"' in link
    first, last = sources.extent("src/trelliswork/structures/chain/structure.py", ("forward",))
    lines = (PACKAGE / "structures/chain/structure.py").read_text("utf-8").splitlines()
    assert lines[first - 1].startswith("def forward(") and last - first > 5
    inherited = sources.extent("tests/contract/test_linear_chain.py", ("TestLinearChain", "test_log_partition"))
    assert (
        "class TestLinearChain"
        in (ROOT / "tests/contract/test_linear_chain.py").read_text().splitlines()[inherited[0] - 1]
    )


# --- pictures, charts, links ---------------------------------------------------------------------------------


def test_drawings_follow_the_theme_of_the_page() -> None:
    svg = draw.segments(["a"], [(0, 1, "A")]).svg
    shown = pictures.in_page(svg)
    assert "prefers-color-scheme" not in shown and "\n" not in shown and "<svg" in shown
    sheet = pictures.style_sheet(svg)
    assert 'body[data-theme="dark"] .trelliswork' in sheet and 'body:not([data-theme="light"])' in sheet


def test_a_chart_shows_each_stored_figure() -> None:
    chart = charts.Chart("F1", [("one", [93.5]), ("two", [90.0, 91.0])])
    shown = charts.svg(chart)
    assert shown.count('class="dot"') == 3 and "93.50" in shown and "90.50" in shown
    assert charts.ratio("bench-chain", "loss + gradient", "CRFsuite").endswith("x")
    for name in charts.CHARTS:
        assert 'class="chart"' in charts.added("# A\n\n## B\n", name), name


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="a.html#here"></a><a href="#gone"></a><a href="b.html"></a><a href="https://x.org/y"></a>'
        '<a href="http://"></a><script src="https://cdn.org/z.js"></script>'
    )
    found = "\n".join(checks.broken_links(tmp_path))
    assert "no such place: #gone" in found and "no such file: b.html" in found and "not an address: http://" in found
    assert "loads from another host" in found and "#here" not in found and "x.org" not in found
