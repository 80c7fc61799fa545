"""Layers: scores in, structured distributions and losses out."""

from trelliswork.nn.crf import CRF
from trelliswork.nn.encoders import LookupTables, WindowEncoder
from trelliswork.nn.initialization import fan_in_parameter_groups, initialize_fan_in
from trelliswork.nn.scorers import ContextScorer, HiddenUnitScorer, LinearScorer

__all__ = [
    "CRF",
    "ContextScorer",
    "HiddenUnitScorer",
    "LinearScorer",
    "LookupTables",
    "WindowEncoder",
    "fan_in_parameter_groups",
    "initialize_fan_in",
]
