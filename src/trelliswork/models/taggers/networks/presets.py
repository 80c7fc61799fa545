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
    "window": Preset("a network over a window of words", network={"dropout": 0.4}, learning=_LONGER),
    "bilstm-crf": Preset(
        "LSTMs from both ends and characters under a CRF", network={"encoder": "lstm", **_RECURRENT}, learning=_LONGER
    ),
    "bigru-crf": Preset("the same with GRUs", network={"encoder": "gru", **_RECURRENT}, learning=_LONGER),
    "bilstm-memm": Preset(
        "the same network, each tag given the one before",
        network={"encoder": "lstm", "normalization": "local", **_RECURRENT},
        learning=_LONGER,
    ),
    "grsemicrf": Preset(
        "whole segments, through a gated recursive pyramid over word vectors",
        kind="Segmenter",
        network={"encoder": "none", "segments": "pyramid", "word_dim": 100, "dropout": 0.4},
        learning=_LONGER,
    ),
    "bilstm-grsemicrf": Preset(
        "the same pyramid over LSTMs and characters",
        kind="Segmenter",
        network={"encoder": "lstm", "segments": "pyramid", **_RECURRENT, "dropout": 0.4},
        learning=_LONGER,
    ),
    "bilstm-semicrf": Preset(
        "whole segments, by the LSTM states at their ends",
        kind="Segmenter",
        network={"encoder": "lstm", "segments": "endpoints", **_RECURRENT},
        learning=_LONGER,
    ),
    "sentence": Preset(
        "filters over the whole sentence and their maximum",
        network={"encoder": "sentence", "dropout": 0.4},
        learning=_LONGER,
    ),
    "dilated-crf": Preset(
        "convolutions that look ever further",
        network={**_RECURRENT, "encoder": "dilated", "layers": 3, "hidden_dropout": 0.3},
        learning=_LONGER,
    ),
    "transformer-crf": Preset(
        "attention to all words",
        network={**_RECURRENT, "encoder": "transformer", "hidden": 256, "layers": 2, "dropout": 0.3, **_LIGHT},
        learning={**_LONGER, "lr": 1e-3, "warmup": 0.1},
    ),
    "neural-crf": Preset("deep scores of tags and of pairs of tags, pre-trained", network=_DEEP, learning=_LONGER),
    "neural-hucrf": Preset(
        "the same with hidden units under the tags", network={**_DEEP, "scorer": "hidden-units"}, learning=_LONGER
    ),
    "multi-task": Preset(
        "several columns of tags at once, a CRF for each over the same LSTMs",
        kind="MultiTagger",
        network={"encoder": "lstm", **_RECURRENT},
        learning=_LONGER,
    ),
}
