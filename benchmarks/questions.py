"""Files of questions and their meanings for `benchmarks.transduction`."""

from __future__ import annotations

import json
import re
import shutil
import statistics
from collections import defaultdict
from pathlib import Path

from benchmarks.accuracy.measure import trelliswork
from trelliswork.data.database import Database
from trelliswork.models.transducers.semantic.forms import PrologForm
from trelliswork.terms.clauses import VARIABLE

FOLDER = "semantic_parsing"
DATABASE = "geography.sqlite"
KINDS = (
    ("state", "STATE", "STATE_NAME"), ("capital", "STATE", "CAPITAL"), ("city", "CITY", "CITY_NAME"),
    ("river", "RIVER", "RIVER_NAME"), ("mountain", "MOUNTAIN", "MOUNTAIN_NAME"), ("lake", "LAKE", "LAKE_NAME"),
    ("place", "HIGHLOW", "HIGHEST_POINT"), ("place", "HIGHLOW", "LOWEST_POINT"),
)  # fmt: skip


NEW, KNOWN = "?", re.compile(r"\?\d+")


def make_logic(data: Path, folder: Path, relative: bool = False) -> None:
    """GeoQuery: behind each name that is left open, such as var0, all that the database has under that name."""
    kinds = kinds_of_names(Database(data / FOLDER / DATABASE))
    for part in ("train", "dev", "test"):
        lines = []
        for line in (data / FOLDER / f"geo_logic_{part}.tsv").read_text(encoding="utf-8").splitlines():
            question, form, names = line.split("\t")
            values: dict[str, str] = json.loads(names)
            words = [with_kind(word, values, kinds) for word in question.split()]
            lines.append(f"{' '.join(words)}\t{relative_names(form) if relative else form}\n")
        (folder / f"{part}.tsv").write_text("".join(lines), encoding="utf-8")


def relative_names(form: str) -> str:
    """Variables by how many came since: ? is a new one, ?0 the last new one, ?1 the one before it.

    Jia and Liang (2016), Data recombination for neural semantic parsing.
    """
    known, found = list[str](), list[str]()
    for symbol in form.split():
        if symbol in known:
            found.append(f"{NEW}{len(known) - 1 - known.index(symbol)}")
        else:
            known += [symbol] if VARIABLE.fullmatch(symbol) else []
            found.append(NEW if VARIABLE.fullmatch(symbol) else symbol)
    return " ".join(found)


def absolute_names(form: str) -> str:
    """The way back, with other names; a form without relative names stays as it is."""
    n, found = 0, list[str]()
    for symbol in form.split():
        n += symbol == NEW
        back = int(symbol[1:]) if KNOWN.fullmatch(symbol) else 0
        found.append(f"V{max(1, n - back)}" if symbol.startswith(NEW) else symbol)
    return " ".join(found)


def kinds_of_names(database: Database) -> dict[str, str]:
    """Which columns have a value, a word for each: new york is <city> <state>."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for kind, table, column in KINDS:
        for (value,) in database.answer(f"SELECT DISTINCT {column} FROM {table}") or ():
            found[str(value).lower()].add(kind)
    return {value: " ".join(f"<{kind}>" for kind in sorted(each)) for value, each in found.items()}


def with_kind(word: str, values: dict[str, str], kinds: dict[str, str]) -> str:
    """A name with its kinds behind it, other words as they are."""
    return f"{word} {kinds.get(values[word].lower(), '<unknown>')}" if word in values else word


def make_queries(data: Path, folder: Path) -> None:
    """GeoQuery with SQL, and its database."""
    for part in ("train", "dev", "test"):
        shutil.copy(data / FOLDER / f"geo_sql_{part}.tsv", folder / f"{part}.tsv")
    shutil.copy(data / FOLDER / DATABASE, folder / DATABASE)


def share_right(work: Path, part: str) -> float:
    """The share of questions whose Prolog form is right, up to names of variables and order of conjuncts.

    `evaluate` of a plain transducer counts different questions, and compares forms as they are written.
    """
    sources, found, form = work / "questions.txt", work / "forms.tsv", PrologForm()
    pairs = [line.split("\t") for line in (work / f"{part}.tsv").read_text(encoding="utf-8").splitlines()]
    sources.write_text("".join(f"{question}\n" for question in dict.fromkeys(q for q, _ in pairs)), encoding="utf-8")
    trelliswork("predict", work / "model", sources, "--out", found)
    answers = dict(line.split("\t")[:2] for line in found.read_text(encoding="utf-8").splitlines())
    meaning = {
        text: form.compared(absolute_names(text).split()) for text in (*answers.values(), *(t for _, t in pairs))
    }
    return statistics.mean(meaning[answers[question]] == meaning[gold] for question, gold in pairs)
