"""`docs/equations.md` and the code agree: no equation without its function and test, no citation without its row."""

from __future__ import annotations

import ast
import re

import pytest

from tests.docs import documents
from tests.docs.documents import PACKAGE, Row, cited, equations_of, find_test, rows

CITING = "data distributions draw fst metrics models nn semirings structures terms training"
CITING_PAPERS = sorted(file for folder in CITING.split() for file in (PACKAGE / folder).rglob("*.py"))
SOURCES = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.md")]


def test_a_row_is_complete() -> None:
    assert rows()
    for row in rows():
        assert row.equations, f"docs/equations.md:{row.line}: no equation"
        assert row.functions, f"docs/equations.md:{row.line}: no function"
        assert row.tests, f"docs/equations.md:{row.line}: no test"


def test_each_equation_has_one_row() -> None:
    found = [equation for row in rows() for equation in row.equations]
    assert sorted(found) == sorted(set(found))


def test_functions_exist() -> None:
    for row in rows():
        for name in row.functions:
            try:
                found = documents.function(name)
            except (ImportError, AttributeError) as error:
                pytest.fail(f"docs/equations.md:{row.line}: no function {name}: {error}")
            assert callable(found) or isinstance(found, property), name


def test_named_tests_exist() -> None:
    for row in rows():
        for name in row.tests:
            assert find_test(name), f"docs/equations.md:{row.line}: no test {name}"


def test_functions_cite_their_equations() -> None:
    """Each function of a row cites one of its equations, and each equation is cited by one of the functions."""
    for row in rows():
        place = f"docs/equations.md:{row.line}"
        citations = {name: cited(documents.source(name)) for name in row.functions}
        for name, found in citations.items():
            assert found & row.equations, f"{name} cites none of {sorted(row.equations)} of {place}"
        missing = row.equations - set().union(*citations.values())
        assert not missing, f"{place}: {sorted(missing)} cited by none of {list(row.functions)}"


def test_what_the_code_cites_has_a_row() -> None:
    known = {equation for row in rows() for equation in row.equations}
    for path in SOURCES:
        orphans = cited(path.read_text(encoding="utf-8")) - known
        assert not orphans, f"{path} cites {sorted(orphans)}: add a row to docs/equations.md"


def test_docstrings_cite_papers_and_comments_equations() -> None:
    """A reader of `help()` has the author and the title; the codes of `docs/equations.md` are for those of the code."""
    for path in CITING_PAPERS:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                code = documents.CITATION.search(ast.get_docstring(node) or "")
                assert not code, f"{path}: a docstring cites {code}"


def test_errata_of_a_row_have_a_section() -> None:
    sections = {int(n) for n in re.findall(r"^## Erratum (\d+)$", documents.ERRATA.read_text(encoding="utf-8"), re.M)}
    for row in rows():
        assert row.errata <= sections, f"docs/equations.md:{row.line}: {sorted(row.errata - sections)} not in errata.md"


# --- the reading itself --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("citation", "equations"),
    [
        ("S4.92", {"S4.92"}),
        ("S4.98, 106-107", {"S4.98", "S4.106", "S4.107"}),
        ("S3, Max Layer", {"S3, Max Layer"}),
        ("S4.63; S3.9; S2, log-likelihood", {"S4.63", "S3.9", "S2, log-likelihood"}),
        ("S3", set()),
        ("S3, Sentence-Level\n    Log-Likelihood", {"S3, Sentence-Level Log-Likelihood"}),
    ],
)
def test_citations_are_written_out(citation: str, equations: set[str]) -> None:
    assert equations_of(citation) == equations


@pytest.mark.parametrize("citation", ["S3's logadd", "S3.13, S3.4", "S4.92,93", "S4.", "S4.99-98", "S4.9; ", "S4 92"])
def test_another_syntax_is_refused(citation: str) -> None:
    with pytest.raises(ValueError, match=r"no citation: write|does not rise"):
        equations_of(citation)


def test_tests_are_found_by_file_class_and_name() -> None:
    here = "tests/docs/test_equations.py"
    inherited = "tests/contract/test_linear_chain.py::TestLinearChain::test_marginals"
    assert find_test(f"{here}::test_a_row_is_complete")
    assert find_test(inherited)
    for absent in (
        f"{here}::test_of_nothing",
        f"{here}::SOURCES",
        f"{here}::TestNothing::test_a_row_is_complete",
        "tests/docs/test_nothing.py::test_a_row_is_complete",
        inherited.replace("test_marginals", "test_of_nothing"),
        inherited.replace("TestLinearChain::", ""),
    ):
        assert not find_test(absent), absent


def test_a_row_is_read_with_escaped_bars() -> None:
    line = (
        r"| [S4.98-99] | p(y \| x) ([erratum 9](errata.md#erratum-9)) | `a.py:f`, `b.py:C.g` | `tests/t.py::test_t` |"
    )
    (row,) = documents.rows_of(line)
    assert row == Row(1, frozenset({"S4.98", "S4.99"}), ("a.py:f", "b.py:C.g"), ("tests/t.py::test_t",), frozenset({9}))
