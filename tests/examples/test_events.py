"""The example of events learns on a small piece of the corpus."""

from __future__ import annotations

import pytest

from examples import events as example


def test_it_learns_and_prints(capsys: pytest.CaptureFixture[str]) -> None:
    scores = example.main(n_train=150, n_test=30, epochs=10, batch_tokens=60)
    assert scores["entities"] > 0.4 and scores["triggers"] > 0.4
    assert "arguments, entities given" in capsys.readouterr().out
