"""Requests that cost much: refused before they are answered, or divided so that others get their turn."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import torch

import trelliswork as tw
from tests.web.conftest import Served
from trelliswork.data import PairFormat, Sentence
from trelliswork.models.parsers.dependency.biaffine import BiaffineParser
from trelliswork.models.transducers.edit import EditTransducer
from trelliswork.nn.edit.search import StringBeam, beam_widths
from trelliswork.web import Client, ServerError, worker
from trelliswork.web.frames import PIECES, Reply, unpack_pieces
from trelliswork.web.measures import Measures
from trelliswork.web.pool import Call, CallQueue, Pool, Worker
from trelliswork.web.requests import Limits


def treebank(n: int) -> list[Sentence]:
    """Made-up trees."""
    source, found = random.Random(3), []
    for _ in range(n):
        words = tuple(source.choice(("the", "dog", "saw", "a", "cat")) for _ in range(6))
        found.append(Sentence(words, ("det", "nsubj", "root", "det", "obj", "obl"), heads=(2, 3, 0, 5, 3, 3)))
    return found


@pytest.fixture(scope="module")
def parsing(tagger: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of a parser, untrained and as slow as any, and of a tagger."""
    folder = tmp_path_factory.mktemp("models") / "parser"
    BiaffineParser.from_data(treebank(50)).save(folder)
    server = Served([folder, tagger], tmp_path_factory.mktemp("teaching"))
    yield server
    server.stop()


WORDS = ["the", "dog", "saw", "a", "cat"]


@pytest.mark.parametrize(
    ("body", "phrases"),
    [
        ({"text": "dog " * 300, "top_k": 100}, ("3 s", "sentence of 300 tokens", "smaller top_k (now 100)")),
        ({"tokens": [WORDS * 600]}, ("sentence of 3,000 tokens", "shorter sentences")),
        ({"tokens": [WORDS * 4000], "choices": 100, "model": "ner"}, ("sentence of 20,000 tokens", "smaller choices")),
        ({"texts": ["The dog saw a cat. " * 20] * 1024}, ("15 s", "20,480 sentences", "fewer sentences at once")),
    ],
)
def test_what_would_take_too_long_is_refused_before(parsing: Served, body: Any, phrases: tuple[str, ...]) -> None:
    before = parsing.workers()
    with Client(parsing.address, timeout=120) as client, pytest.raises(ServerError) as error:
        client.predict(**body)
    assert error.value.status == 413
    assert all(each in str(error.value) for each in ("expected work of at most", "would take about", *phrases)), (
        error.value
    )
    assert parsing.workers() == before


def test_small_requests_come_between_the_pieces_of_a_large_one(parsing: Served) -> None:
    order: list[str] = []
    rows = [WORDS * 8] * 500

    def ask_much() -> None:
        with Client(parsing.address, timeout=120) as client:
            results = client.predict(tokens=rows, top_k=3)["results"]
            assert [len(each["sentences"][0]["value"]) for each in results] == [40] * 500
        order.append("large")

    thread = threading.Thread(target=ask_much)
    thread.start()
    with Client(parsing.address, timeout=120) as client:
        while not order and "trelliswork_calls_waiting 0" in metrics(parsing):
            time.sleep(0.01)  # until the large one is divided and its pieces wait
        for _ in range(3):
            assert client.predict(tokens=[WORDS])["results"]
            order.append("small")
    thread.join()
    assert order == ["small"] * 3 + ["large"]


def test_a_large_file_to_teach_keeps_nobody_waiting(serve: Callable[..., Served], tagger: Path) -> None:
    server, order = serve(tagger), list[str]()

    def open_file() -> None:
        with Client(server.address, timeout=120) as client:
            opened = client.post("/v1/teach/open", {"name": "large", "content": "Ann met Bob in Rome. " * 30_000})
            assert opened["open"]["total"] == 30_000
        order.append("large")

    thread = threading.Thread(target=open_file)
    thread.start()
    with Client(server.address, timeout=120) as client:
        while len(server.workers()) < 2 and not order:
            time.sleep(0.01)
        for _ in range(3):
            assert client.predict(text="Ann met Bob.")["results"]
            order.append("small")
    thread.join()
    assert order == ["small"] * 3 + ["large"] and len(server.workers()) == 1


def metrics(server: Served) -> str:
    parts = urlsplit(server.address)
    with socket.create_connection((parts.hostname, parts.port), timeout=60) as line:
        line.sendall(f"GET /metrics HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while more := line.recv(65536):
            answer += more
    return answer.decode()


@pytest.mark.parametrize("op", ["predict", "draw", "explain"])
def test_pieces_together_are_the_whole_answer(tagger: Path, monkeypatch: pytest.MonkeyPatch, op: str) -> None:
    model = tw.load(tagger)
    texts = ["Ann met Bob. May left Rome.", "", "Jordan saw Chase. Bob left. Ann joined May."]
    pin = {"token": 0, "value": "B-ORG", "start": 0, "end": None, "label": None}
    pins = [{**pin, "input": 0, "sentence": 1}, {**pin, "input": 2, "sentence": 2}]
    more: dict[str, Any] = {
        "predict": {"top_k": 2, "confidences": True, "choices": 3, "expected": True, "pins": pins},
        "draw": {"picture": "auto", "sentence": None, "pins": pins}, "explain": {"shown": 3},
    }  # fmt: skip
    call = {"op": op, "model": "ner", "body": {"texts": texts, **more[op]}}
    monkeypatch.setattr(worker, "PIECE", 100.0)
    (whole,) = worker.replies(model, [call])
    monkeypatch.setattr(worker, "PIECE", 0.0)
    monkeypatch.setattr("trelliswork.web.worker.PIECE", 0.0)
    (reply,) = worker.replies(model, [call])
    assert (whole.status, reply.status) == (200, PIECES)
    pieces = unpack_pieces(reply.body)
    answers = [worker.replies(model, [json.loads(payload)])[0] for _, payload in pieces]
    assert len(pieces) == 5 and all(cost > 0 for cost, _ in pieces)
    found, wanted = json.loads(b"".join(each.body for each in answers)), json.loads(whole.body)
    assert [len(each["sentences"]) for each in found["results"]] == [2, 0, 3] and found["model"] == "ner"
    assert rounded(found) == rounded(wanted)


def rounded(value: Any) -> Any:
    """Numbers to ten digits: sums over a batch and over one sentence may differ in the last bits."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value


def test_costs_grow_with_what_is_asked_for(tagger: Path) -> None:
    for model in (tw.load(tagger), BiaffineParser.from_data(treebank(10))):
        costs = [model.cost(n) for n in (0, 1, 10, 100, 1000)]
        assert costs == sorted(costs) and len(set(costs)) == len(costs)
        asked: list[dict[str, Any]] = [{}, {"top_k": 10}, {"top_k": 100}]
        assert [model.cost(50, **each) for each in asked] == sorted(model.cost(50, **each) for each in asked)
        assert model.cost(50, choices=True) > model.cost(50) < model.cost(50, explain=True)


def test_an_edit_transducer_costs_as_much_as_its_widest_beams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: a prefix takes 0.05 ms or more of one core, and nothing makes this one certain of a name."""
    counted, run = list[int](), StringBeam.run

    def counting(self: StringBeam) -> Any:
        answers = run(self)
        counted.append(sum(map(len, self.parents)))
        return answers

    monkeypatch.setattr(StringBeam, "run", counting)
    torch.manual_seed(0)
    pairs = [Sentence(tuple(word), target=tuple(word[::-1])) for word in ("abcde", "bdace", "ecdab")]
    model = EditTransducer.from_data(pairs, format=PairFormat("characters", "characters", "none"))
    for n in (60, 150):
        counted.clear()
        model.predict(("abcde" * n)[:n], confidence=False)
        assert len(counted) == len(beam_widths(n, model.config.beam)) > 1
        assert 5e-5 * sum(counted) <= model.cost(n) <= 1e-3 * sum(counted)
    assert model.cost(8) < 0.02  # or a list of words would be refused


def test_what_is_due_first_is_taken_first_and_nothing_starves() -> None:
    async def order() -> list[list[bytes]]:
        queue, loop = CallQueue(), asyncio.get_running_loop()

        def put(name: str, came: float, cost: float) -> None:
            queue.put(Call("m", name.encode(), cost, came + cost, loop.time() + 30))

        put("large", 0.0, 5.0)
        for i in range(8):
            put(f"small {i}", float(i), 0.2)
        return [[call.payload for call in await queue.take()] for _ in range(9)]

    with ThreadPoolExecutor(1) as alone:
        batches = alone.submit(asyncio.run, order()).result()
    names = [name for batch in batches for name in batch]
    assert names == [
        b"small 0",
        b"small 1",
        b"small 2",
        b"small 3",
        b"small 4",
        b"large",
        *[b"small %d" % i for i in (5, 6, 7)],
    ]


def test_pieces_and_whole_requests_take_turns() -> None:
    """A large request all of whose pieces are overdue, as the estimate was too low, leaves room for others."""

    async def order() -> list[bytes]:
        queue, loop = CallQueue(), asyncio.get_running_loop()
        for i in range(5):
            queue.put(Call("m", b"piece %d" % i, 0.25, float(i), loop.time() + 30, is_piece=True))
        names = [call.payload for call in await queue.take()]
        for i in range(4):
            queue.put(Call("m", b"whole %d" % i, 0.2, 100.0 + i, loop.time() + 30))
        while len(queue):
            names += [call.payload for call in await queue.take()]
        return names

    with ThreadPoolExecutor(1) as alone:
        names = alone.submit(asyncio.run, order()).result()
    assert [name.decode() for name in names] == [
        "piece 0", "whole 0", "piece 1", "whole 1", "piece 2", "whole 2", "piece 3", "whole 3", "piece 4",
    ]  # fmt: skip


def test_the_deadline_ends_the_work(tmp_path: Path) -> None:
    """A worker that does not answer is killed, whatever it was estimated to take, and others go on."""
    started: list[Worker] = []

    class Stuck(Pool):
        async def _start_worker(self) -> Worker:
            code = "import time\nwhile True: time.sleep(1)" if not started else ANSWERS
            ours, theirs = socket.socketpair()
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", code, str(theirs.fileno()), pass_fds=(theirs.fileno(),)
            )
            theirs.close()
            reader, writer = await asyncio.open_connection(sock=ours)
            started.append(Worker(process, reader, writer, [], 0))
            return started[-1]

    async def asked() -> tuple[Reply, Reply, int | None, bool]:
        pool = Stuck({"m": ""}, Measures(), limits=Limits(seconds=0.5))
        await pool.start()
        late = await pool.ask("predict", "m", {}, 0)
        pool.limits = Limits(seconds=60)
        good = await pool.ask("predict", "m", {}, 0)
        status = started[0].process.returncode
        await pool.stop()
        return late, good, status, "trelliswork_timeouts_total 1.0" in pool.measures.text().decode()

    with ThreadPoolExecutor(1) as alone:
        late, good, status, is_counted = alone.submit(asyncio.run, asked()).result()
    assert late.status == 504 and b"longer than 0.5 s" in late.body
    assert good == Reply(200, b"{}") and status == -signal.SIGKILL and is_counted


ANSWERS = """
import socket, sys
from trelliswork.web.frames import Reply, pack_replies, receive
line = socket.socket(fileno=int(sys.argv[1]))
while receive(line) is not None:
    line.sendall(pack_replies([Reply(200, b"{}")]))
"""


# Processes


def is_alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def gone(pid: int) -> bool:
    """Whether a process ends soon."""
    limit = time.monotonic() + 60
    while is_alive(pid) and time.monotonic() < limit:
        time.sleep(0.05)
    return not is_alive(pid)


def test_a_killed_server_leaves_no_worker_that_computes(serve: Callable[..., Served], parsing: Served) -> None:
    server = serve(parsing.command[4])
    (worker_id,) = server.workers()
    with ThreadPoolExecutor(1) as alone, Client(server.address, retries=0) as client:
        asking = alone.submit(client.predict, tokens=[[*WORDS] * 140] * 5)
        while not asking.done() and "trelliswork_calls_waiting 0" in metrics(server):
            time.sleep(0.01)
        server.kill()
        assert gone(worker_id)
        with pytest.raises(ServerError):
            asking.result()


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_what_the_server_has_started_ends_with_it() -> None:
    code = (
        "import os, subprocess, sys, time\n"
        "child = [sys.executable, '-m', 'trelliswork.runtime.parents', str(os.getpid()), 'http.server', '0']\n"
        "print(subprocess.Popen(child, stdout=subprocess.PIPE).pid, flush=True)\n"
        "time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    time.sleep(0.5)
    assert is_alive(child)
    parent.kill()
    parent.wait()
    assert gone(child)
