"""The commands of the README's quick start, run as printed in a fresh folder."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import trelliswork
from trelliswork.data.corpus import builtin_corpus, write_corpus

README = Path(__file__).parents[2] / "README.md"
SOURCES = Path(trelliswork.__file__).parents[1]


def quick_start() -> list[str]:
    """The lines with a prompt of the block that trains on the corpus of the demo."""
    blocks = re.findall(r"^```\n(.*?)^```", README.read_text(encoding="utf-8"), re.S | re.M)
    (block,) = [each for each in blocks if "$ trelliswork check train.conll" in each]
    return [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each command prints; the corpus is smaller than that of the demo, so that it takes seconds."""
    folder = tmp_path_factory.mktemp("hour")
    write_corpus(builtin_corpus(sizes=(400, 40, 40)), folder)
    (folder / "bin").mkdir()
    command = folder / "bin" / "trelliswork"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m trelliswork "$@"\n')
    command.chmod(0o755)
    environment = {"PATH": f"{folder / 'bin'}:/usr/bin:/bin", "PYTHONPATH": str(SOURCES), "HOME": str(folder)}
    found = {}
    for line in quick_start():
        done = subprocess.run(
            ["sh", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        found[line] = done.stdout
    return found


def test_every_command_works(printed: dict[str, str]) -> None:
    checked, trained, evaluated, pretty, records = printed.values()
    assert "sentences in both" in checked and "model: ner" in trained and "token accuracy" in evaluated
    first, *analyses = pretty.splitlines()
    words = re.sub(r"\[|\b[A-Z]+ (>?\d+%|<1%)\]", "", first).split()
    assert words == ["Dr", "Jordan", "visited", "Lincoln", "on", "Monday", "."], "the full stop is a token"
    assert [line.split()[0] for line in analyses] == ["1.", "2."]
    assert records.startswith('{"text": "Dr Jordan visited Lincoln on Monday.", "tokens": ["Dr", "Jordan", ')


def test_what_is_printed_has_the_form_of_the_readme(printed: dict[str, str]) -> None:
    """Numbers depend on the size of the corpus; the names that are found do not."""
    pretty = next(text for line, text in printed.items() if "--format pretty" in line)
    shown = README.read_text(encoding="utf-8").split("--format pretty\n")[1].splitlines()[0]

    def without_numbers(line: str) -> str:
        return re.sub(r" [<>]?\d+%", "", line)

    assert without_numbers(pretty.splitlines()[0]) == without_numbers(shown)
