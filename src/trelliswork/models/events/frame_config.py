"""The settings of a frame parser, as they are written into its folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from trelliswork.data.settings import setting
from trelliswork.models.networks.config import NetworkConfig

Cell = Literal["feed-forward", "lstm", "gru"]  # as in `nn.transitions.TBRU`, which is not imported for --help


@dataclass(frozen=True)
class FrameConfig(NetworkConfig):
    """What a frame parser is made of: inputs and encoder as in `NetworkConfig`, and a unit over states."""

    state_dim: int = setting(128, "Hidden units over a parser state.", at_least=1)
    state_dropout: float = setting(0.2, "Share of these dropped.", at_least=0, below=1)
    cell: Cell = setting("feed-forward", "What reads a parser state", choices=get_args(Cell))
    attention: int = setting(5, "Frames at the front of attention that a state shows.", at_least=1)
    beam: int = setting(1, "Hypotheses that are kept; 1 is greedy.", at_least=1)
