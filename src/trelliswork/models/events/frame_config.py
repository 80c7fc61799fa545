"""The settings of a frame parser, as they are written into its folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from trelliswork.data.settings import WIDEST, setting
from trelliswork.models.networks.config import NetworkConfig

Cell = Literal["feed-forward", "lstm", "gru"]  # as in `nn.transitions.TBRU`, which is not imported for --help


@dataclass(frozen=True)
class FrameConfig(NetworkConfig):
    """What a frame parser is made of: inputs and encoder as in `NetworkConfig`, and a unit over states."""

    state_dim: int = setting(128, "Hidden units of the network over parser states.", at_least=1)
    state_dropout: float = setting(0.2, "Dropout on these units.", at_least=0, below=1)
    cell: Cell = setting("feed-forward", "Network over parser states", choices=get_args(Cell))
    attention: int = setting(5, "Number of most recent frames visible in a state.", at_least=1)
    beam: int = setting(1, "Beam size; 1 is greedy search.", at_least=1, below=WIDEST + 1)
