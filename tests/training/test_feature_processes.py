"""Feature CRFs learned by several processes, and from data on disk, are those that one process learns in memory."""

from __future__ import annotations

import errno
import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.training.test_processes import N, together
from tests.training.two_feature_processes import SCENARIOS, TRAIN, UNIGRAMS, trained
from trelliswork.cli.main import run
from trelliswork.data.corpus import builtin_corpus, write_corpus
from trelliswork.data.spilled import BLOCK, SpilledSentences, keep_sentences
from trelliswork.errors import OutputError, TrellisworkError
from trelliswork.models import LearningConfig
from trelliswork.models.taggers.features import encoding
from trelliswork.models.taggers.features.corpus import TaggedData
from trelliswork.models.taggers.features.crf import observed
from trelliswork.models.taggers.features.encoding import Encoded, Source
from trelliswork.models.taggers.features.learners.base import Corpus
from trelliswork.models.taggers.features.learners.learning import parameters_of
from trelliswork.runtime.scratch import Scratch
from trelliswork.training import processes
from trelliswork.training.processes import MARK, SharedFile, SharedMemory, open_shared
from trelliswork.training.together import OneProcess

ALONE = OneProcess()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """The folder of all scenarios, and what each process says of them."""
    folder = tmp_path_factory.mktemp("features")
    write_corpus(builtin_corpus(sizes=(30, 10, 1)), folder)
    for process in together(["-m", "tests.training.two_feature_processes", str(folder)]):
        _, errors = process.communicate(timeout=600)
        assert process.returncode == 0, errors
    return folder, [json.loads((folder / f"{rank}.json").read_text(encoding="utf-8")) for rank in range(N)]


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_model_is_that_of_one_process(shared: Any, name: str) -> None:
    alone = trained(name, ALONE)
    for rank, found in enumerate(each[name] for each in shared[1]):
        assert found["labels"] == list(alone["labels"])
        assert found["names"] == (alone["names"] if rank == 0 else [])
        assert found["losses"][-1] == pytest.approx(alone["losses"][-1], rel=1e-6)
        assert found["losses"][:3] == pytest.approx(alone["losses"][:3], rel=1e-9)
        np.testing.assert_allclose(found["weights"], alone["weights"], atol=2e-3)
    assert shared[1][0][name]["weights"] == shared[1][1][name]["weights"]


def test_one_shard_alone_has_a_label() -> None:
    having = [i for i, sentence in enumerate(TRAIN) if "B-ODD" in (sentence.tags or ())]
    assert len(having) == 1 and len(TRAIN) % N == 1


def test_data_on_disk_gives_the_same_model(shared: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = shared[1][0]
    assert both["scratch"]["weights"] == both["lbfgs"]["weights"] and both["scratch"]["names"] == both["lbfgs"]["names"]
    monkeypatch.setattr(encoding, "TOKENS_AT_A_TIME", 40)  # several blocks
    for name in ("lbfgs", "pairs"):
        assert trained(name, ALONE, tmp_path / "scratch") == trained(name, ALONE)
    assert not list((tmp_path / "scratch").iterdir())


def test_without_shared_memory_vectors_travel_through_gloo(shared: Any) -> None:
    for found in shared[1]:
        assert found["shares memory"] == (sys.platform == "linux" and platform.machine() == "x86_64")
        assert found["apart"] == found["lbfgs"]


def test_a_file_of_another_machine_is_not_taken_for_shared_memory(tmp_path: Path) -> None:
    path = tmp_path / "room"
    path.write_bytes(b"m" * MARK + bytes(24))
    assert open_shared(SharedFile(str(path), b"m" * MARK), 3) is not None
    assert open_shared(SharedFile(str(path), b"o" * MARK), 3) is None
    assert open_shared(SharedFile(str(tmp_path / "none"), b"m" * MARK), 3) is None


def test_nobody_waits_for_a_process_that_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "LOOK", 0.0)
    memory = np.zeros(2 * (8 * processes.LINE + 24), np.uint8)
    one, other = (SharedMemory(memory, rank, 2) for rank in range(2))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    other._pids[1] = ended.pid
    with pytest.raises(TrellisworkError, match="process 1 of the run has ended"), one.rows(np.ones(3)):
        pass


def test_what_cannot_be_shared_is_refused(shared: Any) -> None:
    first, second = (each["refused"] for each in shared[1])
    assert [text.split(" cannot")[0] for text in first[:3]] == ["--algorithm perceptron", "--model hmm", "--induce"]
    assert second[:3] == first[:3]
    assert (first[3], second[3]) == ("process 1: out of luck", "out of luck")


def test_ctrl_c_in_one_process_ends_all(shared: Any, capsys: pytest.CaptureFixture[str]) -> None:
    folder, found = shared
    assert [each["interrupted"] for each in found] == [130, 0]
    stored = json.loads((folder / "model" / "metrics.json").read_text(encoding="utf-8"))
    assert stored["training"]["iterations"] == 3
    assert run(["evaluate", str(folder / "model"), str(folder / "dev.conll"), "--quiet"]) == 0


def test_a_union_is_sorted_and_without_repetition() -> None:
    class Several(OneProcess):
        def each(self, numbers: Any) -> list[Any]:
            return [numbers, np.array([1, 4, 9]), np.empty(0, np.int64), np.array([0, 4])]

    assert Several().union(np.array([4, 7])).tolist() == [0, 1, 4, 7, 9]
    Several.each = lambda self, numbers: [numbers, numbers]  # type: ignore[method-assign]
    assert Several().union(np.empty(0, np.int64)).tolist() == []


def test_sentences_on_disk_are_a_sequence(tmp_path: Path) -> None:
    sentences = [TRAIN[i % len(TRAIN)] for i in range(2 * BLOCK + 5)]
    spilled = keep_sentences(sentences, Scratch(tmp_path))
    assert isinstance(spilled, SpilledSentences)
    assert list(spilled) == sentences and spilled[-1] == sentences[-1] and len(spilled) == len(sentences)
    assert list(spilled[3:-2:7]) == sentences[3:-2:7] and list(spilled[5:][1::2]) == sentences[5:][1::2]
    assert keep_sentences(sentences, Scratch()) == sentences
    assert not list(tmp_path.iterdir())


def test_a_scratch_that_cannot_be_written_gets_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="expected a directory for temporary files"):
        Scratch(tmp_path / "file")

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)
    with pytest.raises(OutputError, match="got No space left on device; free space"):
        Scratch(tmp_path).array(3, np.int64)


def test_many_attributes_are_marked_in_several_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    data = TaggedData(TRAIN)
    gold, encoded = data.gold(True), Encoded.of(TRAIN, Source(UNIGRAMS, None, len(TRAIN[0].features)), None)
    corpus = Corpus(encoded.rows, gold.codes)
    n, c = len(encoded.index), len(gold.labels.vocabulary)
    whole = parameters_of(corpus, n, c, LearningConfig())
    monkeypatch.setattr(observed, "MOST_MARKS", 7 * c)
    monkeypatch.setattr(observed, "TOKENS_AT_A_TIME", 10)
    parts = parameters_of(corpus, n, c, LearningConfig())
    assert parts.labels.tolist() == whole.labels.tolist() and parts.offsets.tolist() == whole.offsets.tolist()
    assert parts.arcs.tolist() == whole.arcs.tolist()
    counts = observed.arc_counts(np.arange(c * c), encoded.rows, gold.codes, observed.all_labels(c))
    assert counts.sum() == len(gold.codes) - len(TRAIN)
