"""supar 1.1 with a CRF over constituency trees (Zhang, Zhou and Li 2020), with the sizes of our span parser.

Its weights are random: each sentence takes the same steps, whatever they are. Trees are those of the highest sum of
probabilities of spans, its default, with the best label of each. Trees that are not binary have labels of their own.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable

import torch
from served import commands

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
torch.load = functools.partial(torch.load, weights_only=False)  # its files hold more than weights

from supar import CRFConstituencyParser  # noqa: E402

SIZES = dict(
    n_embed=100, n_char_embed=25, n_char_hidden=64, n_feat_embed=64, n_lstm_hidden=200, n_lstm_layers=2,
    n_span_mlp=250, n_label_mlp=100,
)  # fmt: skip
BATCH = 5000  # its default


def train(source: str, model: str) -> None:
    found = CRFConstituencyParser.build(
        model, train=source, build=True, min_freq=2, feat=["char"], encoder="lstm", embed=None, unk="unk", mbr=True,
        prob=False, **SIZES,
    )  # fmt: skip
    found.optimizer = found.scheduler = None
    found.save(model)


def parser(model: str, source: str, target: str) -> Callable[[], object]:
    loaded = CRFConstituencyParser.load(model)
    return lambda: loaded.predict(source, pred=target, batch_size=BATCH, mbr=True, verbose=False)


if __name__ == "__main__":
    commands(train, parser)
