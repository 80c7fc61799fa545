"""Settings of the whole suite: one thread, and property tests that draw the same examples every time."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

from tests.entry_recorder import record
from trelliswork.runtime import threads

pytest.register_assert_rewrite("tests.contract.base")  # so that its failures show both sides
torch.set_num_threads(1)
gc.set_threshold(20_000)  # as the command line does: collecting garbage takes less time
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")  # virtual machines may announce AMX and refuse it
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores Ctrl-C for what it runs in the background

MEMORY = Path("/dev/shm")
ROOM = 4 << 30  # bytes; a run fills a tenth of it

STRUCTURES = ("tests/contract/", "tests/structures/", "tests/equations/", "tests/semirings/")
LONG = ("tests/web/", "tests/docs/", "tests/faults/")


def keep_temporary_files_in_memory() -> None:
    """Where there is room: what is forced to disk, and thousands of files that are removed, would be waited for."""
    if "TMPDIR" in os.environ or not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < ROOM:
        return
    if not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC:  # torch.compile runs what it writes there
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


keep_temporary_files_in_memory()
settings.register_profile(
    "ci", derandomize=True, deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ci")


RECORDER = record()


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Each test begins with one thread, whatever the one before has left: threads of two processes wait for each other.

    A command sets the number of its process; so does a network that gives torch one thread for a while, where a test
    only pretends that there are several.
    """
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def kernels_are_listed(request: pytest.FixtureRequest) -> Iterator[None]:
    """A kernel that Python calls is on the list of those that wheels carry."""
    yield
    missing = RECORDER.unlisted()
    if missing and not request.config.getoption("--record-kernels"):
        names = ", ".join(sorted(missing))
        pytest.fail(f"called, but not in runtime/entries.json: {names}; run the test with --record-kernels")


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.config.getoption("--record-kernels"):
        RECORDER.write()


def pytest_collection_finish() -> None:
    """What is there before the tests is no garbage: it need not be looked through again and again."""
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-kernels", action="store_true", help="add the kernels that are called to entries.json")
    parser.addoption("--quick", action="store_true", help="of the contract tests, one case for each query")
    parser.addoption(
        "--thorough", action="store_true", help="the tests that `make trust` runs beside those of `make test`"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Folders with long tests come first, and structures, whose tests are short, next: each of two processes begins
    with a half, so that one alone starts the browser and the servers, and what is left for the end is short.

    Tests marked as thorough are run with --thorough, and only then. With --quick, the contract tests ask each query of
    each structure once, of its first case and backend.
    """
    items.sort(key=lambda item: (not item.nodeid.startswith(LONG), not item.nodeid.startswith(STRUCTURES)))
    thorough = [item for item in items if item.get_closest_marker("thorough")]
    left_out = set(items) - set(thorough) if config.getoption("--thorough") else set(thorough)
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]
    if not config.getoption("--quick"):
        return
    kept: dict[tuple[object, ...], pytest.Item] = {}
    for item in items:
        if "/contract/" not in item.nodeid:
            kept[item.nodeid,] = item
        elif isinstance(item, pytest.Function) and item.cls is not None:
            kept.setdefault((item.cls, item.originalname), item)
    config.hook.pytest_deselected(items=list(set(items) - set(kept.values())))
    items[:] = kept.values()


@pytest.fixture
def two_threads() -> Iterator[None]:
    """Two threads for one test."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def worth_splitting(monkeypatch: pytest.MonkeyPatch, two_threads: None) -> None:
    """Two threads that take their share of the smallest work."""
    monkeypatch.setattr(threads, "WORTH_SPLITTING", 1)
