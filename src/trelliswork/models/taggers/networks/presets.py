"""Networks by name: which class, and the settings that differ from the defaults. docs/results/accuracy.md has figures.

>>> PRESETS["bilstm-crf"].network["encoder"], PRESETS["grsemicrf"].kind
('lstm', 'Segmenter')
"""

from __future__ import annotations

from trelliswork.models.networks.preset import Preset

_RECURRENT = dict(word_dim=100, characters="cnn", hidden=200, dropout=0.5, hidden_dropout=0.4)
_LIGHT = dict(hidden_dropout=0.2)
_DEEP = dict(encoder="deep", layers=2, hidden=300, transitions="network", pretrain_epochs=3, **_LIGHT)
_LONGER = dict(epochs=20, patience=10)  # rates fall until the last epoch, and the last ones are often the best

PRESETS: dict[str, Preset] = {
    "window": Preset(
        "feed-forward network over a window of words with a CRF on top", network={"dropout": 0.4}, learning=_LONGER
    ),
    "bilstm-crf": Preset(
        "BiLSTM encoder with character CNN and a CRF on top",
        network={"encoder": "lstm", **_RECURRENT},
        learning=_LONGER,
    ),
    "bigru-crf": Preset(
        "BiGRU encoder with character CNN and a CRF on top", network={"encoder": "gru", **_RECURRENT}, learning=_LONGER
    ),
    "bilstm-memm": Preset(
        "BiLSTM encoder with locally normalised transitions (MEMM)",
        network={"encoder": "lstm", "normalization": "local", **_RECURRENT},
        learning=_LONGER,
    ),
    "grsemicrf": Preset(
        "gated recursive semi-Markov CRF over word embeddings",
        kind="Segmenter",
        network={"encoder": "none", "segments": "pyramid", "word_dim": 100, "dropout": 0.4},
        learning=_LONGER,
    ),
    "bilstm-grsemicrf": Preset(
        "gated recursive semi-Markov CRF over a BiLSTM encoder",
        kind="Segmenter",
        network={"encoder": "lstm", "segments": "pyramid", **_RECURRENT, "dropout": 0.4},
        learning=_LONGER,
    ),
    "bilstm-semicrf": Preset(
        "semi-Markov CRF over BiLSTM states at segment boundaries",
        kind="Segmenter",
        network={"encoder": "lstm", "segments": "endpoints", **_RECURRENT},
        learning=_LONGER,
    ),
    "sentence": Preset(
        "convolution over the whole sentence with max pooling and a CRF on top",
        network={"encoder": "sentence", "dropout": 0.4},
        learning=_LONGER,
    ),
    "dilated-crf": Preset(
        "iterated dilated convolutions with a CRF on top",
        network={**_RECURRENT, "encoder": "dilated", "layers": 3, "hidden_dropout": 0.3},
        learning=_LONGER,
    ),
    "transformer-crf": Preset(
        "transformer encoder with a CRF on top",
        network={**_RECURRENT, "encoder": "transformer", "hidden": 256, "layers": 2, "dropout": 0.3, **_LIGHT},
        learning={**_LONGER, "lr": 1e-3, "warmup": 0.1},
    ),
    "neural-crf": Preset(
        "neural CRF with deep emission and transition scores, pre-trained", network=_DEEP, learning=_LONGER
    ),
    "neural-hucrf": Preset(
        "neural CRF with hidden units, pre-trained", network={**_DEEP, "scorer": "hidden-units"}, learning=_LONGER
    ),
    "multi-task": Preset(
        "several tasks on one BiLSTM encoder, each with a CRF on top",
        kind="MultiTagger",
        network={"encoder": "lstm", **_RECURRENT},
        learning=_LONGER,
    ),
}
