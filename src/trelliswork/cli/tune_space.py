"""What `trelliswork tune` chooses from: the section `[space]` of a file, or a space around the model's own settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trelliswork.cli.config_file import MODEL_NAME, SPACE, known_settings
from trelliswork.cli.toml_file import TomlFile
from trelliswork.cli.train_network import plan_of
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.models.taggers.networks.presets import PRESETS
from trelliswork.training.search_space import Numbers, OneOf, Space

_RANGE = {"low": "float", "high": "float", "log": "bool", "step": "float"}
_NUMBERS = ("int", "float")
_NOT_CHOSEN = (MODEL_NAME, "seed", "threads", "vector_dim", "checkpoint_every", "features")
_EXAMPLE = "lr = {low = 1e-4, high = 1e-2, log = true} or encoder = ['lstm', 'gru']"


def read_space(path: str, model: str) -> Space | None:
    """The section [space] of a file of settings; None without one."""
    file = TomlFile(path)
    found = file.sections.get(SPACE)
    if found is None:
        return None
    if not isinstance(found, dict) or not found:
        raise file.error(f"expected settings to choose under [{SPACE}], got {found!r}; write {_EXAMPLE}", SPACE)
    known = _known(model)
    space = {}
    for name, value in found.items():
        file.require_known(name, known, f"setting of {model} to choose")
        try:
            space[name] = _choice(file, name, value, known[name])
        except DataError:
            raise
        except TrellisworkError as error:
            raise file.error(f"{name}: {error}", name) from error
    return space


def _known(model: str) -> dict[str, str]:
    sections = known_settings(model)
    found = {**sections["model"], **sections["training"]}
    return {name: kind for name, kind in found.items() if name not in _NOT_CHOSEN}


def _choice(file: TomlFile, name: str, value: Any, kind: str) -> Numbers | OneOf:
    if isinstance(value, list):
        return OneOf(tuple(file.checked(name, each, kind) for each in value))
    if not isinstance(value, dict) or kind not in _NUMBERS:
        ranges = f"a list of values{' or a range' if kind in _NUMBERS else ''}"
        raise file.error(f"expected {ranges} for {name}, got {value!r}; write {_EXAMPLE}", name)
    for key, part in value.items():
        file.require_known(key, _RANGE, f"part of the range of {name}", of=name)
        file.checked(key, part, kind if _RANGE[key] == "float" else _RANGE[key], of=name)
    if not {"low", "high"} <= set(value):
        raise file.error(f"expected low and high for {name}, got {value!r}; write {_EXAMPLE}", name)
    return Numbers(**value, whole=kind == "int")


def default_space(options: Mapping[str, Any]) -> Space:
    """A space around the settings of a model, whatever they are."""
    return _network_space(options) if options["model"] in PRESETS else _features_space(options)


def _network_space(options: Mapping[str, Any]) -> Space:
    plan = plan_of(options)
    network, learning = plan.network, plan.learning
    space: dict[str, Numbers | OneOf] = {
        "lr": Numbers(learning.learning_rate / 8, learning.learning_rate * 8, log=True),
        "batch_tokens": _around(learning.batch_tokens, 4),
        "dropout": Numbers(0.0, 0.7, step=0.05),
        "hidden_dropout": Numbers(0.0, 0.6, step=0.05),
        "hidden": _around(network.hidden, 3),
        "word_dim": _around(network.word_dim, 2),
        "l2": OneOf((0.0, 0.001, 0.01, 0.1)),
    }
    if plan.kind.__name__ == "Segmenter":
        space["segment_dim"] = _around(network.segment_dim, 2)
    return space


def _around(value: int, factor: int) -> Numbers:
    return Numbers(max(1, value // factor), value * factor, log=True, whole=True)


def _features_space(options: Mapping[str, Any]) -> Space:
    if options["model"] in ("hmm", "naive-bayes"):
        return {"smoothing": Numbers(0.001, 10.0, log=True)}
    algorithm, rare = options["algorithm"], {"min_freq": OneOf((0.0, 2.0, 3.0, 5.0))}
    c2 = {"c2": Numbers(0.01, 10.0, log=True)}
    if options["model"] == "hucrf":
        return {**c2, **rare, "hidden_units": _around(options["hidden_units"], 2)}
    if algorithm == "lbfgs":
        return {**c2, **rare} if options["samples"] else {"c1": Numbers(0.0, 1.0), **c2, **rare}
    if algorithm in ("sgd", "margin"):
        return {**c2, **rare}
    return {"max_iterations": Numbers(5, 100, log=True, whole=True), **rare}
