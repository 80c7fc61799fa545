"""supar 1.1 (Zhang, Li and Zhang 2020) with the sizes of our biaffine parser: trees by greedy heads, else by MST.

It is trained for two passes over every sixth sentence, so that most of its greedy heads are trees, as they are later.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from served import commands

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
torch.load = functools.partial(torch.load, weights_only=False)  # its files hold more than weights

from supar import BiaffineDependencyParser  # noqa: E402
from supar.utils import Dataset  # noqa: E402
from torch.optim import Adam  # noqa: E402
from torch.optim.lr_scheduler import ExponentialLR  # noqa: E402

SIZES = dict(
    n_embed=100, n_char_embed=25, n_char_hidden=64, n_feat_embed=64, n_lstm_hidden=300, n_lstm_layers=2,
    n_arc_mlp=300, n_rel_mlp=100,
)  # fmt: skip
CHOICES = dict(
    feat=["char"], encoder="lstm", embed=None, unk="unk", partial=False, punct=True, tree=True, proj=False, prob=False,
    update_steps=1, clip=5.0,
)  # fmt: skip
BATCH, BUCKETS = 5000, 32  # its defaults
PASSES, EVERY = 2, 6


def built(path: str, source: str) -> Any:
    found = BiaffineDependencyParser.build(path, train=source, build=True, min_freq=2, **CHOICES, **SIZES)
    found.optimizer = Adam(found.model.parameters(), 2e-3, (0.9, 0.9), 1e-12)
    found.scheduler = ExponentialLR(found.optimizer, 0.75 ** (1 / 5000))
    return found


def batches(parser: Any, source: str) -> Any:
    parser.transform.train()
    return Dataset(parser.transform, source).build(BATCH, BUCKETS, True).loader


def train(source: str, model: str) -> None:
    blocks = Path(source).read_text(encoding="utf-8").split("\n\n")[::EVERY]
    part = Path(f"{model}.conllu")
    part.write_text("\n\n".join(blocks) + "\n\n", encoding="utf-8")
    found = built(model, str(part))
    for _ in range(PASSES):
        found._train(batches(found, str(part)))
    found.save(model)


def parser(model: str, source: str, target: str) -> Callable[[], object]:
    loaded = BiaffineDependencyParser.load(model)
    return lambda: loaded.predict(source, pred=target, batch_size=BATCH, tree=True, proj=False, verbose=False)


if __name__ == "__main__":
    commands(train, parser)
