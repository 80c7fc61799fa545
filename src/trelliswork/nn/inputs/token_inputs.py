"""All that is known of a token, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.nn.inputs.batch import TokenBatch
from trelliswork.nn.inputs.characters import CharacterCNN, CharacterLSTM
from trelliswork.nn.inputs.lookup import LookupTables

if TYPE_CHECKING:
    from jaxtyping import Float


class TokenInputs(nn.Module):
    """Vectors of lookup tables and, if there is a network for them, of characters."""

    def __init__(self, lookup: LookupTables, characters: CharacterCNN | CharacterLSTM | None = None) -> None:
        super().__init__()
        self.lookup, self.characters = lookup, characters
        self.dim = lookup.dim + (0 if characters is None else characters.dim)

    def forward(self, batch: TokenBatch) -> Float[Tensor, "batch n d"]:
        found = [self.lookup(batch.features)]
        if self.characters is not None:
            if batch.forms is None or batch.spellings is None:
                raise ScoreError("a batch for a network that reads characters must have forms and spellings; got none")
            found.append(self.characters(batch.spellings)[batch.forms])
        return torch.cat(found, -1)
