"""What scores tags and segments: one line for each, with the settings that it reads; see `models/networks/parts.py`."""

from __future__ import annotations

from trelliswork.models.networks.parts import Part

# Made with the width of what goes in and the number of labels.
SCORERS = {
    "linear": Part("scorers:LinearScorer", "initialization"),
    "context": Part("scorers:ContextScorer", "initialization"),
    "hidden-units": Part("scorers:HiddenUnitScorer", "initialization", n_hidden="hidden_units"),
    "tensor": Part("scorers:TensorScorer", "initialization", slices="tensor_slices"),
}
SEGMENT_SCORERS = {
    "pyramid": Part("scorers:PyramidScorer", "max_length", hidden="segment_dim"),
    "endpoints": Part("scorers:EndpointScorer", "max_length", hidden="segment_dim"),
}
