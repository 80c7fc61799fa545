"""The encoders and scorers that a network may have: one line for each, with the settings that it reads.

Encoders of other packages are found by their entry points.

A class is imported when a network is built, so that settings are read and shown without torch.
"""

from __future__ import annotations

import inspect
from dataclasses import fields
from functools import cached_property
from typing import Any

from trelliswork.errors import TrellisworkError
from trelliswork.lazy import named
from trelliswork.plugins import Plugin, plugins_of


class Part:
    """A class of `trelliswork.nn`, and the settings that it is made with, by the names of its arguments."""

    def __init__(self, home: str, settings: str = "", **renamed: str) -> None:
        self.home = home
        self.settings = {**{name: name for name in settings.split()}, **renamed}

    def make(self, config: Any, *sizes: int, **more: int) -> Any:
        """Return an object of the class, with the values of its settings."""
        arguments = {argument: getattr(config, setting) for argument, setting in self.settings.items()}
        return named(f"trelliswork.nn.{self.home}")(*sizes, **arguments, **more)


# Classes by name, made with the width of what goes in. The words are the settings that are handed on; where argument
# and setting have different names, `argument="setting"`.
ENCODERS = {
    "window": Part("encoders:WindowEncoder", "window hidden initialization"),
    "sentence": Part("encoders:SentenceConvolution", "window hidden initialization"),
    "lstm": Part("encoders:RecurrentEncoder", "hidden layers", cell="encoder", dropout="hidden_dropout"),
    "gru": Part("encoders:RecurrentEncoder", "hidden layers", cell="encoder", dropout="hidden_dropout"),
    "transformer": Part("encoders:TransformerEncoder", "hidden layers heads", dropout="hidden_dropout"),
    "dilated": Part("encoders:DilatedConvolution", "hidden layers width causal", dropout="hidden_dropout"),
    "deep": Part("encoders:DeepEncoder", "window hidden layers", dropout="hidden_dropout"),
    "none": Part("encoders:IdentityEncoder"),
}


class ForeignPart(Part):
    """An encoder of another package, made with the settings that its arguments are named after.

    Its class is imported when its settings are asked for.
    """

    def __init__(self, plugin: Plugin) -> None:
        self.plugin = plugin

    @cached_property
    def _class(self) -> Any:
        cls = self.plugin.load()
        if not (isinstance(cls, type) and issubclass(cls, named("trelliswork.nn.encoders:TokenEncoder"))):
            problem = f"expected a subclass of trelliswork.nn.encoders.TokenEncoder for {self.plugin.name!r}"
            raise TrellisworkError(f"{problem}, got {cls!r}; {self.plugin.fix}")
        return cls

    @cached_property
    def settings(self) -> dict[str, str]:  # type: ignore[override]
        """The settings that it is made with, by the names of its keyword arguments; `dropout` is `hidden_dropout`."""
        known = {field.name for field in fields(named("trelliswork.models.networks.config:NetworkConfig"))}
        read = {}
        for name, argument in inspect.signature(self._class).parameters.items():
            if argument.kind is not argument.KEYWORD_ONLY:
                continue
            if name not in known and argument.default is argument.empty:
                problem = f"the encoder {self.plugin.name!r} asks for {name!r}, which is not a setting of networks"
                raise TrellisworkError(f"{problem}; give it a default, or one of the names {', '.join(sorted(known))}")
            if name in known:
                read[name] = "hidden_dropout" if name == "dropout" else name
        return read

    def make(self, config: Any, *sizes: int, **more: int) -> Any:
        arguments = {argument: getattr(config, setting) for argument, setting in self.settings.items()}
        return self._class(*sizes, **arguments, **more)


def encoder_names() -> tuple[str, ...]:
    """Return all encoders, those of other packages too."""
    return (*ENCODERS, *(name for name in plugins_of("encoders") if name not in ENCODERS))


def encoder_part(name: str) -> Part:
    """Return the encoder of a name; those of the library come first."""
    return ENCODERS[name] if name in ENCODERS else ForeignPart(plugins_of("encoders")[name])


class Readers(tuple[str, ...]):
    """The encoders that read a setting. One of another package is asked when it is looked for."""

    setting: str

    def __contains__(self, name: object) -> bool:
        if name in ENCODERS or name not in plugins_of("encoders"):
            return super().__contains__(name)
        return self.setting in encoder_part(str(name)).settings.values()


def encoders_with(name: str) -> dict[str, tuple[str, ...]]:
    """Return the encoders that read a setting, as `goes_with` has them."""
    readers = Readers(encoder for encoder, part in ENCODERS.items() if name in part.settings.values())
    readers.setting = name
    return {"encoder": readers}


# Made with the number of characters.
CHARACTERS = {
    "none": None,
    "cnn": Part("inputs:CharacterCNN", dim="character_dim", hidden="character_hidden"),
    "lstm": Part("inputs:CharacterLSTM", dim="character_dim", hidden="character_hidden"),
}
