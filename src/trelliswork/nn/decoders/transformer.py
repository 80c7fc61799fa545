"""The decoder of a transformer: self-attention to the symbols so far, attention to the input, a network."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trelliswork.errors import ScoreError
from trelliswork.nn.decoders.base import Decoder, State, Step, Unrolled
from trelliswork.nn.decoders.cache import GrowingCache
from trelliswork.nn.dropout import Dropout
from trelliswork.nn.encoders.transformer import sinusoids
from trelliswork.runtime.shapes import Bool, Float, Int

Norm = Literal["pre", "post"]


class TransformerState(NamedTuple):
    """Where the keys and values of a hypothesis are kept, step by step; -1 for steps to come."""

    places: Int[Tensor, "batch beam room"]


class TransformerMemory:
    """Keys and values of an input, for each layer, and those of all hypotheses of the search that is going on."""

    def __init__(self, mask: Bool[Tensor, "batch n"], crossed: list[tuple[Tensor, Tensor]]) -> None:
        self.mask, self.crossed = mask, crossed
        self.begin()

    def begin(self) -> None:
        """Forget the hypotheses of the search before."""
        self.n_steps, self.n_places = 0, 0
        self.caches = [(GrowingCache(), GrowingCache()) for _ in self.crossed]


class TransformerDecoder(Decoder):
    """`layers` of causal self-attention, attention to the input and a network, with `heads` over `hidden` dimensions.

    `norm="post"` normalises what a layer has added, norm(x + f(x)), as printed; "pre" what it reads, x + f(norm(x)),
    which trains without warm-up. Hypotheses of a beam share one cache of keys and values and remember the places of
    their own, so that nothing is copied when a beam moves on. The weights of a step are those of the last layer, a
    mean over its heads.

        >>> decoder = TransformerDecoder(32, 64, hidden=32, layers=2)
        >>> memory = decoder.remember(torch.zeros(2, 7, 64), torch.ones(2, 7, dtype=torch.bool))
        >>> decoder(memory, torch.zeros(2, 5, 32)).hidden.shape
        torch.Size([2, 5, 32])

    Vaswani et al. (2017), Attention is all you need.
    """

    def __init__(
        self, symbol_dim: int, source_dim: int, *, hidden: int = 256, layers: int = 3, heads: int = 4,
        feedforward: int = 4, dropout: float = 0.0, norm: Norm = "pre",
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
            DecoderLayer(hidden, source_dim, heads, feedforward, dropout, norm) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(hidden) if norm == "pre" else nn.Identity()
        self.dropout = Dropout(dropout)

    def remember(self, encoded: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"]) -> TransformerMemory:
        return TransformerMemory(mask, [layer.crossed(encoded) for layer in self.layers])  # type: ignore[operator]

    def initial(self, memory: TransformerMemory, room: int = 1) -> TransformerState:
        memory.begin()
        return TransformerState(torch.full((len(memory.mask), 1, room), -1, device=memory.mask.device))

    def step(self, memory: TransformerMemory, state: State, symbols: Float[Tensor, "batch beam e"]) -> Step:
        """Every hypothesis of the beam takes a place in the cache; it sees those of its own past."""
        (places,), t, beam = state, memory.n_steps, symbols.shape[1]
        if t >= places.shape[-1]:
            raise ScoreError(f"the state has room for {places.shape[-1]} steps; got one more; give initial() more room")
        places = places.clone()
        places[:, :, t] = memory.n_places + torch.arange(beam, device=places.device)
        memory.n_steps, memory.n_places = t + 1, memory.n_places + beam
        seen = torch.zeros(*places.shape[:2], memory.n_places, dtype=torch.bool, device=places.device)
        seen.scatter_(2, places[:, :, : t + 1].clamp(min=0), True)
        found = self._placed(symbols, torch.full((1, beam), t, device=places.device))
        weights: Tensor | None = None
        for layer, crossed, cache in zip(self.layers, memory.crossed, memory.caches, strict=True):
            found, weights = layer(found, crossed, memory.mask, seen[:, None], cache)
        assert weights is not None
        return Step(self.norm(found), weights, TransformerState(places))

    def forward(self, memory: TransformerMemory, symbols: Float[Tensor, "batch t e"]) -> Unrolled:
        """All steps at once: a step does not see those behind it."""
        place = torch.arange(symbols.shape[1], device=symbols.device)
        found = self._placed(symbols, place[None])
        weights: Tensor | None = None
        for layer, crossed in zip(self.layers, memory.crossed, strict=True):
            found, weights = layer(found, crossed, memory.mask, None, None)
        assert weights is not None
        return Unrolled(self.norm(found), weights)

    def _placed(self, symbols: Float[Tensor, "batch t e"], place: Int[Tensor, "1 t"]) -> Float[Tensor, "batch t d"]:
        found = self.entry(symbols)
        return self.dropout(found + sinusoids(place, self.dim).to(found.dtype))


class DecoderLayer(nn.Module):
    """Self-attention, attention to the input, and a network."""

    def __init__(self, dim: int, source_dim: int, heads: int, feedforward: int, dropout: float, norm: Norm) -> None:
        super().__init__()
        self.heads, self.pre = heads, norm == "pre"
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(3))
        self.own, self.own_output = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.queries, self.keys_values = nn.Linear(dim, dim), nn.Linear(source_dim, 2 * dim)
        self.crossed_output = nn.Linear(dim, dim)
        wide = feedforward * dim
        self.network = nn.Sequential(nn.Linear(dim, wide), nn.ReLU(), nn.Linear(wide, dim))  # [S4.450]
        self.dropout = Dropout(dropout)

    def crossed(self, encoded: Float[Tensor, "batch n d"]) -> tuple[Tensor, Tensor]:
        """Keys and values of the input, [batch, heads, n, d / heads]."""
        keys, values = self._split(self.keys_values(encoded), 2)
        return keys, values

    def forward(
        self,
        found: Float[Tensor, "batch t dim"],
        crossed: tuple[Tensor, Tensor],
        mask: Bool[Tensor, "batch n"],
        seen: Bool[Tensor, "batch 1 t places"] | None,
        cache: tuple[GrowingCache, GrowingCache] | None,
    ) -> tuple[Float[Tensor, "batch t dim"], Float[Tensor, "batch t n"]]:
        """With `seen` and a cache the steps are hypotheses side by side, else one after the other."""
        own = self._attend_to_self(self._read(found, 0), seen, cache)
        found = self._added(found, own, 0)
        others, weights = self._attend_to_input(self._read(found, 1), crossed, mask)
        found = self._added(found, others, 1)
        return self._added(found, self.network(self._read(found, 2)), 2), weights

    def _read(self, found: Tensor, part: int) -> Tensor:
        return self.norms[part](found) if self.pre else found

    def _added(self, found: Tensor, new: Tensor, part: int) -> Tensor:
        total = found + self.dropout(new)
        return total if self.pre else self.norms[part](total)

    def _split(self, vectors: Float[Tensor, "batch t parts_dim"], parts: int) -> tuple[Tensor, ...]:
        return vectors.unflatten(-1, (parts, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)

    def _attend_to_self(
        self, found: Tensor, seen: Tensor | None, cache: tuple[GrowingCache, GrowingCache] | None
    ) -> Float[Tensor, "batch t dim"]:
        queries, keys, values = self._split(self.own(found), 3)
        if cache is not None:
            keys, values = cache[0].add(keys), cache[1].add(values)
        context = F.scaled_dot_product_attention(queries, keys, values, attn_mask=seen, is_causal=seen is None)
        # [S4.441, 448-449]
        return self.own_output(context.transpose(1, 2).flatten(2))

    def _attend_to_input(
        self, found: Tensor, crossed: tuple[Tensor, Tensor], mask: Bool[Tensor, "batch n"]
    ) -> tuple[Float[Tensor, "batch t dim"], Float[Tensor, "batch t n"]]:
        (queries,), (keys, values) = self._split(self.queries(found), 1), crossed
        scores = torch.matmul(queries * queries.shape[-1] ** -0.5, keys.transpose(2, 3))
        weights = scores.masked_fill(~mask[:, None, None], -torch.inf).softmax(-1)  # [S4.441]
        context = torch.matmul(weights, values)
        return self.crossed_output(context.transpose(1, 2).flatten(2)), weights.mean(1)
