"""Load: sentences a second and times of answers with 1, 8 and 32 clients, of ours and of FastAPI + spaCy.

    python -m benchmarks.serve DATA --peer venv-spacy/bin/python --out docs/results

DATA is the folder of CoNLL-2000. Every request is one sentence of the test file with its tokens, and the answer its
tags (spaCy: its spans). Models are trained on the same sentences of the training file, words alone; how well they do it
does not matter here. Clients, server and workers share the machine, and each server runs alone. Beside what a clock
says stands the processor time of the server (with its workers) for each sentence, which other programs disturb less.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from trelliswork.data import Sentence, json_text, read_conll
from trelliswork.writing import atomic_write

CLIENTS = (1, 8, 32)
MODELS = {
    "feature CRF": ("crf", "--max-iterations", "40"),
    "window": ("window", "--epochs", "2"),
    "BiLSTM-CRF": ("bilstm-crf", "--epochs", "1"),
}
PEER, PEER_FILE = "FastAPI + spaCy", Path(__file__).parent / "peers" / "spacy_service.py"


def written(data: Path, folder: Path, n: int) -> tuple[Path, list[list[str]]]:
    """The training sentences as JSON lines, and the sentences to ask about."""
    rows = [Sentence(each.words, each.tags) for each in read_conll(data / "train.txt")][:n]
    with atomic_write(folder / "train.jsonl") as file:
        file.writelines(map(json_text, rows))
    return folder / "train.jsonl", [list(each.words) for each in read_conll(data / "test.txt")]


def trained(folder: Path, train: Path) -> dict[str, Path]:
    """The models by name, trained if they are not there."""
    found = {}
    for name, (model, *options) in MODELS.items():
        found[name] = folder / model
        if not (found[name] / "config.json").exists():
            command = [sys.executable, "-m", "trelliswork", "train", train, "--model", model, *options, "-q"]
            subprocess.run([*command, "--out", found[name]], check=True, stdout=subprocess.DEVNULL)
    return found


@contextmanager
def running(command: list[Any], address: str, environment: dict[str, str]) -> Iterator[int]:
    """A server while it answers; its process id."""
    process = subprocess.Popen(list(map(str, command)), env={**os.environ, **environment}, stdout=subprocess.DEVNULL)
    try:
        for _ in range(600):
            try:
                urlopen(address, timeout=5).read()
                break
            except OSError:
                time.sleep(0.2)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def processor_seconds(pid: int) -> float:
    """Of a process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    fields = [Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split() for each in (pid, *children)]
    return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")


def measured(pid: int, address: str, bodies: list[Any], folder: Path, seconds: float) -> list[dict[str, float]]:
    """Rows for each number of clients, after a second of warming up."""
    file = folder / "bodies.json"
    file.write_text(json.dumps(bodies), encoding="utf-8")
    rows = []
    for clients, length in ((8, 1.0), *((n, seconds) for n in CLIENTS)):
        before = processor_seconds(pid)
        command = [sys.executable, "-m", "benchmarks.load", address, str(file)]
        command += ["--clients", str(clients), "--seconds", str(length)]
        row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        n = row["per_second"] * length
        rows.append({**row, "processor_ms": 1000 * (processor_seconds(pid) - before) / n})
    return rows[1:]


def ours(folder: Path, model: Path, bodies: list[Any], seconds: float) -> list[dict[str, float]]:
    """Our server with one model and one worker."""
    command = [sys.executable, "-m", "trelliswork", "serve", model, "--port", "8571", "--teach", folder / "teaching"]
    with running(command, "http://127.0.0.1:8571/healthz", {"OMP_NUM_THREADS": "1"}) as pid:
        return measured(pid, "http://127.0.0.1:8571/v1/predict", bodies, folder, seconds)


def peers(folder: Path, python: str, train: Path, tokens: list[Any], seconds: float) -> list[dict[str, float]]:
    """The service around spaCy."""
    model = folder / "spacy"
    if not model.exists():
        subprocess.run([python, PEER_FILE, "train", train, model], check=True)
    command = [python, "-m", "uvicorn", "--app-dir", PEER_FILE.parent, "spacy_service:app", "--port", "8572"]
    environment = {"SPACY_MODEL": str(model), "OMP_NUM_THREADS": "1", "PYTHONPATH": ""}
    with running([*command, "--log-level", "warning"], "http://127.0.0.1:8572/openapi.json", environment) as pid:
        return measured(pid, "http://127.0.0.1:8572/predict", tokens, folder, seconds)


def report(found: dict[str, list[dict[str, float]]], command: str, load: str) -> str:
    """The page of results."""
    lines = [
        "| service | clients | sentences/s | p50 ms | p99 ms | processor ms a sentence |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, rows in found.items():
        lines += [
            f"| {name} | {row['clients']} | {row['per_second']:,.0f} | {row['p50']:.1f} | {row['p99']:.1f} | "
            f"{row['processor_ms']:.2f} |"
            for row in rows
        ]
    best = {name: rows[-1] for name, rows in found.items()}
    told = ""
    if PEER in best:
        peer, mine = best[PEER], best["feature CRF"]
        ratio = peer["processor_ms"] / mine["processor_ms"]
        told = (
            f"\nWith 32 clients the feature CRF answers {mine['per_second'] / peer['per_second']:.1f} times as many "
            f"sentences as FastAPI + spaCy, whose processor time for a sentence is {ratio:.1f} times ours.\n"
        )
    return f"""# Serving under load

Clients, server and worker on one machine with two cores; a request is one sentence of the CoNLL-2000 test file as
tokens, over connections that are kept. Ours: `trelliswork serve MODEL` with one worker, `"confidences": false`. Peer:
FastAPI and uvicorn with spaCy's `nlp.pipe`, an entity recogniser (spaCy's own settings) trained on the same sentences.
Latency is that which a client sees. `processor ms` is the time of the server and its workers on a processor.

{chr(10).join(lines)}
{told}
{load}

Measured with `{command}`.
"""


def load_note() -> str:
    """How busy the machine was."""
    average = os.getloadavg()[1]
    busy = "; other programs were running, so the processor times say more than the rates" if average > 3 else ""
    return f"Load average of the machine over five minutes at the end: {average:.1f}{busy}."


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--peer", help="Python of the environment with spacy, fastapi and uvicorn")
    parser.add_argument("--folder", default="serve-models", help="where models are kept")
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--out", default="docs/results")
    given = parser.parse_args()
    folder = Path(given.folder)
    folder.mkdir(parents=True, exist_ok=True)
    train, asked = written(Path(given.data), folder, given.sentences)
    models, bodies = trained(folder, train), [{"tokens": [each], "confidences": False} for each in asked]
    found = {name: ours(folder, model, bodies, given.seconds) for name, model in models.items()}
    if given.peer:
        tokens = [{"tokens": [each]} for each in asked]
        found[PEER] = peers(folder, given.peer, train, tokens, given.seconds)
    command = f"python -m benchmarks.serve conll2000 --seconds {given.seconds:g} --sentences {given.sentences}"
    text = report(found, command + (" --peer PYTHON" if given.peer else ""), load_note())
    for name, content in (("serve.md", text), ("serve.json", json.dumps(found, indent=1) + "\n")):
        with atomic_write(Path(given.out) / name) as file:
            file.write(content)
    print(text)


if __name__ == "__main__":
    main()
