"""Pretrained transformers of Hugging Face as encoders of words. Needs the extra `[transformers]`.

Devlin, Chang, Lee and Toutanova (2019), BERT: Pre-training of deep bidirectional transformers for language
understanding, for the use of the first sub-word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from trelliswork.errors import TrellisworkError
from trelliswork.lazy import optional
from trelliswork.runtime.shapes import Float, Int

OVERLAP = 64  # default number of sub-words that windows share, at most a quarter of a window
NO_LIMIT = 1 << 20  # tokenizers without a limit state a number above this
POSITIONS_AFTER_PADDING = ("roberta", "xlm-roberta", "camembert", "longformer")  # count from the padding index on


class PretrainedEncoder(nn.Module):
    """Encodes each word by the vector of its first sub-word in the last layer of a pretrained transformer.

    A sentence with more sub-words than the model accepts is read in overlapping windows; each word is taken from the
    window in which it is furthest from an edge, and nothing is truncated.

    Args:
        model: A transformer of Hugging Face.
        tokenizer: Its fast tokenizer.
        overlap: Number of sub-words that neighbouring windows share.
        longest: Number of sub-words that the model accepts, including special tokens; by default what model and
            tokenizer state.

        >>> encoder = PretrainedEncoder.from_name("bert-base-cased")         # doctest: +SKIP
        >>> encoder([["Ann", "sings", "."], ["Stop"]]).shape                 # doctest: +SKIP
        torch.Size([2, 3, 768])
    """

    def __init__(self, model: nn.Module, tokenizer: Any, *, overlap: int | None = None, longest: int | None = None):
        super().__init__()
        self.model, self.subwords = model, Subwords(tokenizer)
        self.dim = int(_config(model).hidden_size)
        self.longest = longest or _longest(tokenizer, _config(model))
        room = self.longest - self.subwords.n_special
        self.overlap = min(OVERLAP, room // 4) if overlap is None else overlap
        if not 0 <= self.overlap < room:
            raise TrellisworkError(
                f"overlap must lie in 0..{room - 1} for windows of {room} sub-words; got {overlap}; lower it"
            )

    @classmethod
    def from_name(cls, name: str, *, overlap: int | None = None) -> Self:
        """Load a model and its tokenizer by their name on the hub, or from a folder."""
        transformers = import_transformers()
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(name, add_prefix_space=True)
            model = transformers.AutoModel.from_pretrained(name)
        except (OSError, ValueError) as error:
            problem = str(error).strip().splitlines()[0]
            raise TrellisworkError(
                f"expected a model of Hugging Face, got {name!r} ({problem}); check the name or give a folder"
            ) from error
        return cls(model, tokenizer, overlap=overlap)

    def forward(
        self, sentences: Sequence[Sequence[str]], scales: Float[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n dim"]:
        """Encode words.

        Args:
            sentences: The words of each sentence.
            scales: Factor of the embeddings of all sub-words of each word, before the first layer.

        Returns:
            Vectors of words, 0 after the last word of a sentence.
        """
        pieces = [self.subwords.split(words) for words in sentences]
        room = self.longest - self.subwords.n_special
        cuts = [windows(len(ids), room, self.overlap) for ids, _ in pieces]
        inputs = [
            torch.tensor(self.subwords.with_special_tokens(ids[first:last]))
            for (ids, _), bounds in zip(pieces, cuts, strict=True)
            for first, last in bounds
        ]
        factors = None
        if scales is not None:
            owners = [_owners(firsts, len(ids)) for ids, firsts in pieces]
            factors = [
                self._with_special_tokens(scales[row].index_select(0, owners[row][first:last].to(scales.device)))
                for row, bounds in enumerate(cuts)
                for first, last in bounds
            ]
        states, row, vectors = self._read(inputs, factors), 0, []
        for (_, firsts), bounds in zip(pieces, cuts, strict=True):
            which = [_window_of(at, bounds) for at in firsts]
            places = [at - bounds[w][0] + self.subwords.n_before for at, w in zip(firsts, which, strict=True)]
            vectors.append(states[[row + w for w in which], places])
            row += len(bounds)
        return pad_sequence(vectors, batch_first=True)

    def _with_special_tokens(self, factors: Float[Tensor, " m"]) -> Float[Tensor, " m_and_special"]:
        """Add the factors of the special tokens, which are 1."""
        n_before, n_after = self.subwords.n_before, self.subwords.n_special - self.subwords.n_before
        return nn.functional.pad(factors, (n_before, n_after), value=1.0)

    def _read(self, inputs: list[Tensor], factors: list[Tensor] | None = None) -> Float[Tensor, "w m dim"]:
        """Return the last layer for all windows at once; `factors` multiply the embeddings of sub-words."""
        device = next(self.model.parameters()).device
        if not inputs:
            return torch.zeros(0, 0, self.dim, device=device)
        ids = pad_sequence(inputs, batch_first=True, padding_value=self.subwords.padding).to(device)
        lengths = torch.tensor([len(window) for window in inputs], device=device)
        mask = torch.arange(ids.shape[1], device=device) < lengths[:, None]
        if factors is None:
            return self.model(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        scales = pad_sequence(factors, batch_first=True, padding_value=1.0)[..., None]
        # A hook, since with `inputs_embeds` some models count positions differently.
        model: Any = self.model
        hook = model.get_input_embeddings().register_forward_hook(lambda *called: called[-1] * scales)
        try:
            return self.model(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        finally:
            hook.remove()

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the weights as JSON values, so that `from_dict` works offline."""
        return {
            "model": _config(self.model).to_dict(),
            "tokenizer": self.subwords.to_dict(),
            "overlap": self.overlap,
            "longest": self.longest,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Create an encoder from the result of `to_dict`; its weights must be loaded afterwards."""
        transformers = import_transformers()
        settings = dict(stored["model"])
        config = transformers.AutoConfig.for_model(settings.pop("model_type"), **settings)
        tokenizer = Subwords.tokenizer_from(stored["tokenizer"])
        model = transformers.AutoModel.from_config(config)
        return cls(model, tokenizer, overlap=stored["overlap"], longest=stored["longest"])


def import_transformers() -> Any:
    """Import the library, or raise an error that says how to install it."""
    return optional("transformers", "a pretrained encoder", "transformers")


def _owners(firsts: Sequence[int], n_pieces: int) -> Int[Tensor, " pieces"]:
    """Return the word of each sub-word, given the first sub-word of each word.

    >>> _owners([0, 2], 3).tolist()
    [0, 0, 1]
    """
    return torch.searchsorted(torch.tensor(firsts), torch.arange(n_pieces), right=True) - 1


def _config(model: nn.Module) -> Any:
    return model.config


def _longest(tokenizer: Any, config: Any) -> int:
    """Return how many sub-words the model accepts at once, including special tokens."""
    positions = int(getattr(config, "max_position_embeddings", 512))
    if config.model_type in POSITIONS_AFTER_PADDING:
        positions -= int(config.pad_token_id) + 1
    stated = int(tokenizer.model_max_length)
    return min(positions, stated) if stated < NO_LIMIT else positions


def _window_of(at: int, bounds: Sequence[tuple[int, int]]) -> int:
    """Return the window in which a sub-word is furthest from an edge; the ends of the sentence are no edges."""
    last = bounds[-1][1]

    def distance(window: int) -> int:
        first, end = bounds[window]
        if not first <= at < end:
            return -1
        return min(at - first if first else last, end - 1 - at if end < last else last)

    return max(range(len(bounds)), key=distance)


# Splitting of words into sub-words, and of long sentences into windows.

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

    def to_dict(self) -> dict[str, Any]:
        special = {name: getattr(self.tokenizer, name, None) for name in _SPECIAL}
        return {
            "rules": self.tokenizer.backend_tokenizer.to_str(),
            "special": {name: str(token) for name, token in special.items() if token is not None},
        }

    @staticmethod
    def tokenizer_from(stored: Mapping[str, Any]) -> Any:
        """Create a tokenizer from the result of `to_dict`."""
        use, extra = "a pretrained encoder", "transformers"
        rules = optional("tokenizers", use, extra).Tokenizer.from_str(stored["rules"])
        fast = optional("transformers", use, extra).PreTrainedTokenizerFast
        return fast(tokenizer_object=rules, **stored["special"])


def windows(n: int, room: int, overlap: int) -> list[tuple[int, int]]:
    """Return ranges of at most `room` positions that cover 0..n; neighbours share at least `overlap`.

    >>> windows(10, room=6, overlap=2), windows(5, room=6, overlap=2)
    ([(0, 6), (4, 10)], [(0, 5)])
    """
    if n <= room:
        return [(0, n)]
    step = room - overlap
    starts = [*range(0, n - room, step), n - room]
    return [(first, first + room) for first in starts]
