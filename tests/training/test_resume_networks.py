"""Every kind of network goes on after kills, twice in a row, to the same weights; other threads are told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.training.test_resume import DEV, EVERY_STEP, NETWORK, TRAIN, Notes, killed_at, start, weights
from trelliswork.models import Segmenter, Tagger, TaggerConfig
from trelliswork.training import TrainingConfig, train

CASES: dict[str, tuple[type[Tagger] | type[Segmenter], TaggerConfig, dict[str, Any]]] = {
    "characters": (
        Tagger,
        replace(
            NETWORK, encoder="lstm", characters="lstm", word_dropout=0.1, embedding_dropout=0.2, hidden_dropout=0.3
        ),
        dict(average="ema", ema_decay=0.9, accumulate=2, warmup=0.2, decay="cosine"),
    ),
    "grsemicrf": (Segmenter, replace(NETWORK, segments="pyramid", segment_dim=6), dict(average="swa", swa_start=0.3)),
    "endpoints": (
        Segmenter,
        replace(NETWORK, encoder="gru", segments="endpoints", segment_dim=6, templates=("U00:%x[0,0]",)),
        dict(objective="margin", decay="triangular"),
    ),
    "neural": (
        Tagger,
        replace(NETWORK, encoder="deep", layers=2, transitions="network", ngrams=(3,), ngram_buckets=50, ngram_dim=4),
        dict(precision="bf16", layer_decay=2.6, unfreeze=True),
    ),
    "attention": (
        Tagger,
        replace(NETWORK, encoder="transformer", heads=2, scorer="hidden-units", hidden_units=4, hidden_dropout=0.2),
        dict(optimizer="sgd", decay="inverse"),
    ),
}


def run(case: str, out: Path, *, resume: bool = False) -> None:
    kind, network, settings = CASES[case]
    config = TrainingConfig(**{**EVERY_STEP, **settings})
    train(kind.from_data(TRAIN, network), TRAIN, DEV, config, out=out, resume=resume, progress=Notes())


@pytest.mark.parametrize("case", CASES)
def test_killed_twice(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(case, tmp_path / "whole")
    kind, _, settings = CASES[case]
    method = "scored" if settings.get("objective") == "margin" else "loss"
    for call, resume in ((4, False), (5, True)):
        with killed_at(monkeypatch, kind, method, call):
            run(case, tmp_path / "m", resume=resume)
    run(case, tmp_path / "m", resume=True)
    assert weights(tmp_path / "m") == weights(tmp_path / "whole")


def test_another_number_of_threads_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with killed_at(monkeypatch, Tagger, "loss", 3):
        start(tmp_path / "m")
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    _, notes = start(tmp_path / "m", resume=True)
    assert any("threads and has 2: rounding differs" in note for note in notes), notes
