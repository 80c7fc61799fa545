"""The settings of models of events, as they are written into their folders."""

from __future__ import annotations

from dataclasses import dataclass

from trelliswork.data.settings import setting
from trelliswork.models.networks.config import NetworkConfig

_MEMORY, _FACTORS = {"kind": ("MemoryEvents",)}, {"kind": ("FactorEvents",)}


@dataclass(frozen=True)
class EventConfig(NetworkConfig):
    """What a model of events is made of: inputs and encoder as in `NetworkConfig`, and what decides on top of them.

    If all sentences of the training data have dependencies, the network reads them, and needs them ever after;
    `dependencies=False` leaves them out.
    """

    dependencies: bool = setting(True, "Read the dependencies of words, if the data have them.", option=True)
    event_hidden: int = setting(100, "Hidden units of the scores of types and roles.", at_least=1, option=True)
    event_dropout: float = setting(0.3, "Share of what they read dropped.", at_least=0, below=1)
    entity_dim: int = setting(20, "Width of the vectors of entity types (joint-events).", at_least=1,
                              goes_with=_MEMORY)  # fmt: skip
    context: int = setting(2, "Words to each side that are read as they are (joint-events).", at_least=0,
                           goes_with=_MEMORY)  # fmt: skip
    memory: bool = setting(True, "Remember the types and roles found before (joint-events).", goes_with=_MEMORY)
    proposals: int = setting(4, "Triggers of a sentence that are judged together, at most (event-factors).",
                             at_least=1, goes_with=_FACTORS)  # fmt: skip
    analyses: int = setting(3, "Best taggings whose entities are judged together (event-factors).", at_least=1,
                            goes_with=_FACTORS)  # fmt: skip
