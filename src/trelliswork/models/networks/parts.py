"""The encoders and scorers that a network may have: one line for each, with the settings that it reads.

A class is imported when a network is built, so that settings are read and shown without torch.
"""

from __future__ import annotations

from typing import Any

from trelliswork.lazy import named


class Part:
    """A class of `trelliswork.nn`, and the settings that it is made with, by the names of its arguments."""

    def __init__(self, home: str, settings: str = "", **renamed: str) -> None:
        self.home = home
        self.settings = {**{name: name for name in settings.split()}, **renamed}

    def make(self, config: Any, *sizes: int, **more: int) -> Any:
        """An object of the class, with the values of its settings."""
        arguments = {argument: getattr(config, setting) for argument, setting in self.settings.items()}
        return named(f"trelliswork.nn.{self.home}")(*sizes, **arguments, **more)


# Made with the width of what goes in.
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


def encoders_with(name: str) -> dict[str, tuple[str, ...]]:
    """The encoders that read a setting, as `goes_with` has them."""
    return {"encoder": tuple(encoder for encoder, part in ENCODERS.items() if name in part.settings.values())}


# Made with the number of characters.
CHARACTERS = {
    "none": None,
    "cnn": Part("inputs:CharacterCNN", dim="character_dim", hidden="character_hidden"),
    "lstm": Part("inputs:CharacterLSTM", dim="character_dim", hidden="character_hidden"),
}
