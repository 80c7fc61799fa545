"""Model folders that were damaged or tampered with are refused by a sentence, before they cost time or memory."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from tests.soon import soon
from trelliswork.data import Sentence, VectorSequence
from trelliswork.errors import ModelError
from trelliswork.models import (
    FeatureTagger,
    LearningConfig,
    MultiTagger,
    Segmenter,
    Tagger,
    TaggerConfig,
    VectorTagger,
    VectorTaggerConfig,
    load_tagger,
)

WEIGHTS = "weights.safetensors"
SENTENCES = [
    Sentence(("Ann", "sings", "."), ("B-NP", "B-VP", "O"), (("N", "V", "P"),)),
    Sentence(("The", "man", "left"), ("B-NP", "I-NP", "B-VP"), (("D", "N", "V"),)),
] * 2
SMALL = TaggerConfig(word_dim=6, affix_dim=3, column_dim=3, hidden=8, window=3, affix_min_count=1, segment_dim=6)


def _network(kind: Any, **settings: Any) -> Any:
    return kind.from_data(SENTENCES, TaggerConfig(**{**SMALL.to_dict(), **settings}))


def _vectors() -> VectorTagger:
    return VectorTagger.from_data([VectorSequence(torch.randn(3, 5), ("a", "b", "a"))], VectorTaggerConfig(hidden=6))


MODELS: dict[str, Callable[[], Any]] = {
    "window": lambda: _network(Tagger),
    "lstm": lambda: _network(Tagger, encoder="lstm", layers=2),
    "segmenter": lambda: _network(Segmenter),
    "tasks": lambda: MultiTagger.from_data(SENTENCES, ["pos", "chunk"], SMALL),
    "vectors": _vectors,
    "features": lambda: FeatureTagger.fit(SENTENCES, LearningConfig(max_iterations=5)),
    "hidden units": lambda: FeatureTagger.fit(SENTENCES, LearningConfig(hidden_units=3, max_iterations=2)),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("saved")
    for name, make in MODELS.items():
        make().save(folder / name)
    return {name: folder / name for name in MODELS}


@pytest.fixture
def copy_of(saved: dict[str, Path], tmp_path: Path) -> Callable[[str], Path]:
    return lambda name: Path(shutil.copytree(saved[name], tmp_path / name))


def change_config(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    config = json.loads((folder / "config.json").read_text())
    change(config)
    (folder / "config.json").write_text(json.dumps(config))


# Weights


@pytest.mark.parametrize("name", MODELS)
def test_every_bit_of_the_weights_counts(name: str, copy_of: Callable[[str], Path]) -> None:
    path = copy_of(name) / WEIGHTS
    whole = path.read_bytes()
    places = [(i, 1 << i % 8) for i in random.Random(0).sample(range(len(whole)), 30)]
    header = whole.index(b"sha256")
    for place, bit in [*places, (len(whole) - 1, 1), (header + 1, 1), (header + 12, 1)]:
        damaged = bytearray(whole)
        damaged[place] ^= bit
        path.write_bytes(damaged)
        with pytest.raises(ModelError, match=r"checksum does not match|truncated or not safetensors"):
            load_tagger(path.parent)
    path.write_bytes(whole)
    load_tagger(path.parent)


@pytest.mark.parametrize("name", MODELS)
def test_weights_without_a_checksum_load_as_before(name: str, copy_of: Callable[[str], Path]) -> None:
    path = copy_of(name) / WEIGHTS
    safetensors.torch.save_file(safetensors.torch.load_file(path), path)
    load_tagger(path.parent)


@pytest.mark.parametrize(("value", "found"), [(float("nan"), "NaN"), (float("-inf"), "infinite")])
@pytest.mark.parametrize("name", MODELS)
def test_weights_that_are_not_finite_are_named(
    name: str, value: float, found: str, copy_of: Callable[[str], Path]
) -> None:
    path = copy_of(name) / WEIGHTS
    tensors = safetensors.torch.load_file(path)
    broken = sorted(key for key, each in tensors.items() if each.is_floating_point() and each.numel())[-1]
    tensors[broken].view(-1)[-1] = value
    safetensors.torch.save_file(tensors, path)
    with pytest.raises(ModelError) as raised:
        load_tagger(path.parent)
    expected = f"{path}: expected finite weights, got {found} values in {broken!r}"
    assert str(raised.value) == f"{expected}; copy the model again or train again"


def test_one_damaged_model_of_an_ensemble(saved: dict[str, Path], tmp_path: Path) -> None:
    for seed in ("seed-0", "seed-1"):
        shutil.copytree(saved["window"], tmp_path / seed)
    load_tagger(tmp_path)
    path = tmp_path / "seed-1" / WEIGHTS
    path.write_bytes(path.read_bytes()[:-1] + b"\x55")
    with pytest.raises(ModelError, match=r"seed-1/weights\.safetensors: .*checksum does not match"):
        load_tagger(tmp_path)


# Sizes


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("window", {"hidden": 100_000_000}),
        ("window", {"window": 10**9}),
        ("window", {"word_dim": 10**9}),
        ("lstm", {"hidden": 20_000}),
        ("lstm", {"layers": 100_000}),
        ("lstm", {"hidden": 1, "layers": 100_000}),
        ("lstm", {"hidden": 10**30}),
        ("segmenter", {"max_length": 10**8}),
        ("tasks", {"hidden": 100_000_000}),
        ("vectors", {"hidden": 20_000}),
        ("vectors", {"layers": 100_000}),
        ("hidden units", {"hidden_units": 10**18}),
        ("features", {"latent": 10**6}),
    ],
)
def test_settings_are_compared_with_the_weights_first(
    name: str, settings: dict[str, int], copy_of: Callable[[str], Path]
) -> None:
    folder = copy_of(name)
    change_config(folder, lambda config: config["settings"].update(settings))
    with (
        soon(),
        pytest.raises(ModelError, match=r"config\.json and weights do not fit \(.+\); copy it again") as raised,
    ):
        load_tagger(folder)
    assert "memory" not in str(raised.value), "no memory is asked for"


def test_a_number_of_attributes_that_no_memory_holds(copy_of: Callable[[str], Path]) -> None:
    folder = copy_of("features")
    change_config(folder, lambda config: config.update(n_attributes=10**13))
    with soon(), pytest.raises(ModelError, match=r"do not fit \(the keys are not numbered"):
        load_tagger(folder)


# Settings


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"prefix_lengths": [3, 2, 4]}, "expected the vocabularies word, capitals, prefix3, prefix2, "),
        ({"prefix_lengths": [2, 3]}, "expected the vocabularies word, capitals, prefix2, prefix3, suffix2"),
        ({"prefix_lengths": [2, 3, 4.5]}, "expected a list of whole numbers for prefix_lengths, got"),
        ({"prefix_lengths": 3}, "expected a list of whole numbers for prefix_lengths, got 3"),
        ({"hidden": "8"}, "expected a whole number for hidden, got '8'"),
        ({"hidden": 10**30}, "expected a whole number of at most 64 bits for hidden, got 1000"),
        ({"lowercase": 1}, "expected true or false for lowercase, got 1"),
        ({"dropout": None}, "expected a number for dropout, got None"),
    ],
)
def test_settings_of_another_kind_or_order(
    settings: dict[str, Any], problem: str, copy_of: Callable[[str], Path]
) -> None:
    folder = copy_of("window")
    change_config(folder, lambda config: config["settings"].update(settings))
    with pytest.raises(ModelError) as raised:
        load_tagger(folder)
    assert str(raised.value).startswith(f"{folder}: config.json and weights do not fit ({problem}")


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("[2, 3, 1e999]", "the number 1e999 is too large"),
        ("[2, 3, NaN]", "NaN is not a number in JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("9" * 5_000, "a number of 5,000 digits is too large"),
        ('"\\ud800"', r"\ud800 is half of a surrogate pair, not a character"),
    ],
)
@pytest.mark.parametrize("file", ["config.json", "metrics.json"])
def test_json_of_a_model_that_nothing_can_use(
    file: str, value: str, problem: str, copy_of: Callable[[str], Path]
) -> None:
    path = copy_of("window") / file
    path.write_text(f'{{"kind": {value}}}')
    with pytest.raises(ModelError) as raised:
        load_tagger(path.parent)
    assert str(raised.value).startswith(f"{path}: truncated or not JSON ({problem}") and len(str(raised.value)) < 400


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
@pytest.mark.parametrize("file", ["config.json", "metrics.json", WEIGHTS, "attributes.txt"])
def test_a_pipe_in_the_place_of_a_file_is_refused_not_waited_for(file: str, copy_of: Callable[[str], Path]) -> None:
    path = copy_of("features") / file
    path.unlink()
    os.mkfifo(path)
    with soon(), pytest.raises(ModelError, match=f"{file}: expected a regular file, got a pipe or device"):
        load_tagger(path.parent)
