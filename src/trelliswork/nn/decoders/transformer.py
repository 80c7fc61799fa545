"""The decoder of a transformer: self-attention to the symbols so far, attention to the input, feed-forward network."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trelliswork.errors import ScoreError
from trelliswork.nn.decoders.base import Decoder, State, Step, Unrolled
from trelliswork.nn.dropout import Dropout
from trelliswork.nn.encoders.transformer import sinusoids
from trelliswork.runtime.arrays import Bool, Float, Int

Norm = Literal["pre", "post"]


class GrowingCache:
    """Keys or values of all steps so far, [batch, heads, places, d].

    If gradients are enabled, the parts are concatenated; otherwise they are written into a buffer that doubles its
    size when it is full.

    >>> cache = GrowingCache()
    >>> _ = cache.add(torch.zeros(2, 4, 1, 8))
    >>> cache.add(torch.ones(2, 4, 5, 8)).shape
    torch.Size([2, 4, 6, 8])
    """

    def __init__(self) -> None:
        self.buffer: Tensor | None = None
        self.length = 0

    def add(self, new: Float[Tensor, "batch heads m d"]) -> Float[Tensor, "batch heads places d"]:
        """Append a part, and return all parts so far."""
        before, self.length = self.length, self.length + new.shape[2]
        if self.buffer is None or torch.is_grad_enabled():
            old = [] if self.buffer is None else [self.buffer[:, :, :before]]
            self.buffer = torch.cat([*old, new], 2)
            return self.buffer
        if self.length > self.buffer.shape[2]:
            grown = new.new_empty(*new.shape[:2], 2 * self.length, new.shape[3])
            grown[:, :, :before] = self.buffer[:, :, :before]
            self.buffer = grown
        self.buffer[:, :, before : self.length] = new
        return self.buffer[:, :, : self.length]


class TransformerState(NamedTuple):
    """Places of the keys and values of a hypothesis in the cache, step by step; -1 for future steps."""

    places: Int[Tensor, "batch beam room"]


class TransformerMemory:
    """Keys and values of an input for each layer, and those of all hypotheses of the current search.

    Args:
        mask: True at input positions that exist.
        cross: Keys and values of the input for each layer.
    """

    def __init__(self, mask: Bool[Tensor, "batch n"], cross: list[tuple[Tensor, Tensor]]) -> None:
        self.mask, self.cross = mask, cross
        self.begin()

    def begin(self) -> None:
        """Clear the cache for a new search."""
        self.n_steps, self.n_places = 0, 0
        self.caches = [(GrowingCache(), GrowingCache()) for _ in self.cross]


class TransformerDecoder(Decoder[TransformerMemory]):
    """Transformer decoder: layers of causal self-attention, attention to the input and a feed-forward network.

    The hypotheses of a beam share one cache of keys and values and remember their own places in it, so that nothing is
    copied when a beam moves on. The attention weights of a step are those of the last layer, averaged over its heads.

    Args:
        symbol_dim: Width of the vectors of symbols.
        source_dim: Width of the encoded positions.
        hidden: Width of the layers, a multiple of twice the heads.
        layers: Number of layers.
        heads: Attention heads per layer.
        feedforward: Width of the feed-forward networks, as a multiple of `hidden`.
        dropout: Share of units that are dropped.
        norm: "post" normalises the output of each part, norm(x + f(x)), as in the paper; "pre" its input,
            x + f(norm(x)), which trains without warm-up.
        attention_dropout: Share of attention weights that are dropped.

        >>> decoder = TransformerDecoder(32, 64, hidden=32, layers=2)
        >>> memory = decoder.remember(torch.zeros(2, 7, 64), torch.ones(2, 7, dtype=torch.bool))
        >>> decoder(memory, torch.zeros(2, 5, 32)).hidden.shape
        torch.Size([2, 5, 32])

    Vaswani et al. (2017), Attention is all you need.
    """

    def __init__(
        self, symbol_dim: int, source_dim: int, *, hidden: int = 256, layers: int = 3, heads: int = 4,
        feedforward: int = 4, dropout: float = 0.0, norm: Norm = "pre", attention_dropout: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        if layers < 1 or heads < 1 or hidden % (2 * heads) or norm not in ("pre", "post"):
            raise ScoreError(
                "hidden must be a multiple of twice the heads, layers at least 1, norm pre or post; got hidden "
                f"{hidden}, {heads} heads, {layers} layers, norm {norm!r}; try hidden=256, heads=4"
            )
        self.dim = hidden
        self.entry = nn.Identity() if symbol_dim == hidden else nn.Linear(symbol_dim, hidden)
        self.layers = nn.ModuleList(
            DecoderLayer(hidden, source_dim, heads, feedforward, dropout, norm, attention_dropout)
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(hidden) if norm == "pre" else nn.Identity()
        self.dropout = Dropout(dropout)

    def remember(self, encoded: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"]) -> TransformerMemory:
        return TransformerMemory(mask, [layer.cross_keys_values(encoded) for layer in self.layers])  # type: ignore[operator]

    def initial(self, memory: TransformerMemory, room: int = 1) -> TransformerState:
        memory.begin()
        return TransformerState(torch.full((len(memory.mask), 1, room), -1, device=memory.mask.device))

    def step(self, memory: TransformerMemory, state: State, symbols: Float[Tensor, "batch beam e"]) -> Step:
        """Read one more symbol; every hypothesis takes a new place in the cache and sees the places of its own past."""
        (places,), t, beam = state, memory.n_steps, symbols.shape[1]
        if t >= places.shape[-1]:
            raise ScoreError(
                f"the state has room for {places.shape[-1]} steps; got one more; give initial() a larger room"
            )
        places = places.clone()
        places[:, :, t] = memory.n_places + torch.arange(beam, device=places.device)
        memory.n_steps, memory.n_places = t + 1, memory.n_places + beam
        seen = torch.zeros(*places.shape[:2], memory.n_places, dtype=torch.bool, device=places.device)
        seen.scatter_(2, places[:, :, : t + 1].clamp(min=0), True)
        vectors = self._with_positions(symbols, torch.full((1, beam), t, device=places.device))
        weights: Tensor | None = None
        for layer, cross, cache in zip(self.layers, memory.cross, memory.caches, strict=True):
            vectors, weights = layer(vectors, cross, memory.mask, seen[:, None], cache)
        assert weights is not None
        return Step(self.norm(vectors), weights, TransformerState(places))

    def forward(self, memory: TransformerMemory, symbols: Float[Tensor, "batch t e"]) -> Unrolled:
        """Read given symbols, all at once; a step does not see later ones."""
        place = torch.arange(symbols.shape[1], device=symbols.device)
        vectors = self._with_positions(symbols, place[None])
        weights: Tensor | None = None
        for layer, cross in zip(self.layers, memory.cross, strict=True):
            vectors, weights = layer(vectors, cross, memory.mask, None, None)
        assert weights is not None
        return Unrolled(self.norm(vectors), weights)

    def _with_positions(
        self, symbols: Float[Tensor, "batch t e"], place: Int[Tensor, "1 t"]
    ) -> Float[Tensor, "batch t d"]:
        vectors = self.entry(symbols)
        return self.dropout(vectors + sinusoids(place, self.dim).to(vectors.dtype))


class DecoderLayer(nn.Module):
    """Self-attention, attention to the input, and a feed-forward network; see `TransformerDecoder`.

    Args:
        dim: Size of the states.
        source_dim: Size of the vectors of the input.
        heads: Number of attention heads.
        feedforward: Hidden units of the feed-forward network.
        dropout: Share of units that are set to 0 in training.
        norm: "pre" or "post": whether layers are normalised before or after.
    """

    def __init__(
        self, dim: int, source_dim: int, heads: int, feedforward: int, dropout: float, norm: Norm,
        attention_dropout: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.heads, self.pre = heads, norm == "pre"
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(3))
        self.own, self.own_output = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.queries, self.keys_values = nn.Linear(dim, dim), nn.Linear(source_dim, 2 * dim)
        self.crossed_output = nn.Linear(dim, dim)
        wide = feedforward * dim
        self.network = nn.Sequential(nn.Linear(dim, wide), nn.ReLU(), nn.Linear(wide, dim))  # [S4.450]
        self.dropout, self.attention_dropout = Dropout(dropout), nn.Dropout(attention_dropout)

    def cross_keys_values(self, encoded: Float[Tensor, "batch n d"]) -> tuple[Tensor, Tensor]:
        """Return keys and values of the input, [batch, heads, n, d / heads]."""
        keys, values = self._split(self.keys_values(encoded), 2)
        return keys, values

    def forward(
        self,
        vectors: Float[Tensor, "batch t dim"],
        cross: tuple[Tensor, Tensor],
        mask: Bool[Tensor, "batch n"],
        seen: Bool[Tensor, "batch 1 t places"] | None,
        cache: tuple[GrowingCache, GrowingCache] | None,
    ) -> tuple[Float[Tensor, "batch t dim"], Float[Tensor, "batch t n"]]:
        """Apply the layer to consecutive steps, or, with `seen` and `cache`, to one step of several hypotheses.

        Args:
            vectors: Input of the layer.
            cross: Keys and values of the encoded input, from `cross_keys_values`.
            mask: True at input positions that exist.
            seen: True at the cache places that each hypothesis sees; None for causal attention.
            cache: Keys and values of earlier steps, which those of this step are added to.

        Returns:
            Output of the layer, and the attention weights over the input.
        """
        own = self._attend_to_self(self._normalise(vectors, 0), seen, cache)
        vectors = self._add(vectors, own, 0)
        others, weights = self._attend_to_input(self._normalise(vectors, 1), cross, mask)
        vectors = self._add(vectors, others, 1)
        return self._add(vectors, self.network(self._normalise(vectors, 2)), 2), weights

    def _normalise(self, vectors: Tensor, part: int) -> Tensor:
        return self.norms[part](vectors) if self.pre else vectors

    def _add(self, vectors: Tensor, new: Tensor, part: int) -> Tensor:
        total = vectors + self.dropout(new)
        return total if self.pre else self.norms[part](total)

    def _split(self, vectors: Float[Tensor, "batch t parts_dim"], parts: int) -> tuple[Tensor, ...]:
        return vectors.unflatten(-1, (parts, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)

    def _attend_to_self(
        self, vectors: Tensor, seen: Tensor | None, cache: tuple[GrowingCache, GrowingCache] | None
    ) -> Float[Tensor, "batch t dim"]:
        queries, keys, values = self._split(self.own(vectors), 3)
        if cache is not None:
            keys, values = cache[0].add(keys), cache[1].add(values)
        context = F.scaled_dot_product_attention(
            queries, keys, values, attn_mask=seen, is_causal=seen is None,
            dropout_p=self.attention_dropout.p if self.training else 0.0,
        )  # fmt: skip
        # [S4.441, 448-449]
        return self.own_output(context.transpose(1, 2).flatten(2))

    def _attend_to_input(
        self, vectors: Tensor, cross: tuple[Tensor, Tensor], mask: Bool[Tensor, "batch n"]
    ) -> tuple[Float[Tensor, "batch t dim"], Float[Tensor, "batch t n"]]:
        (queries,), (keys, values) = self._split(self.queries(vectors), 1), cross
        scores = torch.matmul(queries * queries.shape[-1] ** -0.5, keys.transpose(2, 3))
        weights = scores.masked_fill(~mask[:, None, None], -torch.inf).softmax(-1)  # [S4.441]
        context = torch.matmul(self.attention_dropout(weights), values)
        return self.crossed_output(context.transpose(1, 2).flatten(2)), weights.mean(1)
