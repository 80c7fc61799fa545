"""A small tagger and a server of it, for all tests of the API."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.web.browser.server import Server
from trelliswork.data import Sentence
from trelliswork.models import FeatureTagger
from trelliswork.web import Client

KINDS = {
    "PER": ("Ann", "Bob", "Jordan", "May"),
    "LOC": ("Paris", "Rome", "Jordan", "New York"),
    "ORG": ("Chase", "Ford Bank", "May"),
}
VERBS = ("met", "left", "saw", "joined")


def sentences(n: int, seed: int = 0) -> list[Sentence]:
    """Made-up sentences, some of whose names have several types."""
    source, found = random.Random(seed), []
    for _ in range(n):
        words, tags = list[str](), list[str]()
        for kind in (source.choice(list(KINDS)), source.choice(list(KINDS))):
            name = source.choice(KINDS[kind]).split()
            words += [*name, source.choice(VERBS) if len(words) < 3 else "."]
            tags += [f"B-{kind}", *[f"I-{kind}"] * (len(name) - 1), "O"]
        found.append(Sentence(tuple(words), tuple(tags)))
    return found


def conll(rows: list[Sentence]) -> str:
    """As CoNLL columns."""
    return "\n".join("".join(f"{w}\t{t}\n" for w, t in zip(s.words, s.tags or (), strict=True)) for s in rows)


class Served(Server):
    """A server with further options; `workers` are its processes that answer."""

    def __init__(self, folders: Iterable[Path | str], teaching: Path, options: Iterable[str] = ()) -> None:
        self.command = [sys.executable, "-m", "trelliswork", "serve", *map(str, folders), "--teach", str(teaching)]
        self.command += options
        self.port = 0
        self.start()

    def workers(self) -> list[int]:
        """The ids of the processes that answer."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(each) for each in children.split()]

    def memory(self) -> int:
        """Bytes that the server and its workers have in memory."""
        pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in (self.process.pid, *self.workers())]
        return sum(pages) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(scope="session")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tagger over features."""
    folder = tmp_path_factory.mktemp("models") / "ner"
    FeatureTagger.fit(sentences(80)).save(folder)
    return folder


@pytest.fixture(scope="session")
def server(tagger: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that tests may ask, and not kill."""
    found = Served([tagger], tmp_path_factory.mktemp("teaching"))
    yield found
    found.stop()


@pytest.fixture
def client(server: Served) -> Iterator[Client]:
    with Client(server.address) as found:
        yield found


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Start servers of a test's own; they are gone when it ends."""
    started: list[Any] = []

    def start(*folders: Path | str, options: tuple[str, ...] = (), teaching: Path | None = None) -> Served:
        found = Served(folders, teaching or tmp_path / "teaching", options)
        started.append(found)
        return found

    yield start
    for each in started:
        each.kill()
