"""All that is fuzzed: files, model folders, checkpoints, pins and web requests."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from tests.fuzz.folders import applied, drawn, folder_targets
from tests.fuzz.harness import Target
from tests.fuzz.models import FEW, SMALL, TAGGED
from tests.fuzz.mutations import mutated
from tests.fuzz.readers import file_targets, seeds
from trelliswork.cli.answering import parse_pins, pins_for
from trelliswork.models import FeatureTagger, Tagger
from trelliswork.training import TrainingConfig, train
from trelliswork.web import requests
from trelliswork.web.problems import Problem
from trelliswork.web.requests import Limits
from trelliswork.web.teaching.lesson import Journal
from trelliswork.web.worker import replies

BODIES: dict[str, Callable[[Limits], Any]] = {
    "predict": requests.predict_body,
    "draw": requests.draw_body,
    "explain": requests.explain_body,
    "decide": requests.decide_body,
    "open": requests.open_body,
    "next": requests.next_query,
}
LIMITS = Limits(top_k=3, characters=200, texts=4, tokens=30, pins=4, shown=4)


def request_targets(model: Any) -> list[Target]:
    """Bodies of requests, checked, and answered as a worker answers them."""

    def ask(name: str, content: bytes) -> None:
        body = requests.read_json(content, BODIES[name](LIMITS))
        if name in ("predict", "draw", "explain"):
            (reply,) = replies(model, [{"op": name, "body": body}])
            assert reply.status in (200, 413, 422), f"status {reply.status}: {reply.body[:300]!r}"
            said = json.loads(reply.body)
            assert reply.status == 200 or said["detail"], "a problem without a sentence"

    change = partial(mutated, as_json=True)
    return [Target(f"request-{name}", seeds(name), partial(ask, name), change, (Problem,)) for name in BODIES]


def pins_target(model: Any) -> Target:
    def ask(content: bytes) -> None:
        pins = parse_pins(content.decode("utf-8", "replace").splitlines(), model)
        known = pins_for(pins, 1, TAGGED[0], model)
        (answer,) = model.predict(TAGGED[:1], pins=[known])
        assert all(answer.value[i] == tag for i, tag in known.items()), "a pin that is not kept"

    return Target("pins", seeds("pins"), ask)


def journal_target(folder: Path) -> Target:
    """The journal of decisions of a teacher: torn ends are cut off, other damage is told."""

    def ask(content: bytes) -> None:
        path = folder / "journal.jsonl"
        path.write_bytes(content)
        journal = Journal(path)
        try:
            assert all(isinstance(record, dict) for record in journal.records)
        finally:
            journal.close()

    seed = b'{"id": 0, "tags": ["O", "B-PER"]}\n{"id": 1, "skip": true}\n{"id": 2, "tags": [null]}\n'
    return Target("journal", (seed,), ask, partial(mutated, as_json=True))


def checkpoint_target(folder: Path) -> Target:
    """The state of a run, to be continued from."""
    out = folder / "run"
    config = TrainingConfig(epochs=1, batch_tokens=10)
    _trained(out, config, resume=False)
    copy = folder / "continued"

    def ask(content: bytes) -> None:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(out, copy)
        applied(copy, json.loads(content))
        _trained(copy, TrainingConfig(epochs=2, batch_tokens=10), resume=True)

    def change(content: bytes, source: Any, others: Any) -> bytes:
        return json.dumps(drawn(out, source)).encode()

    return Target("checkpoint", (b"[]",), ask, change)


def _trained(out: Path, config: TrainingConfig, *, resume: bool) -> None:
    torch.manual_seed(0)
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        train(Tagger.from_data(TAGGED, SMALL), TAGGED, TAGGED, config, out=out, resume=resume)


def all_targets(folder: Path | None = None) -> list[Target]:
    """Every target; models are made in `folder`."""
    place = folder or Path(tempfile.mkdtemp(prefix="fuzz-"))
    torch.set_num_threads(1)
    model = FeatureTagger.fit(TAGGED, FEW)
    return [
        *file_targets(place), *request_targets(model), pins_target(model), journal_target(place),
        *folder_targets(place), checkpoint_target(place),
    ]  # fmt: skip
