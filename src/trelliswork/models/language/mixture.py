"""Mixtures of language models, linear or log-linear, with a continuous cache; weights are fitted to a text.

Grave, Joulin and Usunier (2017), Improving neural language models with a continuous cache; Klakow (1998), Log-linear
interpolation of language models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from trelliswork.data import Choices
from trelliswork.data.settings import options_of, settings_given
from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.logs import count
from trelliswork.models.base import Description, Scores
from trelliswork.models.export_folder import model_card
from trelliswork.models.language.base import LanguageModel
from trelliswork.models.language.config import MixtureConfig, TextFiles
from trelliswork.models.language.corpus import STOP, UNKNOWN
from trelliswork.models.language.network import NeuralLanguageModel, streams_for
from trelliswork.models.loading import load, with_kept
from trelliswork.models.recipe import CountingRecipe, CountingResult, Material, Note, Options
from trelliswork.models.storage import StoredModel, read_model, write_model
from trelliswork.runtime.arrays import Array, Float, Int
from trelliswork.training.exclusive import PARTS

FLATNESS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.8)  # of the cache, of which the best is taken
BLOCK = 512  # units whose caches are compared at once
ROUNDS, ENOUGH = 1000, 1e-9  # of EM, and the gain in log p of a unit at which it stops
LEAST = -100.0  # log p of what is impossible, where logarithms are mixed
FITTED = 1 << 24  # probabilities that log-linear weights are fitted to


class Parts(NamedTuple):
    """Language models, each of which is saved in a folder of its own."""

    models: Sequence[LanguageModel]

    def save(self, directory: Path) -> None:
        """Write the folders of all models."""
        directory.mkdir()
        for i, model in enumerate(self.models):
            model.save(directory / str(i))


class Mixture(LanguageModel):
    """Σ_k w_k p_k, the cache being the last of them, or Π_k p_k^w_k / Z.

    Args:
        config: Settings.
        models: Language models of the same units. Text is read as the first one reads it.
        weights: The weight of each model, and of the cache.
        flatness: θ of the cache.
    """

    KIND: ClassVar[str] = "Mixture"

    def __init__(
        self, config: MixtureConfig, models: Sequence[LanguageModel], weights: Array, flatness: float = 0.0
    ) -> None:
        self.config, self.models, self.weights, self.flatness = config, list(models), np.asarray(weights), flatness
        first = self.models[0]
        self.format, self.names, self.counts, self.tokeniser = first.format, first.names, first.counts, first.tokeniser
        self.metrics: Scores = {}
        for model in self.models:
            if model.format.units != first.format.units or set(model.names) != set(first.names):
                sizes = " and ".join(count(len(each.names), "unit") for each in (first, model))
                raise TrellisworkError(f"expected models of the same units, got {sizes}; train them on the same text")
        if config.cache and not isinstance(first, NeuralLanguageModel):
            problem = f"a cache compares states of a network, got a {type(first).__name__} as the first model"
            raise TrellisworkError(f"{problem}; name a network first, or leave out --cache")
        numbers = [{name: i for i, name in enumerate(model.names)} for model in self.models]
        self._orders = [np.array([*(each[name] for name in self.names), len(self.names)]) for each in numbers]

    @classmethod
    def fit(
        cls, text: Sequence[Sequence[str]], models: Sequence[LanguageModel], config: MixtureConfig | None = None
    ) -> Self:
        """Return the mixture whose weights, and flatness of the cache, make a text most probable.

        Args:
            text: Sentences of units, consecutive sentences of a text.
            models: Language models of the same units.
            config: Settings.
        """
        config = config or MixtureConfig()
        n = len(models) + bool(config.cache)
        mixture = cls(config, models, np.full(n, 1 / n))
        if config.mixing == "log-linear":
            mixture.weights = mixture._log_linear_weights(text)
            return mixture
        logs, best = mixture._of_parts(text, whole=True), -np.inf
        text_states = mixture._cached_states(text) if config.cache else None
        for flatness in FLATNESS if text_states is not None else (0.0,):
            cached = [] if text_states is None else [cache_log_probs(*text_states, config.cache, flatness)]
            weights, log_prob = mixture_weights(np.stack([*logs, *cached]))
            if log_prob > best:
                best, mixture.weights, mixture.flatness = log_prob, weights, flatness
        return mixture

    # Answers

    def log_probs(self, sentences: Sequence[Sequence[str]]) -> list[Array]:
        if self.config.mixing == "log-linear":
            return [self._log_linear(units) for units in sentences]
        logs = self._of_parts(sentences, whole=False)
        if self.config.cache:
            states = (self._cached_states([units]) for units in sentences)
            cached = [cache_log_probs(*each, self.config.cache, self.flatness) for each in states]
            logs.append(np.concatenate([np.zeros(0), *cached]))
        return self._mixed(sentences, logs)

    def text_log_probs(self, sentences: Sequence[Sequence[str]]) -> list[Array]:
        if self.config.mixing == "log-linear":
            return self.log_probs(sentences)
        logs = self._of_parts(sentences, whole=True)
        if self.config.cache:
            logs.append(cache_log_probs(*self._cached_states(sentences), self.config.cache, self.flatness))
        return self._mixed(sentences, logs)

    def _of_parts(self, sentences: Sequence[Sequence[str]], *, whole: bool) -> list[Array]:
        """Return what each model says of all units, of a whole text or of sentences alone."""
        every = (model.text_log_probs(sentences) if whole else model.log_probs(sentences) for model in self.models)
        return [np.concatenate([np.zeros(0), *logs]) for logs in every]

    def _mixed(self, sentences: Sequence[Sequence[str]], logs: Sequence[Array]) -> list[Array]:
        flat = linear_mixture(np.stack(logs), self.weights)
        return [flat[low:high] for low, high in pairwise([0, *accumulate(len(units) + 1 for units in sentences)])]

    def next_log_probs(self, prefix: Sequence[str]) -> Array:
        logs = [model.next_log_probs(prefix)[order] for model, order in zip(self.models, self._orders, strict=True)]
        if self.config.mixing == "log-linear":
            return log_linear_mixture(np.stack(logs), self.weights)
        if self.config.cache:
            logs.append(self._next_of_cache(prefix))
        return linear_mixture(np.stack(logs), self.weights)

    def _cached_states(self, sentences: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """Return the vector that each unit of a text is predicted by, and the units."""
        network = self.models[0]
        assert isinstance(network, NeuralLanguageModel)
        text = torch.tensor(list(chain.from_iterable(network.numbers(units) for units in sentences)))
        return network.hidden_states(text, streams_for(len(text)) if len(sentences) > 1 else 1), text

    def _next_of_cache(self, prefix: Sequence[str]) -> Array:
        """Return what the cache says of every unit and the end after a prefix; nan if it is empty."""
        states, text = self._cached_states([prefix])
        known, after = states[:-1][-self.config.cache :], text[:-1][-self.config.cache :]
        shares = torch.zeros(len(self.names) + 1, dtype=torch.float64)
        if len(known):
            shares.index_add_(0, after, (self.flatness * (known @ states[-1])).double().softmax(0).cpu())
        return shares.log().numpy() if len(known) else np.full(len(shares), np.nan)

    def _log_linear(self, units: Sequence[str]) -> Array:
        """Return log p of the units of a sentence and of its end."""
        network = {name: i for i, name in enumerate(self.names)}
        unknown = network.get(UNKNOWN, -1)
        at = [*(network.get(unit, unknown) for unit in units), len(self.names)]
        return np.array([self.next_log_probs(units[:i])[number] for i, number in enumerate(at)])

    def _log_linear_weights(self, text: Sequence[Sequence[str]]) -> Array:
        """Return the weights with the least -log p, which is convex in them, on the first units of a text."""
        number = {name: i for i, name in enumerate(self.names)}
        most = max(1, FITTED // (len(self.models) * (len(self.names) + 1)))
        rows, gold = [], []
        for units in text:
            for i, unit in enumerate((*units, STOP)):
                logs = [m.next_log_probs(units[:i])[order] for m, order in zip(self.models, self._orders, strict=True)]
                rows.append(np.maximum(np.stack(logs), LEAST).astype(np.float32))
                gold.append(number.get(unit, number.get(UNKNOWN, -1)) if i < len(units) else len(number))
            if len(rows) >= most:
                break
        scores = np.stack(rows)  # [n, models, units]
        right = np.take_along_axis(scores, np.array(gold)[:, None, None], 2)[..., 0]

        def loss(weights: Array) -> tuple[float, Array]:
            mixed = np.einsum("k,nkv->nv", weights, scores)
            top = mixed.max(1, keepdims=True)
            odds = np.exp(mixed - top)
            total = odds.sum(1, keepdims=True)
            expected = np.einsum("nv,nkv->k", odds / total, scores)
            return float((np.log(total) + top).sum() - (right @ weights).sum()), expected - right.sum(0)

        weights: Array = minimize(loss, np.full(len(self.models), 1 / len(self.models)), jac=True).x
        return weights

    # What it is

    @property
    def n_parameters(self) -> int:
        return sum(model.n_parameters for model in self.models) + len(self.weights)

    @property
    def size(self) -> str:
        shares = ", ".join(f"{weight:.3f}" for weight in self.weights.tolist())
        return f"{count(len(self.weights), 'part')} with weights {shares}"

    def describe(self, top: int = 20) -> Description:
        weights = zip(self.models, self.weights.tolist(), strict=False)  # the last one may be that of the cache
        rows = {f"{i}: {model.describe(0).kind}": f"{weight:.4f}" for i, (model, weight) in enumerate(weights, 1)}
        if self.config.cache:
            rows[f"cache of {self.config.cache:,} units, flatness {self.flatness:g}"] = f"{self.weights[-1]:.4f}"
        labels = {self.format.units: f"{len(self.names):,}"}
        kind = f"{self.config.mixing} mixture of language models over {self.format.units}"
        return Description(kind, labels, {"weights": self.weights.tolist()}, self.config.to_dict(), [("weights", rows)])

    # Disk

    def save(self, directory: str | Path, *, extra: Mapping[str, str] | None = None) -> None:
        """Write the model folder, with the models that are mixed."""
        config = {"settings": self.config.to_dict(), "flatness": self.flatness, "models": len(self.models)}
        kept = {**self.kept_models(), PARTS: Parts(self.models)}
        weights, card = {"weights": self.weights}, model_card(self)
        write_model(directory, StoredModel(self.KIND, config, weights, self.metrics, card, dict(extra or {}), kept))

    @classmethod
    def load(cls, directory: str | Path, *, features: object = None) -> Self:
        """Read a model folder; what is missing or does not fit is a `ModelError`."""
        stored = read_model(directory, cls.KIND)
        try:
            config, n = MixtureConfig.from_dict(stored.config["settings"]), int(stored.config["models"])
            if len(stored.weights["weights"]) != n + bool(config.cache):
                raise ValueError(f"{len(stored.weights['weights'])} weights of {count(n, 'model')}")
            models = language_models([Path(directory) / PARTS / str(i) for i in range(n)])
            model = cls(config, models, stored.weights["weights"], float(stored.config["flatness"]))
        except (KeyError, TypeError, ValueError, IndexError, TrellisworkError) as error:
            raise ModelError(f"{directory}: {error}: what is in it does not fit together; copy it again") from error
        model.metrics = dict(stored.metrics)
        model = with_kept(model, directory)
        model.format = replace(model.format, tokeniser=model.tokeniser)
        return model


# Formulas


def linear_mixture(logs: Float[Array, "k n"], weights: Float[Array, " k"]) -> Float[Array, " n"]:
    """Return ln Σ_k w_k p_k; where a part is nan, it says nothing, and the others share its weight.

    >>> np.exp(linear_mixture(np.log([[0.5, 0.2], [0.1, np.nan]]), np.array([0.75, 0.25]))).round(3).tolist()
    [0.4, 0.2]
    """
    silent = np.isnan(logs)
    with np.errstate(divide="ignore"):
        parts = np.where(silent, -np.inf, logs) + np.log(weights)[:, None]
        shares = np.log(np.where(silent, 0.0, weights[:, None]).sum(0))
    mixed: Array = np.logaddexp.reduce(parts, axis=0) - shares  # [S4.376]
    return mixed


def mixture_weights(logs: Float[Array, "k n"]) -> tuple[Float[Array, " k"], float]:
    """Return the weights of a linear mixture with the greatest mean log p, found by EM, and that mean.

    >>> mixture_weights(np.log([[0.5, 0.5, 0.1], [0.2, 0.2, 0.6]]))[0].round(2).tolist()
    [0.58, 0.42]
    """
    weights, best = np.full(len(logs), 1 / len(logs)), -np.inf
    silent = np.isnan(logs)
    for _ in range(ROUNDS):
        mixed = linear_mixture(logs, weights)
        mean = float(mixed.mean())
        if not mean > best + ENOUGH:
            break
        best = mean
        with np.errstate(divide="ignore"):
            own = np.exp(np.where(silent, -np.inf, logs) + np.log(weights)[:, None] - mixed)
        speaking = np.where(silent, 0.0, weights[:, None]).sum(0)
        counts = (own * speaking + np.where(silent, weights[:, None], 0.0)).sum(1)
        weights = counts / counts.sum()
    return weights, best


def log_linear_mixture(logs: Float[Array, "k v"], weights: Float[Array, " k"]) -> Float[Array, " v"]:
    """Return ln (Π_k p_k^w_k / Z) over all units."""
    mixed = weights @ np.maximum(logs, LEAST)
    normalised: Array = mixed - np.logaddexp.reduce(mixed)
    return normalised


def cache_log_probs(
    states: Float[Tensor, "n d"], units: Int[Tensor, " n"], size: int, flatness: float
) -> Float[Array, " n"]:
    """Return ln p_cache of each unit of a text, nan for the first, before which the cache is empty.

    p(w_t) is the share of the earlier places i = t - size .. t - 1 with the same unit, each of which has the weight
    exp(θ h_t · h_i).

    Args:
        states: h_t, the vector that unit t is predicted by.
        units: The units of the text.
        size: The number of units in the cache.
        flatness: θ.

    >>> text = torch.tensor([3, 5, 3, 3])
    >>> np.exp(cache_log_probs(torch.zeros(4, 2), text, 2, 1.0)).round(2).tolist()
    [nan, 0.0, 0.5, 0.5]
    """
    logs = []
    for start in range(0, len(units), BLOCK):
        first, last = max(0, start - size), min(start + BLOCK, len(units))
        now, before = torch.arange(start, last), torch.arange(first, last)
        age = now[:, None] - before
        scores = (flatness * (states[start:last] @ states[first:last].T)).cpu()  # [S4.374-375]
        scores = scores.masked_fill((age < 1) | (age > size), -torch.inf)
        same = units[start:last, None] == units[first:last]
        logs.append(scores.masked_fill(~same, -torch.inf).logsumexp(1) - scores.logsumexp(1))
    values: Array = torch.cat([torch.zeros(0), *logs]).double().numpy()
    return values


# Training


def language_models(folders: Sequence[str | Path]) -> list[LanguageModel]:
    """Return the models in some folders; one that is no language model is an error."""
    models = [load(folder) for folder in folders]
    for folder, model in zip(folders, models, strict=True):
        if not isinstance(model, LanguageModel):
            raise TrellisworkError(f"{folder}: expected a language model, got a {type(model).__name__}")
    return models  # type: ignore[return-value]


class MixtureRecipe(CountingRecipe):
    """The weights of a mixture, fitted to a text that the models have not seen."""

    what, result = "weights are", CountingResult

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.files = TextFiles(**settings_given(options, TextFiles))
        folders = [each for each in self.config.parts.split(",") if each]
        if not folders:
            raise TrellisworkError("a mixture needs language models; name their folders: --parts DIR,DIR")
        self.models = language_models(folders)

    def settings(self) -> dict[str, object]:
        return super().settings() | options_of(self.files)

    def layout(self, choices: Choices) -> Choices:
        return replace(choices, pairs=self.models[0].format)

    def begin(self, material: Material, note: Note) -> None:
        files: Sequence[str] = material.train  # type: ignore[assignment]
        reading = self.models[0].format
        text = [reading.cut(sentence) for file in files for sentence in reading.sentences(file)]
        if not text:
            raise TrellisworkError(f"{files[0]}: expected text to fit weights to, got none; the file is empty")
        about = {**material.about, "train_sentences": len(text), "train_tokens": sum(map(len, text))}
        note(f"train: {count(len(text), 'sentence')}, {about['train_tokens']:,} {reading.units}")
        self.text, self._note = text, note
        self.material = material._replace(about=about, tokeniser=self.models[0].tokeniser)

    def fitted(self) -> tuple[Mixture, Scores]:
        model = Mixture.fit(self.text, self.models, self.config)
        return model, model.evaluate(self.material.dev) if self.material.dev else {}
