"""Encoders of Hugging Face: a word is the vector of its first sub-word. Needs the extra `[transformers]`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from trelliswork.errors import TrellisworkError
from trelliswork.lazy import optional
from trelliswork.nn.encoders.subwords import Subwords, windows
from trelliswork.runtime.shapes import Float, Int

OVERLAP = 64  # sub-words that windows share, unless they are short
NO_LIMIT = 1 << 20  # tokenizers without a limit give a number above this
BEFORE_THE_FIRST = ("roberta", "xlm-roberta", "camembert", "longformer")  # positions are counted from padding on


class PretrainedEncoder(nn.Module):
    """Words in, one vector each out: that of the first sub-word in the last layer of a pretrained transformer.

    A sentence with more sub-words than the model can take is read in windows that share `overlap` sub-words, and
    each word is taken from the window where it is furthest from an edge; nothing is cut off.

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
        """A model and its tokenizer by the name they have at the hub, or from a folder."""
        transformers = import_transformers()
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(name, add_prefix_space=True)
            model = transformers.AutoModel.from_pretrained(name)
        except (OSError, ValueError) as error:
            problem = str(error).strip().splitlines()[0]
            raise TrellisworkError(
                f"expected a model of Hugging Face, got {name!r} ({problem}); check the name or give its folder"
            ) from error
        return cls(model, tokenizer, overlap=overlap)

    def forward(
        self, sentences: Sequence[Sequence[str]], scales: Float[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n dim"]:
        """Vectors of words, 0 behind the last word of a sentence.

        `scales` multiply the embeddings of all sub-words of a word, before the first layer.
        """
        pieces = [self.subwords.split(words) for words in sentences]
        room = self.longest - self.subwords.n_special
        cuts = [windows(len(ids), room, self.overlap) for ids, _ in pieces]
        inputs = [
            torch.tensor(self.subwords.framed(ids[first:last]))
            for (ids, _), bounds in zip(pieces, cuts, strict=True)
            for first, last in bounds
        ]
        factors = None
        if scales is not None:
            owners = [_owners(firsts, len(ids)) for ids, firsts in pieces]
            factors = [
                self._framed_ones(scales[row].index_select(0, owners[row][first:last].to(scales.device)))
                for row, bounds in enumerate(cuts)
                for first, last in bounds
            ]
        states, row, found = self._read(inputs, factors), 0, []
        for (_, firsts), bounds in zip(pieces, cuts, strict=True):
            which = [_window_of(at, bounds) for at in firsts]
            places = [at - bounds[w][0] + self.subwords.n_before for at, w in zip(firsts, which, strict=True)]
            found.append(states[[row + w for w in which], places])
            row += len(bounds)
        return pad_sequence(found, batch_first=True)

    def _framed_ones(self, factors: Float[Tensor, " m"]) -> Float[Tensor, " framed"]:
        """Special tokens stay as they are."""
        n_before, n_after = self.subwords.n_before, self.subwords.n_special - self.subwords.n_before
        return nn.functional.pad(factors, (n_before, n_after), value=1.0)

    def _read(self, inputs: list[Tensor], factors: list[Tensor] | None = None) -> Float[Tensor, "w m dim"]:
        """The last layer for all windows at once; `factors` of sub-words multiply their embeddings."""
        device = next(self.model.parameters()).device
        if not inputs:
            return torch.zeros(0, 0, self.dim, device=device)
        ids = pad_sequence(inputs, batch_first=True, padding_value=self.subwords.padding).to(device)
        lengths = torch.tensor([len(each) for each in inputs], device=device)
        mask = torch.arange(ids.shape[1], device=device) < lengths[:, None]
        if factors is None:
            return self.model(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        scales = pad_sequence(factors, batch_first=True, padding_value=1.0)[..., None]
        # A hook, not `inputs_embeds`, with which some models count positions differently.
        model: Any = self.model
        hook = model.get_input_embeddings().register_forward_hook(lambda *called: called[-1] * scales)
        try:
            return self.model(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        finally:
            hook.remove()

    def to_dict(self) -> dict[str, Any]:
        """All but the weights, fit for JSON: `from_dict` needs no hub."""
        return {
            "model": _config(self.model).to_dict(),
            "tokenizer": self.subwords.to_dict(),
            "overlap": self.overlap,
            "longest": self.longest,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`, with weights that are yet to be loaded."""
        transformers = import_transformers()
        settings = dict(stored["model"])
        config = transformers.AutoConfig.for_model(settings.pop("model_type"), **settings)
        tokenizer = Subwords.tokenizer_from(stored["tokenizer"])
        model = transformers.AutoModel.from_config(config)
        return cls(model, tokenizer, overlap=stored["overlap"], longest=stored["longest"])


def import_transformers() -> Any:
    """The library, or an error that says how to install it."""
    return optional("transformers", "a pretrained encoder", "transformers")


def _owners(firsts: Sequence[int], n_pieces: int) -> Int[Tensor, " pieces"]:
    """The word of each sub-word, given the first sub-word of each.

    >>> _owners([0, 2], 3).tolist()
    [0, 0, 1]
    """
    return torch.searchsorted(torch.tensor(firsts), torch.arange(n_pieces), right=True) - 1


def _config(model: nn.Module) -> Any:
    return model.config


def _longest(tokenizer: Any, config: Any) -> int:
    """How many sub-words the model takes at once, special ones included."""
    positions = int(getattr(config, "max_position_embeddings", 512))
    if config.model_type in BEFORE_THE_FIRST:
        positions -= int(config.pad_token_id) + 1
    stated = int(tokenizer.model_max_length)
    return min(positions, stated) if stated < NO_LIMIT else positions


def _window_of(at: int, bounds: Sequence[tuple[int, int]]) -> int:
    """The window in which a sub-word is furthest from an edge; the ends of the sentence do not count as edges."""
    last = bounds[-1][1]

    def distance(window: int) -> int:
        first, end = bounds[window]
        if not first <= at < end:
            return -1
        return min(at - first if first else last, end - 1 - at if end < last else last)

    return max(range(len(bounds)), key=distance)
