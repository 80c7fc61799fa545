"""The example of multi-task tagging runs on a small piece of the corpus."""

from __future__ import annotations

from dataclasses import replace

from examples import multitask


def test_it_compares_one_network_with_several() -> None:
    settings = replace(multitask.SETTINGS, encoder="window", hidden=40)
    table = multitask.main(multitask.built_in(150, 40), epochs=3, n_masks=3, settings=settings, batch_tokens=50)
    assert list(table) == ["pos", "chunk", "entity"]
    assert table["pos"]["together"] > 0.5 and table["chunk"]["together"] > 0.5
    assert all(0 <= row["ECE after"] < 1 for row in table.values())
