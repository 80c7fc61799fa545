"""What the words that a decoder attends to say by themselves, whatever the context."""

from __future__ import annotations

from torch import Tensor, nn

from trelliswork.runtime.shapes import Float


class LexicalChoice(nn.Module):
    """tanh(W w) + w with w = tanh(sum of word vectors by attention): one more input of the output layer.

    A symbol is then chosen by the words it is about even where training lacks the combination with what is around it.

        >>> LexicalChoice(8)(torch.zeros(2, 5, 8)).shape
        torch.Size([2, 5, 8])

    Nguyen and Chiang (2018), Improving lexical choice in neural machine translation.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.layer = nn.Linear(dim, dim)

    def forward(self, attended: Float[Tensor, "*rows e"]) -> Float[Tensor, "*rows e"]:
        words = attended.tanh()
        found: Tensor = self.layer(words).tanh() + words
        return found
