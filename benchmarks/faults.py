"""What the server does with requests that nobody should send, and what is left after kill -9.

    python -m benchmarks.faults --out docs/results

Malformed requests and the writer that is killed are those of `tests/web`, in full numbers: 10,000 requests, 20 workers
killed under load, 100 writers of decisions killed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.web.conftest import Served, sentences
from tests.web.test_faults import answer_of, malformed

from trelliswork.models import FeatureTagger
from trelliswork.web import Client, ServerError
from trelliswork.web.teaching.lesson import TAUGHT, Lesson
from trelliswork.writing import atomic_write

CLIENTS = 4
HUGE = 100_000_000


def fuzzed(server: Served, n: int) -> dict[str, Any]:
    """Statuses of malformed requests, and memory of the server with its worker after a third and at the end."""
    source, statuses, memory = random.Random(1), Counter[str](), 0
    netloc = urlsplit(server.address).netloc
    for i in range(n):
        if i == n // 3:
            memory = server.memory()
        answer = answer_of(server.address, malformed(source, netloc), pause=0.01 if i % 100 == 50 else 0.0)
        assert b"Traceback" not in answer
        statuses[answer[9:12].decode("latin-1") or "closed"] += 1
    mb = [round(each / 1e6, 1) for each in (memory, server.memory())]
    return {"requests": n, "statuses": dict(sorted(statuses.items())), "mb_at_a_third": mb[0], "mb_at_the_end": mb[1]}


def huge(server: Served) -> dict[str, float]:
    """Seconds until a text of 100 MB is refused, its length told before and not told."""
    parts, found = urlsplit(server.address), {}
    body = b'{"text": "' + b"x" * HUGE + b'"}'
    for name, head in (("told", f"Content-Length: {len(body)}"), ("not told", "Transfer-Encoding: chunked")):
        with socket.create_connection((parts.hostname, parts.port), timeout=60) as line:
            began = time.perf_counter()
            first = (
                f"POST /v1/predict HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n{head}\r\n\r\n"
            )
            line.sendall(first.encode() + (b"%x\r\n" % len(body) if name == "not told" else b""))
            writer = threading.Thread(target=_sent, args=(line, body), daemon=True)
            writer.start()
            status = line.recv(12)[9:12]
            found[name] = round(time.perf_counter() - began, 3)
            assert status == b"413", status
        writer.join(timeout=10)
    return found


def _sent(line: socket.socket, body: bytes) -> None:
    with contextlib.suppress(OSError):  # refused before all of it was sent
        line.sendall(body)


def slow(server: Served, n: int) -> dict[str, Any]:
    """Seconds until bodies of a byte a second are given up, and the slowest answer to somebody else meanwhile."""
    parts, found, others = urlsplit(server.address), list[tuple[bytes, float]](), list[float]()

    def drip() -> None:
        with socket.create_connection((parts.hostname, parts.port), timeout=60) as line:
            head = f"POST /v1/predict HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
            line.sendall(f"{head}Content-Length: 1000\r\n\r\n".encode())
            began = time.perf_counter()
            line.settimeout(1)
            while True:
                try:
                    found.append((line.recv(12)[9:12], time.perf_counter() - began))
                    return
                except TimeoutError:
                    line.send(b" ")

    threads = [threading.Thread(target=drip) for _ in range(n)]
    for each in threads:
        each.start()
    with Client(server.address) as client:
        while any(each.is_alive() for each in threads):
            began = time.perf_counter()
            client.predict(text="Ann met Bob.")
            others.append(time.perf_counter() - began)
            time.sleep(0.05)
    assert all(status == b"408" for status, _ in found), found
    seconds = [taken for _, taken in found]
    return {"clients": n, "seconds": [round(min(seconds), 1), round(max(seconds), 1)],
            "median_ms_of_others": round(1000 * statistics.median(others), 1)}  # fmt: skip


def killed_workers(folder: Path, model: Path, kills: int) -> dict[str, Any]:
    """Under load of clients that do not try again: how many requests were answered, wrongly or not at all."""
    server = Served([model], folder / "teaching-kills", ("--workers", "2", "--timeout", "300"))
    asked = [list(each.words) for each in sentences(30, seed=8)]
    wanted = [each.value for each in FeatureTagger.load(model).predict(asked, top_k=0, confidence=False)]
    counts, over = Counter[str](), threading.Event()

    def ask(i: int) -> None:
        while not over.is_set():
            with Client(server.address, retries=0, timeout=300) as client:
                try:
                    found = client.predict(tokens=[asked[i % 30]], confidences=False)["results"][0]["sentences"][0]
                    counts["right" if found["value"] == wanted[i % 30] else "wrong"] += 1
                except ServerError:
                    counts["lost"] += 1
            i += 1

    threads = [threading.Thread(target=ask, args=(first,), daemon=True) for first in range(CLIENTS)]
    for each in threads:
        each.start()
    try:
        for _ in range(kills):
            before = counts["right"]
            os.kill(server.workers()[0], signal.SIGKILL)
            while counts["right"] < before + 20 or len(server.workers()) < 2:
                time.sleep(0.05)
    finally:
        over.set()
        for each in threads:
            each.join(timeout=60)
        server.stop()
    return {"kills": kills, "clients": CLIENTS, **{name: counts[name] for name in ("right", "wrong", "lost")}}


def killed_writers(folder: Path, kills: int) -> dict[str, Any]:
    """Decisions that were acknowledged, and how many the file lacks, or has half, right after a kill -9."""
    source, acknowledged, place = random.Random(3), set[int](), folder / "decisions"
    missing = halves = 0
    for _ in range(kills):
        command = [sys.executable, "-m", "tests.web.deciding", str(place)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        killer = threading.Timer(source.uniform(0, 0.3), process.kill)
        killer.start()
        acknowledged |= {int(line) for line in process.stdout if line.endswith("\n")}
        process.wait()
        Lesson(place).close()  # as the next server opens it
        text = (place / TAUGHT).read_bytes()
        kept = {json.loads(line)["id"] for line in text.splitlines()}
        missing += sum(each % 7 != 2 for each in acknowledged - kept)  # the others are just being undone by the writer
        halves += bool(text) and not text.endswith(b"\n")
    return {"kills": kills, "acknowledged": len(acknowledged), "missing": missing, "half_lines": halves}


def rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Each fault, and what happened."""
    fuzz, big, late, workers, writers = (found[each] for each in ("fuzz", "huge", "slow", "workers", "writers"))
    statuses = ", ".join(f"{status} {n:,} times" for status, n in fuzz["statuses"].items())
    return [
        (
            f"{fuzz['requests']:,} malformed requests: broken JSON, wrong members, bad UTF-8, wrong headers, bodies "
            "that end before their time",
            f"{statuses}; no traceback. Memory of server and worker: {fuzz['mb_at_a_third']} MB after a third of them, "
            f"{fuzz['mb_at_the_end']} MB at the end",
        ),
        (
            "a text of 100 MB",
            f"413 after {big['told']:.3f} s where its length is given, after {big['not told']:.3f} s where it is not",
        ),
        (
            f"{late['clients']} clients at once that send a byte a second",
            f"408 after {late['seconds'][0]} to {late['seconds'][1]} s (the limit is 10 s); others are answered "
            f"meanwhile, half of them within {late['median_ms_of_others']} ms",
        ),
        (
            f"kill -9 of a worker, {workers['kills']} times, under {workers['clients']} clients that try nothing twice",
            f"{workers['right']:,} right answers, {workers['wrong']} wrong, {workers['lost']} requests not answered",
        ),
        (
            f"kill -9 of the process that writes decisions, {writers['kills']} times at random moments",
            f"{writers['acknowledged']:,} decisions acknowledged, {writers['missing']} of them missing in the file, "
            f"{writers['half_lines']} half lines",
        ),
    ]


def report(found: dict[str, Any], command: str) -> str:
    """The page of results."""
    table = "\n".join(f"| {fault} | {happened} |" for fault, happened in rows(found))
    return f"""# Faults

What `trelliswork serve` does with requests that nobody should send, and what is left after kill -9; the model is a
small CRF over features.

| fault | what happened |
|---|---|
{table}

The calls of a worker that is killed are given to another, so that requests in flight are answered as well, as long as
the second worker is not killed too.

Measured with `{command}`.
"""


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="docs/results")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=100, help="of writers; workers are killed a fifth as often")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        FeatureTagger.fit(sentences(80)).save(folder / "ner")
        server = Served([folder / "ner"], folder / "teaching")
        try:
            found: dict[str, Any] = {"huge": huge(server), "slow": slow(server, 20)}
            found["fuzz"] = fuzzed(server, given.requests)
        finally:
            server.stop()
        found["workers"] = killed_workers(folder, folder / "ner", given.kills // 5)
        found["writers"] = killed_writers(folder, given.kills)
    command = f"python -m benchmarks.faults --requests {given.requests} --kills {given.kills}"
    for name, text in (("faults.md", report(found, command)), ("faults.json", json.dumps(found, indent=1) + "\n")):
        with atomic_write(Path(given.out) / name) as file:
            file.write(text)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
