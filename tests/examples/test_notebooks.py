"""The notebooks run from top to bottom, and show what is worth seeing: each cell as a kernel would run and show it."""

from __future__ import annotations

import ast
import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
# What the cells show in the end, by the name of the class, in the order of the notebook.
SHOWN = {
    "first-tagger": ["Sentence", "FeatureTagger", "Report", "Answer", "Answer", "Explanation", "FeatureTagger"],
    "exact-inference": [
        "LinearChain", "Drawing", "Drawing", "Drawing", "SpanningTree", "Drawing", "ProbabilisticCFG", "Tree",
        "Transducer", "list",
    ],
    "active-learning": ["Answer", "Answer"],
}  # fmt: skip


def code_cells(notebook: dict[str, Any]) -> list[str]:
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run(cells: list[str]) -> tuple[list[object], str]:
    """The values that the cells end with, and all that they print; they share one namespace."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    shown, printed = [], io.StringIO()
    with contextlib.redirect_stdout(printed):
        for number, cell in enumerate(cells):
            tree = ast.parse(cell)
            last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, f"cell {number}", "exec"), namespace)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), namespace)
                shown += [] if value is None else [value]
    return shown, printed.getvalue()


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_runs_and_shows(file: Path, tmp_path: Path) -> None:
    with contextlib.chdir(tmp_path):
        shown, printed = run(code_cells(json.loads(file.read_text(encoding="utf-8"))))
    assert [type(each).__name__ for each in shown] == SHOWN[file.stem]
    for each in shown:
        as_html = getattr(each, "_repr_html_", None)
        assert as_html is None or "<" in as_html()
        assert as_html or isinstance(each, list), f"{type(each).__name__} has nothing to show"
    assert "Traceback" not in printed


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_is_well_formed_and_keeps_no_outputs(file: Path) -> None:
    notebook = json.loads(file.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["metadata"]["kernelspec"]["language"]) == (4, "python")
    cells = notebook["cells"]
    assert cells[0]["cell_type"] == "markdown" and "".join(cells[0]["source"]).startswith("# ")
    assert len({cell["id"] for cell in cells}) == len(cells)
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


def test_every_notebook_is_known() -> None:
    assert [file.stem for file in NOTEBOOKS] == sorted(SHOWN)


def test_cells_run_as_in_a_kernel() -> None:
    assert run(["x = 2\nx + 1", "print(x)", "x;", "None"]) == ([3, 2], "2\n")
    with pytest.raises(ZeroDivisionError):
        run(["1 / 0"])
