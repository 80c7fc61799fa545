"""Output layers for vocabularies of any size: full, sampled, noise-contrastive, hierarchical, adaptive."""

from trelliswork.nn.output_layers.adaptive import AdaptiveInput, AdaptiveSoftmaxLayer
from trelliswork.nn.output_layers.sampled import NCELayer, SampledSoftmaxLayer
from trelliswork.nn.output_layers.softmax import (
    HierarchicalSoftmaxLayer,
    OutputLayer,
    SoftmaxLayer,
)

__all__ = [
    "AdaptiveInput",
    "AdaptiveSoftmaxLayer",
    "HierarchicalSoftmaxLayer",
    "NCELayer",
    "OutputLayer",
    "SampledSoftmaxLayer",
    "SoftmaxLayer",
]
