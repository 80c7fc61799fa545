"""Teaching: the order of sentences, what is written, and that nothing acknowledged is ever lost.

TRELLISWORK_KILLS=100 kills as often as the issue asks; without it, ten times.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import trelliswork as tw
from tests.web.conftest import Served, conll, sentences
from tests.web.deciding import N
from trelliswork.cli.main import run
from trelliswork.data import read_treebank
from trelliswork.data.jsonl import read_jsonl
from trelliswork.errors import DataError, OutputError, TrellisworkError
from trelliswork.web import Client, ServerError
from trelliswork.web.problems import Problem
from trelliswork.web.teaching.lesson import SENTENCES, TAUGHT, TREES, Journal, Lesson, check_arcs, check_words

KILLS = int(os.environ.get("TRELLISWORK_KILLS", "10"))


def lesson(folder: Path, n: int = 5) -> Lesson:
    return Lesson.begin(folder, "ner", [{"tokens": ["a", str(i)]} for i in range(n)])


def lines(path: Path) -> list[dict[str, Any]]:
    """The records of a file of whole lines."""
    text = path.read_bytes()
    assert not text or text.endswith(b"\n")
    return [json.loads(line) for line in text.splitlines()]


def test_decisions_are_lines_that_train_reads(tmp_path: Path) -> None:
    mine = lesson(tmp_path / "set")
    mine.decide(3, ["B-PER", None])
    mine.decide(1, ["O", "O"])
    assert lines(tmp_path / "set" / TAUGHT) == [
        {"tokens": ["a", "3"], "tags": ["B-PER", "?"], "id": 3},
        {"tokens": ["a", "1"], "tags": ["O", "O"], "id": 1},
    ]
    assert [each.tags for each in read_jsonl(tmp_path / "set" / TAUGHT)] == [("B-PER", "?"), ("O", "O")]
    mine.decide(1, ["O", "O"])  # the same again is written once
    with pytest.raises(Problem, match="decided already"):
        mine.decide(1, ["O", None])
    with pytest.raises(Problem, match="expected 2 tags, got 1"):
        mine.decide(2, ["O"])
    with pytest.raises(Problem, match="at least one tag that is known"):
        mine.decide(2, [None, None])
    assert mine.undo() == {"id": 1, "tags": ["O", "O"]}
    assert [each["id"] for each in lines(tmp_path / "set" / TAUGHT)] == [3]
    mine.skip(0)
    assert (mine.next("order"), mine.progress()["remaining"], mine.progress()["known_tokens"]) == (1, 3, 1)
    with pytest.raises(OutputError, match="another server writes"):
        Lesson(tmp_path / "set")
    mine.close()
    again = Lesson(tmp_path / "set")
    assert (again.decided, again.put_off) == ({3}, [0])
    for number in (1, 2, 4):
        again.decide(number, ["O", None])
    assert again.next("entropy") == 0  # what was put off comes last
    again.close()
    with pytest.raises(Problem, match="other sentences"):
        lesson(tmp_path / "set", n=4)


def test_the_most_uncertain_comes_first(tmp_path: Path) -> None:
    mine = lesson(tmp_path / "set")
    mine.scores = {i: {"entropy": float(i), "margin": 1 - i / 10, "error": i % 3} for i in range(4)}
    assert [mine.next(by) for by in ("entropy", "margin", "error", "order")] == [3, 0, 2, 0]
    mine.close()


@pytest.mark.parametrize("left", [b'{"tokens": ["a', b"{", b'{"id": 2}', b"\xff\xfe"])
def test_half_a_line_is_cut_off(tmp_path: Path, left: bytes) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(b'{"id": 0}\n{"id": 1}\n' + left)
    journal = Journal(path)
    assert journal.records == [{"id": 0}, {"id": 1}]
    assert path.read_bytes() == b'{"id": 0}\n{"id": 1}\n'
    journal.append({"id": 5})
    assert journal.pop() == {"id": 5}
    journal.append({"id": "é"})
    journal.close()
    assert Journal(path).records == [{"id": 0}, {"id": 1}, {"id": "é"}]


def test_damage_is_told(tmp_path: Path) -> None:
    (tmp_path / "j.jsonl").write_bytes(b'{"id": 0}\nnot json\n')
    with pytest.raises(DataError, match=r"j\.jsonl:2: expected a decision"):
        Journal(tmp_path / "j.jsonl")
    (tmp_path / SENTENCES).write_text("{}\n")
    with pytest.raises(DataError, match="sentences of a lesson"):
        Lesson(tmp_path)


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path / "j.jsonl")
    journal.append({"id": 0})
    whole, real = (tmp_path / "j.jsonl").read_bytes(), os.write

    def part(handle: int, content: bytes) -> int:
        if len(content) < 10:
            raise OSError(28, "No space left on device")
        return real(handle, content[:5])

    monkeypatch.setattr("trelliswork.web.teaching.lesson.os.write", part)
    with pytest.raises(OutputError, match="the decision was not kept"):
        journal.append({"id": 1, "more": "text"})
    assert (tmp_path / "j.jsonl").read_bytes() == whole
    monkeypatch.undo()
    journal.append({"id": 2})
    assert [each["id"] for each in lines(tmp_path / "j.jsonl")] == [0, 2]


def test_trees_are_decided_whole(tmp_path: Path) -> None:
    words = ["She", "sings", "it"]
    mine = Lesson.begin(tmp_path / "set", "parser", [{"tokens": words, "text": "She sings it"}] * 2, "arcs")
    tree = ["2:nsubj", "0:root", "2:obj"]
    for arcs, problem in (
        (["2:nsubj", None, "2:obj"], "1 of them are unknown"),
        (["2:nsubj", "0:root", "2:xx"], "expected one of the labels"),
        (["2:nsubj", "root", "2:obj"], "such as 2:nsubj, got 'root'"),
        (["2:nsubj", "3:root", "2:obj"], "expected a tree"),
        (["2:nsubj", "0:root", "9:obj"], "expected heads in 0..3"),
    ):
        with pytest.raises(Problem, match=problem):
            check_arcs(arcs, words, ["nsubj", "root", "obj"])
    check_arcs(tree, words, ["nsubj", "root", "obj"])
    with pytest.raises(Problem, match="without tabs"):
        check_words(["a\tb"])
    mine.decide(1, tree)
    mine.close()
    path = tmp_path / "set" / TREES
    whole = path.read_bytes()
    for end in range(len(whole)):  # a crash in the middle of the next one: it is cut off, and nothing else
        path.write_bytes(whole + whole[:end])
        again = Lesson(tmp_path / "set")
        assert (again.decided, path.read_bytes()) == ({1}, whole)
        again.close()
    _, (read,) = read_treebank(path)
    assert (read.words, read.heads, read.tags) == (tuple(words), (2, 0, 2), ("nsubj", "root", "obj"))
    again = Lesson(tmp_path / "set")
    assert again.undo() == {"id": 1, "tags": tree} and path.read_bytes() == b""
    again.close()


def test_killed_at_any_moment_every_acknowledged_decision_is_in_the_file(tmp_path: Path) -> None:
    folder, acknowledged, n_before, source = tmp_path / "set-0", set[int](), 0, random.Random(0)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
    for i in range(KILLS):
        if len(acknowledged) > N // 2:  # a new set, long before nothing is left to decide
            folder, acknowledged, n_before = tmp_path / f"set-{i}", set(), n_before + len(acknowledged)
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.web.deciding", str(folder)],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        killer = threading.Timer(source.uniform(0, 0.3), process.kill)
        killer.start()
        for line in process.stdout:
            if line.endswith("\n"):
                acknowledged.add(int(line))
        assert process.wait() == -signal.SIGKILL, "it ended before it was killed"
        mine = Lesson(folder)  # as the next server would open it
        mine.close()
        written = lines(folder / TAUGHT)
        ids = [each["id"] for each in written]
        assert len(ids) == len(set(ids))
        missing = acknowledged - set(ids)
        assert len(missing) <= 1 and all(each % 7 == 2 for each in missing)  # just being undone, and not decided again
        acknowledged -= missing
        assert all(each["tags"][0] == f"T{each['id']}" for each in written)
    assert n_before + len(acknowledged) > KILLS


def test_a_killed_server_goes_on_where_it_was(serve: Callable[..., Served], tagger: Path, tmp_path: Path) -> None:
    rows = [" ".join(each.words) for each in sentences(30, seed=3)]
    server, done = serve(tagger, teaching=tmp_path / "lessons"), list[int]()
    with Client(server.address) as client:
        opened = client.post("/v1/teach/open", {"name": "set", "format": "tokens", "content": "\n".join(rows)})
        assert opened["open"]["total"] == 30
        for i in range(12):
            if i == 6:
                server.kill()
                server.start()  # at the same port
                assert client.get("/v1/teach")["open"]["decided"] == 6
            found = client.get("/v1/teach/next", by="entropy" if i % 2 else "margin")
            assert found["id"] not in done
            tags = [found["sentence"]["value"][0], *[None] * (len(found["sentence"]["value"]) - 1)]
            client.post("/v1/teach/decide", {"id": found["id"], "tags": tags})
            done.append(found["id"])
        with pytest.raises(ServerError, match="expected one of the tags"):
            client.post("/v1/teach/decide", {"id": 0, "tags": ["XX"]})
        with pytest.raises(ServerError, match="letters, digits"):
            client.post("/v1/teach/open", {"name": "../x", "content": "a"})
        with pytest.raises(ServerError, match="other sentences"):
            client.post("/v1/teach/open", {"name": "set", "content": "Something else."})
        assert client.post("/v1/teach/open", {"name": "set"})["open"]["decided"] == 12
        assert client.post("/v1/teach/undo", {})["id"] == done[-1]
    assert [each["id"] for each in lines(tmp_path / "lessons" / "set" / TAUGHT)] == done[:-1]


def test_the_model_that_was_taught_takes_over_if_it_is_better(serve: Callable[..., Served], tmp_path: Path) -> None:
    few, dev, rest = sentences(6, seed=1), sentences(60, seed=2), sentences(40, seed=4)
    files = {"train": few, "dev": dev}
    for name, part in files.items():
        (tmp_path / f"{name}.conll").write_text(conll(part), encoding="utf-8")
    options = ["--dev", str(tmp_path / "dev.conll"), "--model", "crf", "--quiet", "--max-iterations", "20"]
    assert run(["train", str(tmp_path / "train.conll"), *options, "--out", str(tmp_path / "ner")]) == 0
    server = serve(tmp_path / "ner")
    with Client(server.address) as client:
        text = "\n".join(" ".join(each.words) for each in rest)
        client.post("/v1/teach/open", {"name": "more", "format": "tokens", "content": text})
        known = set(client.models()[0]["labels"])
        for i, each in enumerate(rest):
            tags = [tag if tag in known else None for tag in each.tags or ()]
            client.post("/v1/teach/decide", {"id": i, "tags": [*tags[:-1], None]})
        client.post("/v1/teach/train", {})
        for _ in range(600):
            state = client.get("/v1/teach/training")
            if state["state"] != "running":
                break
            time.sleep(0.3)
        assert state["state"] == "done", state
        assert state["after"] > state["before"] and state["swapped"], state
        folder = Path(client.models()[0]["folder"])
        assert folder.name == "model-1"
        served = client.predict(tokens=[list(rest[0].words)])["results"][0]["sentences"][0]["value"]
        assert served == tw.load(folder).predict([list(rest[0].words)])[0].value


def test_a_line_that_is_nested_too_deeply_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    path.write_bytes(b"[" * 100_000 + b'\n{"id": 1}\n')
    with pytest.raises(TrellisworkError, match=r"decisions\.jsonl:1: expected a decision"):
        Journal(path)
