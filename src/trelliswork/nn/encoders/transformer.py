"""A transformer encoder: each token attends to all tokens of its sentence."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trelliswork.errors import ScoreError
from trelliswork.nn.dropout import Dropout
from trelliswork.nn.encoders.base import TokenEncoder
from trelliswork.runtime.arrays import Bool, Float, Int


class TransformerEncoder(TokenEncoder):
    """Layers of self-attention and feed-forward networks, with sinusoids for positions.

    Positions are counted over unmasked tokens.

    Args:
        dim: Width of the vectors of tokens.
        hidden: Width of the layers, a multiple of twice the heads.
        layers: Number of layers.
        heads: Attention heads per layer.
        dropout: Share of units that are dropped.
        norm: "post" normalises the output of each part, norm(x + f(x)), as in the paper; "pre" its input,
            x + f(norm(x)), which trains without warm-up.
        feedforward: Width of the feed-forward networks, as a multiple of `hidden`.
        attention_dropout: Share of attention weights that are dropped.
        position_dropout: Share of units that are dropped after positions are added.
        project: Whether vectors go through a linear layer even if they are `hidden` wide.

        >>> TransformerEncoder(55, hidden=64, layers=2)(torch.zeros(2, 7, 55)).shape
        torch.Size([2, 7, 64])

    Vaswani et al. (2017), Attention is all you need.
    """

    def __init__(
        self, dim: int, *, hidden: int = 200, layers: int = 2, heads: int = 4, dropout: float = 0.0,
        norm: Literal["pre", "post"] = "pre", feedforward: int = 4, attention_dropout: float = 0.0,
        position_dropout: float = 0.0, project: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if layers < 1 or heads < 1 or hidden % (2 * heads) or norm not in ("pre", "post"):
            raise ScoreError(
                f"hidden must be a multiple of twice the heads, layers at least 1 and norm pre or post; got hidden "
                f"{hidden}, {heads} heads, {layers} layers, norm {norm!r}; try hidden=256, heads=4"
            )
        self.dim = hidden
        self.entry = nn.Linear(dim, hidden) if project or dim != hidden else nn.Identity()
        self.layers = nn.ModuleList(
            _Layer(hidden, heads, dropout, norm, feedforward, attention_dropout) for _ in range(layers)
        )
        self.dropout = Dropout(position_dropout)
        self.norm = nn.LayerNorm(hidden) if norm == "pre" else nn.Identity()

    def forward(
        self, tokens: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n hidden"]:
        """Encode each token; masked positions are not attended to and give zeros."""
        mask = torch.ones(tokens.shape[:2], dtype=torch.bool, device=tokens.device) if mask is None else mask
        place = (mask.long().cumsum(1) - 1).clamp(min=0)
        vectors = self.entry(tokens.masked_fill(~mask.unsqueeze(-1), 0.0))
        vectors = self.dropout(vectors + sinusoids(place, self.dim).to(vectors.dtype))
        at = torch.arange(mask.shape[1], device=mask.device)
        # A masked position sees itself: a softmax over nothing would be NaN.
        seen = (mask[:, None, :] | (at[:, None] == at))[:, None]
        for layer in self.layers:
            vectors = layer(vectors, seen)
        return self.norm(vectors) * mask.unsqueeze(-1)


class _Layer(nn.Module):
    def __init__(
        self,
        dim: int,
        heads: int,
        dropout: float,
        norm: str = "pre",
        feedforward: int = 4,
        attention_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.heads, self.pre, self.attention_dropout = heads, norm == "pre", attention_dropout
        self.attention_norm, self.network_norm = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.queries_keys_values, self.output = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        wide = feedforward * dim
        self.network = nn.Sequential(nn.Linear(dim, wide), nn.ReLU(), nn.Linear(wide, dim))  # [S4.450]
        self.dropout = Dropout(dropout)

    def forward(
        self, tokens: Float[Tensor, "batch n dim"], seen: Bool[Tensor, "batch 1 n n"]
    ) -> Float[Tensor, "batch n dim"]:
        if self.pre:
            tokens = tokens + self.dropout(self.attend(self.attention_norm(tokens), seen))
            return tokens + self.dropout(self.network(self.network_norm(tokens)))
        tokens = self.attention_norm(tokens + self.dropout(self.attend(tokens, seen)))
        return self.network_norm(tokens + self.dropout(self.network(tokens)))

    def attend(
        self, tokens: Float[Tensor, "batch n dim"], seen: Bool[Tensor, "batch 1 n n"]
    ) -> Float[Tensor, "batch n dim"]:
        """Return softmax(Q K^T / √d_k) V of all heads, side by side, times W^O."""
        # [S4.441, 445-446, 448-449]
        parts = self.queries_keys_values(tokens).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        dropped = self.attention_dropout if self.training else 0.0
        context = F.scaled_dot_product_attention(parts[0], parts[1], parts[2], attn_mask=seen, dropout_p=dropped)
        return self.output(context.transpose(1, 2).flatten(2))


def sinusoids(place: Int[Tensor, "batch n"], dim: int) -> Float[Tensor, "batch n dim"]:
    """Return position vectors: sin(p / 10000^(2i/dim)) at 2i and its cosine at 2i+1, for position p and even `dim`."""
    # [S4.451-452]
    rates = torch.exp(torch.arange(0, dim, 2, dtype=torch.float64, device=place.device) * (-math.log(1e4) / dim))
    angles = place.unsqueeze(-1) * rates
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)


# A transformer that reads ahead, with positions relative to each other and a memory of what it has read.

Pattern = Literal["dense", "strided"]


class CausalTransformer(nn.Module):
    """Layers in which each position attends to the `span` positions that end with it, whatever piece they are in.

    What the layers below gave for the last span - 1 positions is handed on from piece to piece; no gradient goes back
    into it. Positions are known by their distances alone, so that it does not matter where a text is cut.

    Args:
        dim: Width of the layers, a multiple of twice the heads.
        layers: Number of layers.
        heads: Attention heads per layer.
        span: Number of positions that are attended to.
        dropout: Share of units that are dropped.
        pattern: "dense", or "strided": the first half of the heads sees the last `stride` positions, the second half
            every position whose distance is a multiple of `stride`.
        stride: The stride; by default about the square root of the span.

        >>> reader = CausalTransformer(8, layers=2, heads=2, span=4)
        >>> vectors, memory = reader(torch.zeros(7, 3, 8), reader.first_memory(3))
        >>> vectors.shape, memory[0].shape
        (torch.Size([7, 3, 8]), torch.Size([3, 3, 8]))

    Dai et al. (2019), Transformer-XL: attentive language models beyond a fixed-length context; Child et al. (2019),
    Generating long sequences with sparse transformers.
    """

    def __init__(
        self, dim: int, *, layers: int = 2, heads: int = 4, span: int = 128, dropout: float = 0.0,
        pattern: Pattern = "dense", stride: int = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        if layers < 1 or heads < 1 or dim % (2 * heads) or span < 1:
            raise ScoreError(
                "the width must be a multiple of twice the heads, layers and span at least 1; got width "
                f"{dim}, {heads} heads, {layers} layers, span {span}; try 256, 4, 2 and 128"
            )
        self.dim, self.heads, self.span, self.pattern = dim, heads, span, pattern
        self.stride = stride or max(1, round(math.sqrt(span)))
        self.layers = nn.ModuleList(_RelativeLayer(dim, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)

    def first_memory(self, batch: int) -> tuple[Float[Tensor, "0 batch dim"], ...]:
        """Return the memory of each layer before anything was read."""
        return tuple(self.norm.weight.new_zeros(0, batch, self.dim) for _ in self.layers)

    def forward(
        self, vectors: Float[Tensor, "n batch dim"], memory: tuple[Float[Tensor, "m batch dim"], ...]
    ) -> tuple[Float[Tensor, "n batch dim"], tuple[Tensor, ...]]:
        """Return a vector at each position, and the memory after the last one."""
        n, m, after = len(vectors), len(memory[0]), list[Tensor]()
        place = torch.arange(m + n, device=vectors.device)
        distance = place[m:, None] - place
        seen = self.sees(distance)
        furthest = min(self.span, m + n)
        rates = sinusoids(torch.arange(furthest, device=vectors.device), self.dim).to(vectors.dtype)
        for layer, before in zip(self.layers, memory, strict=True):
            known = torch.cat([before.detach(), vectors])  # [S4.405]
            after.append(known[max(0, len(known) - self.span + 1) :])
            vectors = layer(vectors, known, (distance.clamp(0, furthest - 1), seen, rates))
        return self.norm(vectors), tuple(after)

    def sees(self, distance: Int[Tensor, "n places"]) -> Bool[Tensor, "heads n places"]:
        """Return True where a head attends to a position, by the distance to it."""
        inside = ((distance >= 0) & (distance < self.span))[None].repeat(self.heads, 1, 1)
        if self.pattern == "strided":
            near = self.heads - self.heads // 2
            inside[:near] &= distance <= self.stride  # [S4.424]
            inside[near:] &= distance % self.stride == 0  # [S4.425]
        return inside


class _RelativeLayer(nn.Module):
    def __init__(self, dim: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm, self.network_norm = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.queries, self.keys_values = nn.Linear(dim, dim, bias=False), nn.Linear(dim, 2 * dim, bias=False)
        self.places, self.output = nn.Linear(dim, dim, bias=False), nn.Linear(dim, dim)
        self.content_bias = nn.Parameter(torch.zeros(heads, dim // heads))
        self.place_bias = nn.Parameter(torch.zeros(heads, dim // heads))
        self.network = nn.Sequential(nn.Linear(dim, 4 * dim), nn.ReLU(), nn.Linear(4 * dim, dim))
        self.dropout = Dropout(dropout)

    def forward(
        self, vectors: Float[Tensor, "n b dim"], known: Float[Tensor, "m b dim"], relation: tuple[Tensor, ...]
    ) -> Float[Tensor, "n b dim"]:
        context = self.attend(self.attention_norm(vectors), self.attention_norm(known), relation)
        vectors = vectors + self.dropout(context)
        return vectors + self.dropout(self.network(self.network_norm(vectors)))

    def attend(
        self, vectors: Float[Tensor, "n b dim"], known: Float[Tensor, "m b dim"], relation: tuple[Tensor, ...]
    ) -> Float[Tensor, "n b dim"]:
        """Return the weighted values, by scores of contents and of distances."""
        distance, seen, rates = relation
        queries = self.queries(vectors).unflatten(-1, (self.heads, -1)).permute(1, 2, 0, 3)  # b h n d
        keys, values = self.keys_values(known).unflatten(-1, (2, self.heads, -1)).permute(2, 1, 3, 0, 4)
        places = self.places(rates).unflatten(-1, (self.heads, -1)).transpose(0, 1)  # h span d
        by_content = (queries + self.content_bias[:, None]) @ keys.transpose(-1, -2)
        by_distance = (queries + self.place_bias[:, None]) @ places.transpose(-1, -2)
        by_distance = by_distance.gather(-1, distance.expand(*by_distance.shape[:2], *distance.shape))
        scores = (by_content + by_distance) / math.sqrt(keys.shape[-1])  # [S4.407]
        weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
        return self.output((weights @ values).permute(2, 0, 1, 3).flatten(2))  # [S4.403-404]
