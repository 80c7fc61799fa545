"""Search spaces: for each setting a range of numbers or a few values.

>>> space = {"lr": Numbers(1e-4, 1e-2, log=True), "encoder": OneOf(("lstm", "gru"))}
>>> [str(each) for each in space.values()]
['0.0001 to 0.01, log', 'lstm or gru']
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trelliswork.errors import TrellisworkError


@dataclass(frozen=True)
class Numbers:
    """From `low` to `high`, evenly or in the logarithm; in steps, if given; whole numbers, if `whole`."""

    low: float
    high: float
    log: bool = False
    step: float | None = None
    whole: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise TrellisworkError(f"expected low below high, got {self.low:g} and {self.high:g}; exchange them")
        if self.log and self.low <= 0:
            raise TrellisworkError(f"expected low above 0 where log = true, got {self.low:g}; raise it")
        if self.step is not None and (self.log or self.step <= 0):
            raise TrellisworkError(f"expected a step above 0, and no log with it; got {self.step:g}; leave one out")

    def suggested(self, name: str, trial: Any) -> Any:
        """Return the value that Optuna's trial suggests."""
        if self.whole:
            return trial.suggest_int(name, int(self.low), int(self.high), log=self.log, step=int(self.step or 1))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Fixed parameter")  # the first one need not be a whole number of steps
            value = trial.suggest_float(name, self.low, self.high, log=self.log, step=self.step)
        return value if self.step is None else round(value, 10)  # 0.3, not 0.30000000000000004

    def label(self, value: Any) -> Any:
        """Return a value as Optuna keeps it."""
        return value

    def holds(self, value: Any) -> bool:
        """Return whether a value could be suggested."""
        return isinstance(value, int | float) and self.low <= value <= self.high

    def __str__(self) -> str:
        more = ", log" if self.log else f", step {self.step:g}" if self.step is not None else ""
        return f"{self.low:g} to {self.high:g}{more}"


@dataclass(frozen=True)
class OneOf:
    """One of some values."""

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise TrellisworkError("expected values to choose from, got none; name some or leave the setting out")

    def suggested(self, name: str, trial: Any) -> Any:
        """Return the value that Optuna's trial suggests."""
        labels = [self.label(value) for value in self.values]
        return self.values[labels.index(trial.suggest_categorical(name, labels))]

    def label(self, value: Any) -> Any:
        """Return a value as Optuna keeps it, which knows no lists."""
        return json.dumps(value) if isinstance(value, list | tuple) else value

    def holds(self, value: Any) -> bool:
        """Return whether a value could be suggested."""
        return value in self.values

    def __str__(self) -> str:
        return " or ".join(str(self.label(value)) for value in self.values)


@dataclass(frozen=True)
class Around:
    """A range around the value that a model has, from a `factor` below it to a `factor` above it."""

    factor: int

    def of(self, value: float) -> Numbers:
        """Return the range around this value; of whole numbers, if it is one."""
        if isinstance(value, int):
            return Numbers(max(1, value // self.factor), value * self.factor, log=True, whole=True)
        return Numbers(value / self.factor, value * self.factor, log=True)


Space = Mapping[str, Numbers | OneOf]
