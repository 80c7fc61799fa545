"""The search for strings against all strings: their probabilities, their order, and what is certain."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

from tests.nn.test_edit_scores import N_TARGETS, UNKNOWN, network
from tests.oracles.edit_scripts import SlowTransducer
from trelliswork.nn.edit import search
from trelliswork.nn.edit.network import EditNetwork
from trelliswork.nn.edit.search import SearchResult, best_strings, search_inputs

INPUTS = [([0, 1], [-1, 1]), ([], []), ([2], [0]), ([3, 1], [UNKNOWN, 1])]
LONGEST = 3


def answers(model: EditNetwork, k: int, width: int, **options: bool) -> list[SearchResult]:
    sources, copies = (
        pad_sequence([torch.tensor(row[part], dtype=torch.long) for row in INPUTS], True, value)
        for part, value in ((0, 0), (1, -1))
    )
    lengths = torch.tensor([len(row[0]) for row in INPUTS])
    with torch.no_grad():
        return best_strings(model, search_inputs(model, sources, copies, lengths, N_TARGETS + 1), k, width, **options)


def shy(seed: int) -> EditNetwork:
    """A network that writes little, so that all probable strings are short."""
    model = network(seed=seed)
    with torch.no_grad():
        model.outputs.bias[:4] = torch.tensor([2.0, -2.0, 0.5, 1.0])
    return model


@pytest.mark.parametrize("seed", range(3))
def test_the_best_strings_are_those_of_enumeration(seed: int) -> None:
    model, k = shy(seed), 5
    for (x, copies), result in zip(INPUTS, answers(model, k, 256), strict=True):
        slow = SlowTransducer(model, torch.tensor(x, dtype=torch.long), copies)
        every = sorted(((sum(slow.scripts(y)), y) for y in slow.strings(N_TARGETS + 1, LONGEST)), reverse=True)
        assert result.certain
        for (probability, y), each in zip(every[:k], result.best, strict=True):
            assert each.symbols == y
            assert each.log_prob == pytest.approx(math.log(probability), abs=1e-9)


def test_shares_of_symbols_are_ratios_of_prefixes() -> None:
    model = shy(1)
    for (x, copies), result in zip(INPUTS, answers(model, 4, 64), strict=True):
        slow = SlowTransducer(model, torch.tensor(x, dtype=torch.long), copies)
        for each in result.best:
            masses = [sum(slow.scripts(each.symbols[:j], whole=False)) for j in range(len(each.symbols) + 1)]
            expected = np.log(masses[1:]) - np.log(masses[:-1])
            assert each.shares == pytest.approx(expected.tolist(), abs=1e-9)


def test_one_path_in_place_of_all() -> None:
    model = shy(2)
    results = answers(model, 3, 256, best_path=True)
    for (x, copies), row in zip(INPUTS, results, strict=True):
        slow = SlowTransducer(model, torch.tensor(x, dtype=torch.long), copies)
        every = sorted(
            ((max(slow.scripts(y), default=0.0), y) for y in slow.strings(N_TARGETS + 1, LONGEST)), reverse=True
        )
        assert [each.symbols for each in row.best] == [y for _, y in every[:3]]
        assert row.best[0].log_prob == pytest.approx(math.log(every[0][0]), abs=1e-9)


@pytest.mark.parametrize("width", [1, 2, 4, 16])
def test_the_first_is_the_same_whatever_k(width: int) -> None:
    for seed in range(8):
        model = network(seed=seed)
        with torch.no_grad():
            model.outputs.bias[0] += 1.0
        firsts = [[row.best[0].symbols for row in answers(model, k, width)] for k in (1, 2, 5)]
        assert firsts[0] == firsts[1] == firsts[2]


def test_no_string_twice_and_falling() -> None:
    for row in answers(shy(0), 20, 16):
        assert len({each.symbols for each in row.best}) == len(row.best)
        falling = [each.log_prob for each in row.best]
        assert falling == sorted(falling, reverse=True)


def test_a_narrow_beam_says_that_it_is_not_certain() -> None:
    """Certain results are the best; some are uncertain with one prefix, none with many."""
    uncertain = 0
    for seed in range(12):
        model = network(seed=seed)
        with torch.no_grad():
            model.outputs.bias[0] += 1.0
        for narrow, wide in zip(answers(model, 1, 1), answers(model, 1, 256), strict=True):
            uncertain += not narrow.certain
            if narrow.certain:
                assert narrow.best[0].symbols == wide.best[0].symbols
    assert uncertain > 0


def test_a_model_that_never_ends_is_stopped() -> None:
    model = network()
    with torch.no_grad():
        model.outputs.bias.zero_()
        model.outputs.weight.zero_()
        model.outputs.bias[:4] = torch.tensor([-40.0, 40.0, 0.0, 0.0])
        model.outputs.bias[4:] = torch.tensor([40.0, -40.0])
    for row in answers(model, 1, 1):
        assert row.best and not row.certain
    longer = torch.zeros(1, 70, dtype=torch.long)
    with torch.no_grad():
        inputs = search_inputs(model, longer, longer - 1, torch.tensor([70]), N_TARGETS)
        (never,) = best_strings(model, inputs, 1, 1)
    assert never.best == [search.NO_STRING] and not never.certain


def test_a_long_source_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST_CELLS", 4 * 2)  # four prefixes of sources of one symbol
    widths: list[tuple[int, int]] = []
    run = search.StringBeam.run

    def noted(beam: search.StringBeam) -> list[SearchResult]:
        widths.append((beam.width, int(beam.inputs.lengths.max())))
        return run(beam)

    monkeypatch.setattr(search.StringBeam, "run", noted)
    answers(network(seed=5), 3, 64)
    assert widths[0] == (4, 2)
    assert all(longest == 0 for width, longest in widths if width > 4)


def test_windows_lose_nothing_that_they_do_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for few deletions in a row, answers are those of whole columns, or not certain."""
    model = shy(0)
    whole = answers(model, 1, 64)
    monkeypatch.setattr(search, "AHEAD", 1)
    results = answers(model, 1, 64)
    assert not all(row.certain for row in results)
    for one, other in zip(results, whole, strict=True):
        if one.certain:
            assert one.best[0].symbols == other.best[0].symbols
            assert one.best[0].log_prob == pytest.approx(other.best[0].log_prob)


def test_what_weighs_nothing_is_left_out() -> None:
    """Windows begin at the first place of weight, end `AHEAD` behind the last one, and hold what arrives there."""
    arriving = np.array([[-100.0, -2.0, -1.0, -100.0], [0.0, -np.inf, -np.inf, -np.inf]])
    around = search.Windows.around(np.array([5, 0]), arriving, np.array([300, 3]))
    assert around.first.tolist() == [6, 0] and around.last.tolist() == [7 + search.AHEAD, 3]
    assert around.whole.tolist() == [False, True]
    assert around.arriving[0, :3].tolist() == [-2.0, -1.0, -100.0]
    assert np.isneginf(around.arriving[0, 3:]).all() and around.arriving[1, 0] == 0.0
