"""Settings that are too large are refused wherever they come from: every whole number has an upper bound."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.base import case
from trelliswork.cli.options import Columns
from trelliswork.data.settings import LARGEST, LARGEST_SEED, Settings, kinds_of
from trelliswork.errors import TrellisworkError
from trelliswork.models import VectorTaggerConfig
from trelliswork.models.catalogue import entries
from trelliswork.models.taggers.features.learners.config import LearningConfig
from trelliswork.training import TrainingConfig


def configs() -> set[type[Settings]]:
    return {Columns, VectorTaggerConfig, *(config for entry in entries().values() for config in entry.configs)}


def whole_numbers() -> Iterator[tuple[type[Settings], str, bool]]:
    """Each setting that is a whole number, or a list of them."""
    for config in configs():
        for name, kind in kinds_of(config).items():
            if kind in ("int", "tuple[int, ...]") and name != "seed":
                yield config, name, kind != "int"


def test_every_whole_number_has_an_upper_bound() -> None:
    settings = list(whole_numbers())
    assert {"beam", "hidden", "prefix_lengths", "batch_tokens"} <= {name for _, name, _ in settings}
    for config, name, is_list in settings:
        for value in (LARGEST + 1, 2**63):
            with case(config=config.__name__, name=name, value=value):
                given = [value] if is_list else value
                with pytest.raises(TrellisworkError, match=rf"^{name} must .*; got "):
                    config.from_dict({name: given})
                with pytest.raises(TrellisworkError, match=rf"^{name} must .*; got "):
                    config(**{name: (value,) if is_list else value})


def test_seeds_may_have_64_bits() -> None:
    for config in (TrainingConfig, LearningConfig):
        assert config(seed=LARGEST_SEED).seed == LARGEST_SEED
        with pytest.raises(TrellisworkError, match=f"seed must be at most {LARGEST_SEED}; got 1000"):
            config(seed=10**30)


def test_a_value_of_thousands_of_digits_is_not_written_out() -> None:
    with pytest.raises(TrellisworkError, match="epochs must be at most 2147483647; got a huge int"):
        TrainingConfig(epochs=10**5000)
