"""`trelliswork train` with a tagger that is a network, which may begin with the weights of a trained one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trelliswork.errors import TrellisworkError
from trelliswork.models.loading import load
from trelliswork.models.networks.preset import Preset
from trelliswork.models.networks.recipe import NetworkRecipe
from trelliswork.models.recipe import Note
from trelliswork.models.taggers.networks.config import TaggerConfig
from trelliswork.models.taggers.networks.neural_tagger import NeuralTagger
from trelliswork.models.taggers.networks.presets import PRESETS
from trelliswork.models.taggers.networks.warm_start import warm_start

CAN_START = [name for name, preset in PRESETS.items() if preset.kind != "MultiTagger"]
_STRUCTURE = ("encoder", "scorer", "segments", "transitions", "normalization")  # what makes models with names differ


class TaggerRecipe(NetworkRecipe):
    """Taggers and segmenters by name."""

    PRESETS = PRESETS
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
    """The network that --init names, which must be of the kind that the model makes."""
    found: Any = load(folder)
    alike = [each for each, preset in PRESETS.items() if isinstance(found, NeuralTagger) and _fits(found, preset)]
    if name not in alike:
        fix = f"choose --model {' or '.join(alike)}" if alike else f"give one of {', '.join(CAN_START)}"
        raise TrellisworkError(f"--init {folder} is not a network as --model {name} makes it; {fix}")
    return found


def _fits(model: NeuralTagger, preset: Preset) -> bool:
    made = TaggerConfig(**preset.network)
    ignored = () if preset.kind == "Segmenter" else ("segments",)
    same = all(getattr(made, each) == getattr(model.config, each) for each in _STRUCTURE if each not in ignored)
    return preset.kind == type(model).__name__ and same
