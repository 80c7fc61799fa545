"""Vectors of words from their characters: a convolution with a maximum over time, or an LSTM from both ends."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trelliswork.nn.inputs.lookup import PADDING
from trelliswork.runtime.shapes import Float, Int


class CharacterCNN(nn.Module):
    """`hidden` filters over `width` characters each, the maximum of each over the word.

    >>> CharacterCNN(100, dim=25, hidden=30)(torch.ones(8, 12, dtype=torch.long)).shape
    torch.Size([8, 30])

    dos Santos and Zadrozny (2014), Learning character-level representations for part-of-speech tagging. The initial
    vectors are those of Ma and Hovy (2016), End-to-end sequence labeling via bi-directional LSTM-CNNs-CRF.
    """

    # [S3, Max Layer]

    def __init__(self, n_characters: int, *, dim: int = 25, hidden: int = 30, width: int = 3) -> None:
        super().__init__()
        self.dim = hidden
        self.table = nn.Embedding(n_characters, dim)
        self.convolution = nn.Conv1d(dim, hidden, width, padding=width // 2)
        nn.init.uniform_(self.table.weight, -((3 / dim) ** 0.5), (3 / dim) ** 0.5)

    def forward(self, spellings: Int[Tensor, "u m"]) -> Float[Tensor, "u hidden"]:
        present = (spellings != PADDING).unsqueeze(-1)
        vectors = self.table(spellings) * present  # no character is as good as the border of the word
        found = self.convolution(vectors.transpose(1, 2)).transpose(1, 2)[:, : spellings.shape[1]]
        return found.masked_fill(~present, -torch.inf).amax(1).tanh()


class CharacterLSTM(nn.Module):
    """The last states of an LSTM that reads the word forwards and of one that reads it backwards, side by side.

    >>> CharacterLSTM(100, dim=25, hidden=50)(torch.ones(8, 12, dtype=torch.long)).shape
    torch.Size([8, 50])
    """

    def __init__(self, n_characters: int, *, dim: int = 25, hidden: int = 50) -> None:
        super().__init__()
        self.dim = 2 * (hidden // 2)
        self.table = nn.Embedding(n_characters, dim)
        self.forwards = nn.LSTM(dim, hidden // 2, batch_first=True)
        self.backwards = nn.LSTM(dim, hidden // 2, batch_first=True)
        nn.init.uniform_(self.table.weight, -((3 / dim) ** 0.5), (3 / dim) ** 0.5)

    def forward(self, spellings: Int[Tensor, "u m"]) -> Float[Tensor, "u hidden"]:
        lengths = (spellings != PADDING).sum(1)
        last = (lengths - 1).clamp(min=0)
        turned = (last[:, None] - torch.arange(spellings.shape[1], device=spellings.device)).clamp(min=0)
        ends = []
        for lstm, read in ((self.forwards, spellings), (self.backwards, spellings.gather(1, turned))):
            states, _ = lstm(self.table(read))
            ends.append(states.gather(1, last[:, None, None].expand(-1, 1, states.shape[2])).squeeze(1))
        return torch.cat(ends, 1)
