"""From frames to scores of symbols: strided convolutions, BiLSTM layers, a linear layer; and distortions of frames."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import grid_sample

from trelliswork.models.recognizers.config import RecognizerConfig
from trelliswork.nn.encoders.recurrent import RecurrentEncoder
from trelliswork.runtime.arrays import Bool, Float, Int


class FrameNetwork(nn.Module):
    """Log probabilities of the blank and of each symbol in each frame of the output.

    Padding never counts: the scores of a recording are the same in any batch.

    Args:
        config: Settings.
        planes: Number of values at each place of a frame: 1 of an image, 3 of sound with deltas, all of a vector.
        height: Number of places of a frame.
        n_symbols: Number of symbols, the blank included.
    """

    mean: Tensor  # of the frames that the network was made for
    deviation: Tensor
    convolutions: nn.ModuleList

    def __init__(self, config: RecognizerConfig, planes: int, height: int, n_symbols: int) -> None:
        super().__init__()
        self.config, self.planes, self.height = config, planes, height
        self.register_buffer("mean", torch.zeros(planes * height))
        self.register_buffer("deviation", torch.ones(planes * height))
        n = max(config.convolutions, config.stride.bit_length() - 1)
        layers, sizes = [], [planes] + [config.channels] * n
        for i in range(n):
            steps = (2 if 2 << i <= config.stride else 1, 2 if height > 1 else 1)
            window = (config.kernel, 3 if height > 1 else 1)
            around = (config.kernel // 2, 1 if height > 1 else 0)
            layers.append(nn.Conv2d(sizes[i], sizes[i + 1], window, steps, around))
            height = (height + 1) // 2
        self.convolutions = nn.ModuleList(layers)
        self.norm = nn.LayerNorm(config.channels * height)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = RecurrentEncoder(
            config.channels * height, hidden=config.hidden, layers=config.layers, dropout=config.dropout
        )
        self.output = nn.Linear(self.encoder.dim, n_symbols)

    def forward(
        self, frames: Float[Tensor, "batch t d"], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch frames symbols"]:
        """Return the log probabilities; those of recording b are in its first `output_lengths(lengths)[b]` frames."""
        values = (frames - self.mean) / self.deviation
        values = values.unflatten(2, (self.planes, self.height)).transpose(1, 2)  # (batch, planes, t, height)
        values = values * _mask(lengths, values.shape[2])[:, None, :, None]
        for layer in self.convolutions:
            lengths = _steps(lengths, int(layer.stride[0]))  # type: ignore[index]
            values = layer(values).relu()
            mask = _mask(lengths, values.shape[2])
            values = values * mask[:, None, :, None]
        vectors = self.dropout(self.norm(values.transpose(1, 2).flatten(2)))
        scores: Tensor = self.output(self.dropout(self.encoder(vectors, mask)))
        return scores.float().log_softmax(-1)

    def output_lengths(self, lengths: Int[Tensor, " batch"]) -> Int[Tensor, " batch"]:
        """Return the number of frames of the output."""
        return _steps(lengths, self.config.stride)


def _steps(lengths: Tensor, stride: int) -> Tensor:
    return (lengths + stride - 1) // stride


def _mask(lengths: Int[Tensor, " batch"], n: int) -> Bool[Tensor, "batch n"]:
    return torch.arange(n, device=lengths.device) < lengths[:, None]


def masked_out(
    frames: Float[Tensor, "batch t d"], lengths: Int[Tensor, " batch"], mean: Tensor, config: RecognizerConfig
) -> Float[Tensor, "batch t d"]:
    """Return frames with stretches of time and bands of features put to their mean, chosen anew for each recording.

    Args:
        frames: Frames, float32 [batch, t, d]; the ends are padding.
        lengths: Frames of each recording, int64 [batch].
        mean: Mean of each feature, float32 [d].
        config: Number of stretches and bands, and how wide they are at most.
    """
    batch, t, d = frames.shape
    hidden = torch.zeros(batch, t, d, dtype=torch.bool)
    places, features = torch.arange(t), torch.arange(d)
    for _ in range(config.time_masks):
        most = (lengths // 5).clamp(max=config.time_mask)
        begin, end = _stretch(lengths, most)
        hidden |= ((places >= begin) & (places < end))[:, :, None]
    for _ in range(config.feature_masks):
        begin, end = _stretch(torch.full((batch,), d), torch.full((batch,), int(config.feature_mask * d)))
        hidden |= ((features >= begin) & (features < end))[:, None, :]
    return torch.where(hidden.to(frames.device), mean, frames)


def _stretch(lengths: Int[Tensor, " batch"], most: Int[Tensor, " batch"]) -> tuple[Tensor, Tensor]:
    """Return the random beginning and end of a stretch of each length, [batch, 1]."""
    lengths, most = lengths.cpu(), most.cpu()
    size = (torch.rand(len(lengths)) * (most + 1)).long()
    begin = (torch.rand(len(lengths)) * (lengths - size + 1)).long()
    return begin[:, None], (begin + size)[:, None]


def distorted(
    images: Float[Tensor, "batch t height"], lengths: Int[Tensor, " batch"], config: RecognizerConfig
) -> tuple[Float[Tensor, "batch n height"], Int[Tensor, " batch"]]:
    """Return images that are slanted, shifted and scaled a little, each in its own way, and their lengths.

    Args:
        images: Ink in 0..1, column by column, float32 [batch, t, height]; the ends are padding.
        lengths: Columns of each image, int64 [batch].
        config: How far images are slanted, shifted and scaled at most.
    """
    batch, t, height = images.shape
    slant, shift, high, wide = (torch.rand(batch, 1, 1) * 2 - 1 for _ in range(4))
    wide = 1 + config.scale * wide
    longer = (lengths.cpu() / wide[:, 0, 0]).ceil().long().clamp(min=1)
    y = (torch.arange(height) - (height - 1) / 2)[None, None, :]
    x = torch.arange(int(longer.max()))[None, :, None]
    rows = y * (1 + config.scale * high) + config.shift * height * shift
    columns = x * wide + config.slant * slant * y
    places = torch.stack([(2 * rows).expand_as(columns) / max(height - 1, 1), 2 * columns / max(t - 1, 1) - 1], -1)
    moved = grid_sample(images[:, None], places.to(images.device, images.dtype), align_corners=True)[:, 0]
    return moved, longer.to(lengths.device)
