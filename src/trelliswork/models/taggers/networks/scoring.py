"""From settings to the parts of a tagger that score labels."""

from __future__ import annotations

from torch import nn

from trelliswork.models.networks.features import TokenFeatures
from trelliswork.models.taggers.networks.config import TaggerConfig
from trelliswork.models.taggers.networks.scorers import SCORERS, SEGMENT_SCORERS
from trelliswork.nn.inputs import DirectConnections
from trelliswork.nn.scorers import TransitionScorer


def make_direct_connections(config: TaggerConfig, features: TokenFeatures, n_labels: int) -> DirectConnections | None:
    """What scores labels past the network, if there are templates."""
    return DirectConnections(features.n_attributes, n_labels) if config.templates else None


def make_scorer(config: TaggerConfig, dim: int, n_labels: int) -> nn.Module:
    """From vectors of tokens to scores of labels."""
    found: nn.Module = SCORERS[config.scorer].make(config, dim, n_labels)
    return found


def make_transition_scorer(config: TaggerConfig, dim: int, n_labels: int) -> TransitionScorer | None:
    """What scores pairs of labels by the input; None if they score the same everywhere."""
    return TransitionScorer(dim, n_labels) if config.transitions == "network" else None


def make_segment_scorer(config: TaggerConfig, dim: int, n_labels: int) -> nn.Module:
    """From vectors of tokens to scores of segments."""
    found: nn.Module = SEGMENT_SCORERS[config.segments].make(config, dim, num_labels=n_labels)
    return found
