"""What the loop asks of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from trelliswork.data import Sentence


class Trainable(Protocol):
    """What the loop asks of a model, besides being an `nn.Module`.

    Objectives other than the likelihood also ask for `scored`: the distribution of a batch and its gold value, and the
    loss of what is learned beside it, if there is any. A model whose loss is not the same in all epochs has
    `begin_epoch(epoch, n_epochs)`, which is called before each of them.
    """

    metrics: dict[str, Any]

    def encode(self, sentences: Sequence[Sentence], *, with_tags: bool = False) -> Sequence[Sized]:
        """Examples, made once and reused in each epoch."""

    def loss(self, batch: Any) -> Tensor:
        """The summed loss of a batch of encoded examples."""

    def evaluate(self, sentences: Sequence[Sentence]) -> dict[str, Any]:
        """Scores of the model on gold data; `score` is the one that counts and `metric` its name."""

    def check_output(self, directory: str | Path) -> None:
        """Raise `OutputError` if `save` could not write there; asked before the first epoch."""

    def save(self, directory: str | Path, *, extra: Mapping[str, str] | None = None) -> None:
        """Write the model folder."""
