"""Runs that end badly: weights that broke, memory that ran out, a second run in the folder."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.training.test_loop import Toy, run
from trelliswork.cli.answering import Question, answers
from trelliswork.data import Sentence
from trelliswork.data.corpus import as_sentences, builtin_corpus
from trelliswork.errors import DataError, ModelError, OutputError, ScoreError, TrellisworkError
from trelliswork.models import Tagger, TaggerConfig, storage
from trelliswork.training import TrainingConfig, train
from trelliswork.training.exclusive import LOCK, exclusive
from trelliswork.training.progress import Progress

DATA = [each for part in builtin_corpus(sizes=(12, 1, 1)).values() for each in as_sentences(part)]
SMALL = TaggerConfig(word_dim=4, affix_dim=2, hidden=4)


@pytest.fixture(scope="module")
def tagger() -> Tagger:
    return Tagger.from_data(DATA, SMALL).eval()


def test_scores_of_the_dev_data_that_are_not_finite_end_the_run(tmp_path: Path) -> None:
    class Breaking(Toy):
        def evaluate(self, sentences: Sequence[Sentence]) -> dict[str, Any]:
            if len(self.weights_at_evaluation) == 2:
                raise ScoreError("emissions must be finite numbers or -inf; got nan at [0, 0, 0]")
            return super().evaluate(sentences)

    toy = Breaking(scores=[0.1, 0.3])
    message = r"scores of the dev sentences after epoch 3, batch 3, .* rate \(now 0.05\) .*; the best model, of epoch 2"
    with pytest.raises(TrellisworkError, match=message):
        run(toy, out=tmp_path / "m")
    assert toy.w.item() == toy.weights_at_evaluation[1] == toy.saved[-1]


def test_a_loss_that_breaks_in_the_first_epoch_leaves_an_earlier_model_alone(tmp_path: Path) -> None:
    out = tmp_path / "m"
    Tagger.from_data(DATA, SMALL).save(out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    config = TrainingConfig(epochs=2, batch_tokens=50, lr=1e38, optimizer="momentum", clip=1e38, checkpoint_every=0)
    with pytest.raises(TrellisworkError, match=r"in epoch 1, batch \d+ .*; no epoch was finished, so no model is kept"):
        train(Tagger.from_data(DATA, SMALL), DATA, DATA[:2], config, out=out, progress=Progress())
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_a_second_run_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "m"

    def again(record: object) -> None:
        with pytest.raises(OutputError, match=r"m: another run is training there \(process \d+\); wait for its end"):
            run(Toy(), out=out)
        run(Toy(scores=[0.1]), out=tmp_path / "other", epochs=1)

    run(Toy(scores=[0.1]), out=out, epochs=1, on_epoch=again)
    assert not (out / LOCK).exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_lock_of_a_killed_process_is_gone(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        with exclusive(tmp_path):
            os.kill(os.getpid(), 9)
    os.waitpid(child, 0)
    with exclusive(tmp_path):
        assert (tmp_path / LOCK).exists()


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")])
def test_a_batch_that_does_not_fit_is_tagged_by_halves(
    tagger: Tagger, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, own, longest = tagger.tag(DATA), Tagger._best_tags, max(map(len, DATA))

    def small(self: Tagger, batch: Sequence[Sentence], pins: Any) -> list[list[str]]:
        if sum(map(len, batch)) > longest:
            raise error
        return own(self, batch, pins)

    monkeypatch.setattr(Tagger, "_best_tags", small)
    assert tagger.tag(DATA) == expected
    assert tagger.tag(DATA, [{} for _ in DATA]) == expected
    long = Sentence(("a",) * (longest + 1), file="new.conll", line=7)
    message = rf"new\.conll:7: expected a sentence that fits into memory, got one of {longest + 1} tokens; split it"
    with pytest.raises(DataError, match=message):
        tagger.tag([*DATA, Sentence(long.words, features=DATA[0].features[:1] * len(long), file=long.file, line=7)])


def test_other_errors_of_torch_are_not_taken_for_memory(tagger: Tagger, monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(*arguments: object) -> None:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    monkeypatch.setattr(Tagger, "_best_tags", stumble)
    with pytest.raises(RuntimeError, match="mat1"):
        tagger.tag(DATA)


def test_weights_that_are_broken_are_told_from_pins_that_do_not_fit() -> None:
    broken = Tagger.from_data(DATA, SMALL).eval()
    with torch.no_grad():
        broken.crf.transitions.fill_(torch.nan)
        broken.scorer.linear.weight.fill_(torch.nan)
    with pytest.raises(DataError, match="no analysis of this sentence a finite score: its weights are broken"):
        list(answers(broken, DATA, Question()))


def test_a_model_is_whole_at_every_moment_of_saving_it_again(
    tagger: Tagger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tagger.save(tmp_path / "m")
    own, n_loaded = storage.os.replace, 0

    def checking(source: Path, target: Path) -> None:
        nonlocal n_loaded
        n_loaded += 1
        then = shutil.copytree(tmp_path / "m", tmp_path / f"then-{n_loaded}")  # a reader finishes what was begun
        with monkeypatch.context() as reading:
            reading.setattr(storage.os, "replace", own)
            Tagger.load(then)
        own(source, target)

    monkeypatch.setattr(storage.os, "replace", checking)
    tagger.save(tmp_path / "m")
    assert n_loaded == 4


def test_what_a_kill_left_beside_a_model_goes_with_the_next_run(tmp_path: Path) -> None:
    for name in (".m.x1y2z3_4.part", ".m.m.x1y2z3_4.part", ".mm.x1y2z3_4.part"):
        (tmp_path / name).mkdir()
    run(Toy(scores=[0.1]), out=tmp_path / "m", epochs=1)
    left = sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".part")
    assert left == [".m.m.x1y2z3_4.part", ".mm.x1y2z3_4.part"], "those of other models stay"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"settings": {"quantum": 1}},
            r"config\.json is too new \(.* got quantum; .*\); trelliswork 99\.1 wrote it",
        ),
        ({"kind": "QuantumTagger"}, r"kind Tagger, got QuantumTagger; trelliswork 99\.1 wrote it; upgrade trelliswork"),
    ],
)
def test_a_model_of_a_later_version(tagger: Tagger, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    tagger.save(tmp_path / "m")
    path = tmp_path / "m" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes, "library_version": "99.1"}))
    with pytest.raises(ModelError, match=message):
        Tagger.load(tmp_path / "m")
