"""The table of names in CONTRIBUTING.md: public functions and their arguments use the one name of each concept."""

from __future__ import annotations

import ast
import re

from tests.docs.documents import PACKAGE, ROOT

FOLDERS = ("data", "draw", "metrics", "nn", "semirings", "distributions")
FILES = sorted(file for folder in FOLDERS for file in (PACKAGE / folder).rglob("*.py"))


def refused() -> set[str]:
    """The names of the last column; single letters are names of axes in shapes, not of arguments."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text[text.index("## Names") :].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("| ") and "`" in line]
    assert len(rows) > 10 and all(len(row) == 3 for row in rows)
    return {name for *_, avoided in rows for name in re.findall(r"`(\w+)`", avoided) if len(name) > 1}


def public_names(source: str) -> set[str]:
    """Functions, methods and arguments that do not begin with an underscore."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            found |= {node.name, *(each.arg for each in arguments)}
    return found


def test_one_concept_has_one_name() -> None:
    avoided = refused()
    found = {path.relative_to(PACKAGE): public_names(path.read_text(encoding="utf-8")) & avoided for path in FILES}
    assert {path: names for path, names in found.items() if names} == {}


def test_the_check_sees_functions_and_arguments() -> None:
    assert public_names("def nbest(seq_lens, *, _hidden=1): ...") >= {"nbest", "seq_lens"}
    assert {"nbest", "seq_lens", "posteriors"} <= refused()
