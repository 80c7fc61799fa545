"""`trelliswork train` with a tagger that is a network, which may begin with the weights of a trained one.

Vocabularies keep the entries of the trained network and add those of the new data; labels are those of the new data.
Weights are taken over as far as they belong to the same word, letter or label and have the same sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from trelliswork.data import Vocabulary
from trelliswork.errors import TrellisworkError
from trelliswork.models.catalogue import Entry, entries, entry_of
from trelliswork.models.loading import load
from trelliswork.models.networks.features import VECTOR, TokenFeatures, restore_vocabulary
from trelliswork.models.networks.recipe import NetworkRecipe
from trelliswork.models.recipe import Note
from trelliswork.models.taggers.networks.config import TaggerConfig
from trelliswork.models.taggers.networks.segmenter import Segmenter
from trelliswork.models.taggers.networks.tagger import Tagger

NeuralTagger = Tagger | Segmenter
_STRUCTURE = ("encoder", "scorer", "segments", "transitions", "normalization")  # what makes models with names differ


class TaggerRecipe(NetworkRecipe):
    """Taggers and segmenters, which may start from the weights of a trained one."""

    source: NeuralTagger | None = None

    def basis(self) -> Mapping[str, object]:
        if self.options.get("init") is None:
            return super().basis()
        self.source = _trained(self.options["init"], self.options["model"])
        return self.source.config.to_dict() | {"vector_dim": 0}

    def initialised(self, model: Any, seed: int, note: Note) -> Any:
        if self.source is None:
            return model
        model, taken = warm_start(model, self.source, seed)
        for text in taken.notes:
            note(f"{self.options['init']}: {text}" if not text.startswith("note: ") else text)
        return model


def _trained(folder: str, name: str) -> NeuralTagger:
    """Return the network that --init names, which must be of the kind that the model makes."""
    source = load(folder)
    taggers = [each for each in entries().values() if each.recipe == entry_of(name).recipe]
    alike = [each.name for each in taggers if isinstance(source, Tagger | Segmenter) and _fits(source, each)]
    if not isinstance(source, Tagger | Segmenter) or name not in alike:
        can_start = ", ".join(each.name for each in taggers if each.uses("init", {}))
        fix = f"choose --model {' or '.join(alike)}" if alike else f"give one of {can_start}"
        raise TrellisworkError(f"--init {folder} is not a network as --model {name} makes it; {fix}")
    return source


def _fits(model: NeuralTagger, entry: Entry) -> bool:
    made = TaggerConfig(**entry.values)
    ignored = () if entry.kind == "Segmenter" else ("segments",)
    same = all(getattr(made, each) == getattr(model.config, each) for each in _STRUCTURE if each not in ignored)
    return entry.kind == type(model).__name__ and same


# A new network that begins with the weights of a trained one, for other data: `trelliswork train --init MODEL`.

_TABLES, _LABELLED = ("inputs.lookup.", "inputs.characters.table.", "direct."), ("scorer.", "pairs.", "direct.", "crf.")
_MOST_NAMED = 8  # labels in a note


@dataclass(frozen=True)
class TakenOver:
    """The part of an old network in a new one: numbers of words, labels by name, and the weights that are new."""

    n_words: int
    n_new_words: int
    labels: Sequence[str]
    new_labels: Sequence[str]
    dropped_labels: Sequence[str]
    fresh: Sequence[str]

    @property
    def notes(self) -> list[str]:
        """For people."""
        words = f"words: {self.n_words:,} taken over, {self.n_new_words:,} new"
        parts = [f"{len(self.labels)} taken over", f"{len(self.new_labels)} new{_named(self.new_labels)}"]
        if self.dropped_labels:
            parts.append(f"{len(self.dropped_labels)} not in the new data{_named(self.dropped_labels)}")
        lines = [words, f"labels: {', '.join(parts)}"]
        return [*lines, f"note: new weights, of other sizes: {', '.join(self.fresh)}"] if self.fresh else lines


def warm_start(model: NeuralTagger, source: NeuralTagger, seed: int) -> tuple[NeuralTagger, TakenOver]:
    """Return a network like `model`, made from new data, with what `source` has learned.

    Args:
        model: a network made from the new data.
        source: the trained network.
        seed: what the weights that are new depend on.

    Returns:
        The network to train, and what it has of the trained one.
    """
    features = TokenFeatures(model.config, _merged(model.features, source.features), model.features.pretrained)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        begun = type(model)(model.config, features, model.labels)
    if VECTOR in features.names:
        place = features.names.index(VECTOR)
        begun.inputs.lookup.tables[place].load_state_dict(model.inputs.lookup.tables[place].state_dict())
    labels = _Labels(_names(source), _names(begun))
    fresh = _copy(begun, source, labels)
    known, now = source.features.vocabularies["word"], features.vocabularies["word"]
    shared = [name for name in labels.new if name in labels.old]
    taken = TakenOver(
        len(known) - 2, len(now) - len(known), shared, [name for name in labels.new if name not in labels.old],
        [name for name in labels.old if name not in labels.new], fresh,
    )  # fmt: skip
    return begun, taken


def _merged(new: TokenFeatures, old: TokenFeatures) -> dict[str, Vocabulary]:
    """Return the vocabularies of both, the old entries first; pretrained vectors are those of the new file."""
    merged = dict(new.vocabularies)
    for name in merged.keys() & old.vocabularies.keys() - {VECTOR}:
        entries = dict.fromkeys([*old.vocabularies[name], *new.vocabularies[name]])
        merged[name] = restore_vocabulary(list(entries))
    return {name: merged[name] for name in new.vocabularies}


class _Labels:
    """The places of the labels of the old network in the new one."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        self.old, self.new = old, new
        places = [(old.index(name), i) for i, name in enumerate(new) if name in old]
        self.source, self.target = torch.tensor(places, dtype=torch.long).reshape(-1, 2).unbind(1)

    def axes(self, before: Tensor, now: Tensor) -> list[int] | None:
        """Return the axes that count labels; None if another axis has as many entries and cannot be told apart."""
        axes = [
            axis
            for axis, sizes in enumerate(zip(before.shape, now.shape, strict=True))
            if sizes == (len(self.old), len(self.new))
        ]
        return None if len(axes) > 1 and now.dim() > len(axes) else axes


def _copy(model: NeuralTagger, source: NeuralTagger, labels: _Labels) -> list[str]:
    """Put old weights into the new network; the names of those that do not fit."""
    weights, old = model.state_dict(), source.state_dict()
    fresh = []
    for name, now in weights.items():
        is_vector = name.startswith("inputs.lookup.") and model.features.names[int(name.split(".")[3])] == VECTOR
        if not is_vector and not (name in old and _put(name, now, old[name], labels)):
            fresh.append(name)
    model.load_state_dict(weights)
    return fresh


def _put(name: str, now: Tensor, before: Tensor, labels: _Labels) -> bool:
    """Overwrite what belongs to the same entries; return whether there was any."""
    if name == "pairs.linear.weight":  # a row for each pair of labels
        now = now.view(len(labels.new), len(labels.new), -1)
        before = before.view(len(labels.old), len(labels.old), -1)
    if now.dim() != before.dim():
        return False
    axes = labels.axes(before, now) if name.startswith(_LABELLED) and list(labels.old) != list(labels.new) else []
    if axes is None:
        return False
    target: list[Tensor] = [torch.arange(size) for size in now.shape]
    taken: list[Tensor] = [torch.arange(size) for size in before.shape]
    for axis in axes:
        target[axis], taken[axis] = labels.target, labels.source
    if name.startswith(_TABLES) and now.shape[0] >= before.shape[0]:  # new entries stand behind the old ones
        target[0] = torch.arange(before.shape[0])
    if [len(each) for each in target] != [len(each) for each in taken]:
        return False
    if not now.dim():
        now.copy_(before)
    elif all(map(len, target)):
        now[torch.meshgrid(*target, indexing="ij")] = before[torch.meshgrid(*taken, indexing="ij")]
    return True


def _names(model: NeuralTagger) -> list[str]:
    """Return the names of what a network scores: tags, or the kinds of segments."""
    return list(getattr(model, "kinds", model.label_names))


def _named(labels: Sequence[str]) -> str:
    if not labels:
        return ""
    return f" ({', '.join(labels[:_MOST_NAMED])}{', ...' if len(labels) > _MOST_NAMED else ''})"
