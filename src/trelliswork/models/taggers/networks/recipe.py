"""`trelliswork train` with a tagger that is a network, which may begin with the weights of a trained one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trelliswork.errors import TrellisworkError
from trelliswork.models.catalogue import Entry, entries, entry_of
from trelliswork.models.loading import load
from trelliswork.models.networks.recipe import NetworkRecipe
from trelliswork.models.recipe import Note
from trelliswork.models.taggers.networks.config import TaggerConfig
from trelliswork.models.taggers.networks.neural_tagger import NeuralTagger
from trelliswork.models.taggers.networks.warm_start import warm_start

_STRUCTURE = ("encoder", "scorer", "segments", "transitions", "normalization")  # what makes models with names differ


class TaggerRecipe(NetworkRecipe):
    """Taggers and segmenters, which may start from the weights of a trained one."""

    source: NeuralTagger | None = None

    def basis(self) -> Mapping[str, Any]:
        if self.options.get("init") is None:
            return super().basis()
        self.source = _trained(self.options["init"], self.options["model"])
        return self.source.config.to_dict() | {"vector_dim": 0}

    def started(self, model: Any, seed: int, note: Note) -> Any:
        if self.source is None:
            return model
        model, taken = warm_start(model, self.source, seed)
        for text in taken.notes:
            note(f"{self.options['init']}: {text}" if not text.startswith("note: ") else text)
        return model


def _trained(folder: str, name: str) -> NeuralTagger:
    """Return the network that --init names, which must be of the kind that the model makes."""
    source: Any = load(folder)
    taggers = [each for each in entries().values() if each.recipe == entry_of(name).recipe]
    alike = [each.name for each in taggers if isinstance(source, NeuralTagger) and _fits(source, each)]
    if name not in alike:
        can_start = ", ".join(each.name for each in taggers if each.uses("init", {}))
        fix = f"choose --model {' or '.join(alike)}" if alike else f"give one of {can_start}"
        raise TrellisworkError(f"--init {folder} is not a network as --model {name} makes it; {fix}")
    return source


def _fits(model: NeuralTagger, entry: Entry) -> bool:
    made = TaggerConfig(**entry.values)
    ignored = () if entry.kind == "Segmenter" else ("segments",)
    same = all(getattr(made, each) == getattr(model.config, each) for each in _STRUCTURE if each not in ignored)
    return entry.kind == type(model).__name__ and same
