"""`docs/errata.md` and the tests agree: each misprint has a test that shows it, and says so."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import NamedTuple

import pytest

from tests.docs.documents import ERRATA, PACKAGE, ROOT, cited, find_test, names_in, rows

FIELDS = ("Printed", "Right", "Shows", "Test")


class Erratum(NamedTuple):
    number: int
    equations: frozenset[str]
    fields: dict[str, str]


@cache
def errata() -> tuple[Erratum, ...]:
    _, *sections = re.split(r"^## Erratum (\d+)$", ERRATA.read_text(encoding="utf-8"), flags=re.M)
    return tuple(
        Erratum(int(number), frozenset(cited(body)), dict(re.findall(r"^- \*\*(\w+):\*\* (.+)$", body, re.M)))
        for number, body in zip(sections[::2], sections[1::2], strict=True)
    )


every_erratum = pytest.mark.parametrize("erratum", errata(), ids=lambda erratum: f"erratum {erratum.number}")


def test_numbers_rise() -> None:
    numbers = [erratum.number for erratum in errata()]
    assert numbers
    assert numbers == sorted(set(numbers))


@every_erratum
def test_an_erratum_is_complete(erratum: Erratum) -> None:
    assert tuple(erratum.fields) == FIELDS
    assert erratum.equations
    assert names_in(erratum.fields["Test"])


@every_erratum
def test_its_tests_exist_and_name_it(erratum: Erratum) -> None:
    for name in names_in(erratum.fields["Test"]):
        found = find_test(name)
        assert found, f"no test {name}"
        assert f"Erratum {erratum.number}" in (ast.get_docstring(found) or ""), f"{name} does not name its erratum"


@every_erratum
def test_its_equations_have_a_row_that_links_to_it(erratum: Erratum) -> None:
    linked = set().union(*(row.equations for row in rows() if erratum.number in row.errata))
    assert erratum.equations <= linked, sorted(erratum.equations - linked)


def test_what_code_and_tests_call_an_erratum_has_a_section() -> None:
    known = {erratum.number for erratum in errata()}
    files = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.md"), *(ROOT / "tests").rglob("*.py")]
    for path in files:
        named = {int(number) for number in re.findall(r"[Ee]rratum (\d+)", path.read_text(encoding="utf-8"))}
        assert named <= known, f"{path.name} names errata {sorted(named - known)}: write them up in docs/errata.md"
