"""Sub-words of words, and windows of long sentences: what a pretrained encoder reads."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor

from trelliswork.errors import TrellisworkError
from trelliswork.lazy import optional
from trelliswork.runtime.arrays import Float, Int

_SPECIAL = ("unk_token", "pad_token", "cls_token", "sep_token", "bos_token", "eos_token", "mask_token")


class Subwords:
    """A fast tokenizer of Hugging Face, applied to sentences that are split into words."""

    def __init__(self, tokenizer: Any) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise TrellisworkError(
                "expected a fast tokenizer, which maps sub-words to words; got a slow one; choose another model"
            )
        self.tokenizer = tokenizer
        example = tokenizer(["a"], is_split_into_words=True)  # shows which special tokens surround a sentence
        own = [i for i, word in enumerate(example.word_ids()) if word is not None]
        self._before, self._after = example["input_ids"][: own[0]], example["input_ids"][own[-1] + 1 :]
        self.n_before, self.n_special = len(self._before), len(self._before) + len(self._after)
        self.padding: int = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0

    def split(self, words: Sequence[str]) -> tuple[list[int], list[int]]:
        """Return the sub-words of a sentence, and where each word begins; a word without any becomes unknown."""
        if not words:
            return [], []
        encoding = self.tokenizer(list(words), is_split_into_words=True, add_special_tokens=False, verbose=False)
        by_word: list[list[int]] = [[] for _ in words]
        for piece, word in zip(encoding["input_ids"], encoding.word_ids(), strict=True):
            by_word[word].append(piece)
        unknown = self.tokenizer.unk_token_id
        pieces: list[int] = []
        firsts = []
        for own in by_word:
            firsts.append(len(pieces))
            pieces += own or [self.padding if unknown is None else unknown]
        return pieces, firsts

    def with_special_tokens(self, pieces: Sequence[int]) -> list[int]:
        """Add the special tokens that the model expects around a sentence."""
        return [*self._before, *pieces, *self._after]

    def to_dict(self) -> dict[str, object]:
        """Return the rules of the tokenizer and its special tokens as JSON values."""
        special = {name: getattr(self.tokenizer, name, None) for name in _SPECIAL}
        return {
            "rules": self.tokenizer.backend_tokenizer.to_str(),
            "special": {name: str(token) for name, token in special.items() if token is not None},
        }

    @staticmethod
    def tokenizer_from(stored: Mapping[str, Any]) -> Any:
        """Create a tokenizer from the result of `to_dict`."""
        use, extra = "a pretrained encoder", "transformers"
        tokenizers = optional("tokenizers", use, extra)
        try:
            rules = tokenizers.Tokenizer.from_str(stored["rules"])
        except Exception as error:  # the library has no class for it
            raise TrellisworkError(
                f"tokenizer.json: expected rules of a tokenizer, got other text ({error})"
            ) from error
        fast = optional("transformers", use, extra).PreTrainedTokenizerFast
        return fast(tokenizer_object=rules, **stored["special"])


def windows(n: int, room: int, overlap: int) -> list[tuple[int, int]]:
    """Return ranges of at most `room` positions that cover 0..n; neighbours share at least `overlap`.

    >>> windows(10, room=6, overlap=2), windows(5, room=6, overlap=2)
    ([(0, 6), (4, 10)], [(0, 5)])

    Args:
        n: Number of positions.
        room: The largest window.
        overlap: What neighbours share at least, less than `room`.

    Returns:
        Ranges [first, last).
    """
    if n <= room:
        return [(0, n)]
    step = room - overlap
    starts = [*range(0, n - room, step), n - room]
    return [(first, first + room) for first in starts]


def window_of(at: int, bounds: Sequence[tuple[int, int]]) -> int:
    """Return the window in which a sub-word is furthest from an edge; the ends of the sentence are no edges."""
    last = bounds[-1][1]

    def distance(window: int) -> int:
        first, end = bounds[window]
        return min(at - first if first else last, end - 1 - at if end < last else last)

    first, end = bisect_right(bounds, at, key=itemgetter(1)), bisect_right(bounds, at, key=itemgetter(0))
    return max(range(first, end), key=distance)


def owners_of(firsts: Sequence[int], n_pieces: int) -> Int[Tensor, " pieces"]:
    """Return the word of each sub-word, given the first sub-word of each word.

    >>> owners_of([0, 2], 3).tolist()
    [0, 0, 1]
    """
    return torch.searchsorted(torch.tensor(firsts), torch.arange(n_pieces), right=True) - 1


def mean_by_word(pieces: Float[Tensor, "m layers dim"], firsts: Sequence[int]) -> Float[Tensor, "n layers dim"]:
    """Average the vectors of the sub-words of each word.

    Args:
        pieces: A vector for each sub-word and layer.
        firsts: The first sub-word of each word.

    >>> mean_by_word(torch.tensor([[[1.0]], [[3.0]], [[5.0]]]), [0, 2]).flatten().tolist()
    [2.0, 5.0]
    """
    owners = owners_of(firsts, len(pieces)).to(pieces.device)
    counts = torch.bincount(owners, minlength=len(firsts)).clamp(min=1).to(pieces.dtype)
    sums = pieces.new_zeros(len(firsts), *pieces.shape[1:]).index_add(0, owners, pieces)
    return sums / counts[:, None, None]
