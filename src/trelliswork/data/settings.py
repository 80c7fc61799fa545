"""A setting is one line: a field of a dataclass, with its help, its bounds and its choices.

>>> @dataclass(frozen=True)
... class Size(Settings):
...     hidden: int = setting(300, "Hidden units.", at_least=1)
>>> Size(hidden=0)
Traceback (most recent call last):
trelliswork.errors.TrellisworkError: hidden must be at least 1; got 0; leave it out for 300

The options of the command line, the keys of a TOML file, the checks, the default space of `tune` and docs/settings/
are made from these fields.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, asdict, dataclass, field, fields, replace
from functools import cache
from typing import ClassVar, Protocol, Self, TypeGuard, TypeVar

from trelliswork.data.json_values import Json, JsonObject
from trelliswork.errors import TrellisworkError

T = TypeVar("T")
LONGEST_SHOWN = 80  # characters of a value in a sentence
LARGEST = 2**31 - 1  # of sizes, counts and beams: the product of two of them is still an index of 64 bits
WIDEST = 5000  # of beams and lists of candidates that are filled whether that is needed or not
LARGEST_SEED = 2**64 - 1  # of torch and numpy
_WHOLE = (-(2**63), LARGEST_SEED + 1)


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and _WHOLE[0] <= value < _WHOLE[1]


def _is_number(value: object) -> bool:
    return isinstance(value, float) or _is_whole(value)


def _is_column(value: object) -> bool:
    return (_is_whole(value) and value >= 1) or (isinstance(value, str) and value != "")


def _list_of(fits: Fits) -> Fits:
    return lambda value: isinstance(value, list | tuple) and all(map(fits, value))


Fits = Callable[[object], bool]
_CHECKS: dict[str, tuple[str, Fits]] = {
    "int": ("a whole number", _is_whole),
    "float": ("a number", _is_number),
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "tuple[int, ...]": ("a list of whole numbers", _list_of(_is_whole)),
    "int | str": ("a number from 1 or a name", _is_column),
    "tuple[int | str, ...]": ("a list of numbers from 1 or names", _list_of(_is_column)),
    "tuple[str, ...]": ("a list of texts", _list_of(lambda value: isinstance(value, str))),
}
_WITH_WHOLE = ("int", "tuple[int, ...]", "int | str", "tuple[int | str, ...]")
_TEXT: tuple[str, Fits] = ("a text in quotes", lambda value: isinstance(value, str))


def kinds_of(config: type) -> Mapping[str, str]:
    """Return the kind of each setting of a dataclass."""
    return _kinds_of(config)


@cache
def _kinds_of(config: type) -> Mapping[str, str]:
    return {each.name: str(each.type).removesuffix(" | None") for each in fields(config)}


def keys_of(config: type) -> dict[str, str]:
    """Return the kind of each setting, by the name that it has in TOML files."""
    kinds = kinds_of(config)
    return {
        about.option or each.name: kinds[each.name] for each, about in settings_in(config) if about.option is not None
    }


def settings_given(options: Mapping[str, Json], config: type) -> JsonObject:
    """Return the settings of a dataclass that options have, by the names of its fields."""
    named = {each.name: about.option or each.name for each, about in settings_in(config) if about.option is not None}
    return {name: options[key] for name, key in named.items() if options.get(key) is not None}


def options_of(config: Settings) -> JsonObject:
    """Return all settings of a dataclass, by the names that they have on the command line and in TOML files."""
    named = [(each.name, about) for each, about in settings_in(type(config)) if about.option is not None]
    return {about.option or name: getattr(config, name) for name, about in named}


def misfit(name: str, value: Json, kind: str) -> str:
    """Return what is wrong with the value of a setting; empty if it is of its kind.

    Args:
        name: The name of the setting.
        value: Its value.
        kind: Its type as the dataclass writes it, such as "int".

    Returns:
        What was expected and what was found, or an empty text.

    >>> misfit("layers", 3, "int"), misfit("causal", 3, "bool")
    ('', 'expected true or false for causal, got 3')
    """
    expected, fits = _CHECKS.get(kind, _TEXT)
    if fits(value):
        return ""
    limit = " of at most 64 bits" if type(value) is int and kind in ("int", "float") else ""
    return f"expected {expected}{limit} for {name}, got {_shown(value)}"


def _shown(value: Json) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # more digits than Python writes, deeper lists than its stack
        return f"a huge {type(value).__name__}"
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."


@dataclass(frozen=True)
class About:
    """Metadata of a setting in addition to its name, kind and default.

    `at_most` is the limit of whole numbers that have no other one, alone or in a list.
    If it is not left at its default, the other settings must have the values of `goes_with`.
    `option` is its name on the command line and in TOML files; it is empty for a setting of TOML files alone, and None
    for one that something else decides. `off` is a further name that switches it off.
    `default_text` and `metavar` are what --help shows. `search` is where `tune`
    looks: numbers, values, or a range around the value that the model has; it is left out unless the
    other settings have the values of `searched_with`.
    """

    help: str = ""
    at_least: float | None = None
    above: float | None = None
    below: float | None = None
    at_most: int = LARGEST
    choices: tuple[Json, ...] = ()
    option: str | None = ""
    option_default: Json = None
    metavar: str | None = None
    default_text: str = ""
    off: str = ""
    search: Numbers | OneOf | Around | None = None
    goes_with: Mapping[str, tuple[Json, ...]] = field(default_factory=dict)
    searched_with: Mapping[str, tuple[Json, ...]] = field(default_factory=dict)

    @property
    def bounds(self) -> str:
        """The values that it may have, in words.

        >>> About(at_least=0, below=1).bounds, About(above=0).bounds, About(choices=("cnn", "lstm")).bounds
        ('lie in [0, 1)', 'be above 0 and finite', 'be one of cnn, lstm')
        """
        if self.choices and not isinstance(self.choices[0], str):
            return f"be {' or '.join(map(str, self.choices))}"
        if self.choices:
            return f"be one of {', '.join(self.choices)}"
        if self.below is not None and self.at_least is not None and self.below - self.at_least > 1:
            return f"lie in {self.at_least:g}..{self.below - 1:g}"
        if self.below is not None:
            return f"lie in [{self.at_least:g}, {self.below:g})"
        return f"be above {self.above:g} and finite" if self.above is not None else f"be at least {self.at_least:g}"

    @property
    def bounds_given(self) -> bool:
        """True if some values are refused."""
        return bool(self.choices) or (self.at_least, self.above, self.below) != (None, None, None)

    def problem(self, value: Json) -> bool:
        """Return whether a value lies outside the bounds."""
        if self.choices:
            return value not in self.choices
        low = self.at_least is not None and not value >= self.at_least
        high = self.below is not None and not value < self.below
        return low or high or (self.above is not None and not value > self.above)

    def too_large(self, value: Json) -> bool:
        """Return whether a whole number, or one of a list, is above `at_most`."""
        parts = value if isinstance(value, list | tuple) else (value,)
        return any(isinstance(part, int) and part > self.at_most for part in parts)

    @property
    def text(self) -> str:
        """The help with all choices."""
        if not self.choices or not isinstance(self.choices[0], str):
            return self.help
        *first, last = self.choices
        return f"{self.help}{': ' if self.help else ''}{', '.join(first)} or {last}."


def setting(default: T, help: str = "", *, option: str | bool | None = False, **about: Json) -> T:
    """Return a field of settings; `option` is True for an option of the same name, the rest as in `About`.

    Args:
        default: The default value.
        help: The sentence that --help shows.
        option: True for an option of the same name, or another name; False for a setting of TOML files alone.
        about: Further fields of `About`.

    Returns:
        A field of a dataclass.
    """
    name = ("=" if option else "") if isinstance(option, bool) else option
    return field(default=default, metadata={"about": About(help, option=name, **about)})


def settings_in(config: type) -> tuple[tuple[Field[object], About], ...]:
    """Return the fields of a dataclass of settings, and what is known of each."""
    return _settings_in(config)


@cache
def _settings_in(config: type) -> tuple[tuple[Field[object], About], ...]:
    return tuple((each, _about(each)) for each in fields(config))


def _about(each: Field[object]) -> About:
    about: About = each.metadata.get("about", About())
    return replace(about, option=each.name) if about.option == "=" else about


class Settings:
    """The base of dataclasses of settings: what lies outside the bounds is refused.

    `PANEL` is the title of their options in --help, and `ERROR` what a bad value raises.
    """

    PANEL: ClassVar[str] = ""
    BY_MODEL: ClassVar[bool] = False  # whether models have defaults of their own
    ERROR: ClassVar[type[TrellisworkError]] = TrellisworkError

    def __post_init__(self) -> None:
        kinds = kinds_of(type(self))
        for each, about in settings_in(type(self)):
            value, optional = getattr(self, each.name), _is_optional(each)
            if value is None and optional:
                continue
            if isinstance(value, float) and not math.isfinite(value):
                raise self.ERROR(f"{each.name} must be a finite number; got {value}")
            bounds = _broken_bounds(about, value, kinds[each.name])
            if bounds:
                limit = ", or None for no limit" if optional and not about.default_text else ""
                default = about.default_text or each.default
                fix = "" if default is None else f"; leave it out for {default}"
                raise self.ERROR(f"{each.name} must {bounds}{limit}; got {_shown(value)}{fix}")

    def to_dict(self) -> JsonObject:
        """Return plain values, fit for JSON."""
        return asdict(self)  # type: ignore[call-overload]

    @classmethod
    def from_dict(cls, settings: Mapping[str, Json]) -> Self:
        """Make settings of what `to_dict` gave; an unknown setting, or one of another type, is an error."""
        check_settings(cls, settings)
        lists = {name: tuple(value) for name, value in settings.items() if isinstance(value, list)}
        return cls(**{**settings, **lists})


def _broken_bounds(about: About, value: Json, kind: str) -> str:
    """Return the bounds that a value does not keep, in words; empty if it keeps all."""
    if about.bounds_given and about.problem(value):
        return about.bounds
    return f"be at most {about.at_most}" if kind in _WITH_WHOLE and about.too_large(value) else ""


def _is_optional(each: Field[object]) -> bool:
    return str(each.type).endswith(" | None")


def check_settings(config: type, settings: Mapping[str, Json]) -> None:
    """Refuse stored settings that are unknown, or of another kind than the dataclass says."""
    if not isinstance(settings, Mapping):
        raise TrellisworkError(f"expected settings of {config.__name__} by their names; got {_shown(settings)}")
    unknown = sorted(set(settings) - set(kinds_of(config)))
    if unknown:
        raise TrellisworkError(f"expected settings of {config.__name__}; got {', '.join(unknown)}; remove them")
    optional = {each.name for each in fields(config) if _is_optional(each)}
    for name, value in settings.items():
        if value is None and name in optional:
            continue
        if problem := misfit(name, value, kinds_of(config)[name]):
            raise TrellisworkError(problem)


# Search spaces: for each setting a range of numbers or a few values.


class Suggesting(Protocol):
    """A trial of Optuna."""

    def suggest_int(self, name: str, low: int, high: int, *, step: int, log: bool) -> int:
        """Return a whole number.

        Args:
            name: Name of the setting.
            low: Lowest value.
            high: Highest value.
            step: Distance of values that are tried.
            log: Whether small values are tried as often as large ones.

        Returns:
            The value to try.
        """

    def suggest_float(self, name: str, low: float, high: float, *, step: float | None, log: bool) -> float:
        """Return a number.

        Args:
            name: Name of the setting.
            low: Lowest value.
            high: Highest value.
            step: Distance of values that are tried; None for any.
            log: Whether small values are tried as often as large ones.

        Returns:
            The value to try.
        """

    def suggest_categorical(self, name: str, choices: Sequence[Json]) -> Json:
        """Return one of some values."""


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
            raise TrellisworkError(f"expected low below high, got {self.low:g} and {self.high:g}; swap them")
        if self.log and self.low <= 0:
            raise TrellisworkError(f"expected low above 0 where log = true, got {self.low:g}; raise it")
        if self.step is not None and (self.log or self.step <= 0):
            raise TrellisworkError(f"expected a step above 0, and no log with it; got {self.step:g}; leave one out")

    def suggest(self, name: str, trial: Suggesting) -> Json:
        """Return the value that Optuna's trial suggests."""
        if self.whole:
            return trial.suggest_int(name, int(self.low), int(self.high), log=self.log, step=int(self.step or 1))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Fixed parameter")  # the first one need not be a whole number of steps
            value = trial.suggest_float(name, self.low, self.high, log=self.log, step=self.step)
        return value if self.step is None else round(value, 10)  # 0.3, not 0.30000000000000004

    def label(self, value: Json) -> Json:
        """Return a value as Optuna keeps it."""
        return value

    def holds(self, value: Json) -> bool:
        """Return whether a value could be suggested."""
        return isinstance(value, int | float) and self.low <= value <= self.high

    def __str__(self) -> str:
        more = ", log" if self.log else f", step {self.step:g}" if self.step is not None else ""
        return f"{self.low:g} to {self.high:g}{more}"


@dataclass(frozen=True)
class OneOf:
    """One of some values."""

    values: tuple[Json, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise TrellisworkError("expected values to choose from, got none; name some or leave the setting out")

    def suggest(self, name: str, trial: Suggesting) -> Json:
        """Return the value that Optuna's trial suggests."""
        labels = [self.label(value) for value in self.values]
        return self.values[labels.index(trial.suggest_categorical(name, labels))]

    def label(self, value: Json) -> Json:
        """Return a value as Optuna keeps it, which knows no lists."""
        return json.dumps(value) if isinstance(value, list | tuple) else value

    def holds(self, value: Json) -> bool:
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
