"""The settings of models of events, as they are written into their folders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from trelliswork.data.settings import WIDEST, setting
from trelliswork.models.networks.config import NetworkConfig

Cell = Literal["feed-forward", "lstm", "gru"]  # as in `nn.transitions.TBRU`, which is not imported for --help
_MEMORY, _FACTORS = {"kind": ("MemoryEvents",)}, {"kind": ("FactorEvents",)}


@dataclass(frozen=True)
class EventConfig(NetworkConfig):
    """Settings of a model of events: inputs and encoder as in `NetworkConfig`, and what decides on top of them.

    If all sentences of the training data have dependencies, the network reads them, and needs them ever after;
    `dependencies=False` leaves them out.
    """

    dependencies: bool = setting(True, "Use dependency arcs as input, if the data have them.", option=True)
    event_hidden: int = setting(100, "Hidden units of the type and role scorers.", at_least=1, option=True)
    event_dropout: float = setting(0.3, "Dropout on the inputs of these scorers.", at_least=0, below=1)
    entity_dim: int = setting(20, "Dimension of entity type embeddings (joint-events).", at_least=1,
                              goes_with=_MEMORY)  # fmt: skip
    context: int = setting(2, "Number of context words on each side (joint-events).", at_least=0,
                           goes_with=_MEMORY)  # fmt: skip
    memory: bool = setting(
        True, "Use memories of the types and roles predicted so far (joint-events).", goes_with=_MEMORY
    )
    across: bool = setting(True, "Carry the memories from sentence to sentence of a document (joint-events).",
                           option=True, goes_with=_MEMORY)  # fmt: skip
    proposals: int = setting(4, "Maximum number of triggers per sentence in the factor graph (event-factors).",
                             at_least=1, goes_with=_FACTORS)  # fmt: skip
    reach: int = setting(2, "Number of sentences between two triggers that share a factor, at most (event-factors).",
                         at_least=0, option=True, goes_with=_FACTORS)  # fmt: skip
    analyses: int = setting(3, "Number of best taggings whose entities enter the factor graph (event-factors).",
                            at_least=1, below=WIDEST + 1, goes_with=_FACTORS)  # fmt: skip


@dataclass(frozen=True)
class FrameConfig(NetworkConfig):
    """Settings of a frame parser: inputs and encoder as in `NetworkConfig`, and a unit over states."""

    state_dim: int = setting(128, "Hidden units of the network over parser states.", at_least=1)
    state_dropout: float = setting(0.2, "Dropout on these units.", at_least=0, below=1)
    cell: Cell = setting("feed-forward", "Network over parser states", choices=get_args(Cell))
    attention: int = setting(5, "Number of most recent frames visible in a state.", at_least=1)
    beam: int = setting(1, "Beam size; 1 is greedy search.", at_least=1, below=WIDEST + 1)
