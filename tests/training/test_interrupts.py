"""Ctrl-C waits for the end of a step, and for nothing else."""

from __future__ import annotations

import signal
import threading

import pytest

from trelliswork.training.interrupts import Interrupts


def press_ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


def step(interrupts: Interrupts, presses: int, done: list[str]) -> None:
    with interrupts.undivided():
        for _ in range(presses):
            press_ctrl_c()
        done.append("step")
    done.append("next step")


def test_a_step_is_done_to_its_end() -> None:
    done: list[str] = []
    with Interrupts() as interrupts, pytest.raises(KeyboardInterrupt):
        step(interrupts, 1, done)
    assert done == ["step"]


def test_elsewhere_it_works_at_once() -> None:
    with Interrupts(), pytest.raises(KeyboardInterrupt):
        press_ctrl_c()


def test_the_second_one_does_not_wait() -> None:
    done: list[str] = []
    with Interrupts() as interrupts, pytest.raises(KeyboardInterrupt):
        step(interrupts, 2, done)
    assert done == []


def test_the_handler_is_put_back_and_that_of_others_is_left_alone() -> None:
    with Interrupts():
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    own = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interrupts():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, own)


def test_in_another_thread_nothing_is_installed() -> None:
    found = []

    def work() -> None:
        with Interrupts() as interrupts, interrupts.undivided():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]


def test_it_waits_for_ever_where_somebody_asks() -> None:
    with Interrupts(wait=True) as interrupts:
        assert not interrupts.pending
        press_ctrl_c()
        press_ctrl_c()
        assert interrupts.pending
