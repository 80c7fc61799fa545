"""Vectors of words from their characters: a convolution with maximum over time, or a bidirectional LSTM."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trelliswork.nn.inputs.lookup import PADDING
from trelliswork.runtime.shapes import Float, Int


class CharacterCNN(nn.Module):
    """Convolution over the characters of a word, and the maximum of each filter over the word.

    Args:
        n_characters: Number of characters, including padding.
        dim: Width of the vectors of characters.
        hidden: Number of filters.
        width: Number of characters under a filter.

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
        vectors = self.table(spellings) * present  # padding after a word must look like its border, which is 0
        filtered = self.convolution(vectors.transpose(1, 2)).transpose(1, 2)[:, : spellings.shape[1]]
        return filtered.masked_fill(~present, -torch.inf).amax(1).tanh()


class CharacterLSTM(nn.Module):
    """Final states of an LSTM that reads the word forwards and of one that reads it backwards, side by side.

    Args:
        n_characters: Number of characters, including padding.
        dim: Width of the vectors of characters.
        hidden: Width of the result; each direction has half of it.

    Lample et al. (2016), Neural architectures for named entity recognition.

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
        reversed_order = (last[:, None] - torch.arange(spellings.shape[1], device=spellings.device)).clamp(min=0)
        final_states = []
        for lstm, characters in ((self.forwards, spellings), (self.backwards, spellings.gather(1, reversed_order))):
            states, _ = lstm(self.table(characters))
            final_states.append(states.gather(1, last[:, None, None].expand(-1, 1, states.shape[2])).squeeze(1))
        return torch.cat(final_states, 1)
