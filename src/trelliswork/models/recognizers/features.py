"""Recordings as frames, the rows that a network reads: log-mel filter banks, columns of images, vectors."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from trelliswork.data.media import Media
from trelliswork.data.recordings import RecordingFormat
from trelliswork.lazy import lazy_module
from trelliswork.models.recognizers.config import RecognizerConfig
from trelliswork.runtime.arrays import Array

signal = lazy_module("scipy.signal")

AT_ONCE = 4096  # frames whose spectra are in memory together
FLOOR = 1e-8  # energy of a filter in silence
DELTA = np.array([2.0, 1.0, 0.0, -1.0, -2.0]) / 10  # slope of the line through five frames


def frames_of(media: Media, config: RecognizerConfig, format: RecordingFormat) -> Array:
    """Return the frames of a recording, float32 [t, channels x height].

    Args:
        media: Content of the file of the recording.
        config: Settings: height of images; frames, filters and deltas of sound.
        format: Sampling rate, to which sound at another one is brought.
    """
    if media.kind == "vectors":
        return media.values
    if media.kind == "image":
        return scaled(media.values, config.height)
    samples, rate = media.values, format.rate
    if media.rate != rate:
        common = math.gcd(media.rate, rate)
        samples = signal.resample_poly(samples, rate // common, media.rate // common).astype(np.float32)
    energies = standardised(log_mel(samples, rate, config))
    if not config.deltas:
        return energies
    first = slopes(energies)
    return np.concatenate([energies, first, slopes(first)], 1)


def standardised(frames: Array) -> Array:
    """Return frames with mean 0 and variance 1 in each column."""
    return (frames - frames.mean(0)) / np.maximum(frames.std(0), 1e-3)


def slopes(frames: Array) -> Array:
    """Return how fast each column rises: the slope of a line fitted to five frames, the ends being repeated."""
    padded = np.pad(frames, ((2, 2), (0, 0)), mode="edge")
    n = len(frames)
    return sum(weight * padded[i : i + n] for i, weight in enumerate(DELTA[::-1])).astype(np.float32)


# Sound.


def log_mel(samples: Array, rate: int, config: RecognizerConfig) -> Array:
    """Return the log energies in filters that are equally wide on the mel scale, [t, filters].

    Davis and Mermelstein (1980), Comparison of parametric representations for monosyllabic word recognition.

    Args:
        samples: Sound, float32 [n].
        rate: Samples in a second.
        config: Width and distance of frames in milliseconds, and number of filters.

    Returns:
        Log energies, float32 [t, filters].
    """
    width, step = max(2, round(rate * config.frame_ms / 1000)), max(1, round(rate * config.step_ms / 1000))
    n = max(1, 1 + (len(samples) - width) // step)
    padded = np.pad(samples, (0, max(0, width - len(samples))))
    size = 1 << (width - 1).bit_length()
    windows = np.lib.stride_tricks.sliding_window_view(padded, width)[::step][:n]
    bank, shape = mel_filters(config.filters, size, rate), np.hanning(width).astype(np.float32)
    energies = np.empty((n, config.filters), np.float32)
    for begin in range(0, n, AT_ONCE):
        part = windows[begin : begin + AT_ONCE]
        spectrum = np.abs(np.fft.rfft((part - part.mean(1, keepdims=True)) * shape, size)) ** 2
        energies[begin : begin + AT_ONCE] = np.log(spectrum @ bank + FLOOR)
    return energies


@lru_cache(maxsize=8)
def mel_filters(n: int, size: int, rate: int) -> Array:
    """Return triangles over the frequencies of a spectrum [size / 2 + 1, n], from 20 Hz to half the sampling rate.

    Args:
        n: Number of filters.
        size: Length of the Fourier transform.
        rate: Samples of sound in a second.

    Returns:
        Weights, float32 [size / 2 + 1, n].
    """
    low, high = (2595 * math.log10(1 + each / 700) for each in (min(20.0, rate / 8), rate / 2))
    edges = 700 * (10 ** (np.linspace(low, high, n + 2) / 2595) - 1)
    hertz = np.arange(size // 2 + 1)[:, None] * rate / size
    rising, falling = (hertz - edges[:-2]) / np.diff(edges)[:-1], (edges[2:] - hertz) / np.diff(edges)[1:]
    triangles: Array = np.maximum(0.0, np.minimum(rising, falling)).astype(np.float32)
    nearest = np.abs(hertz - edges[1:-1]).argmin(0)  # a filter narrower than the steps of the spectrum sees the nearest
    triangles[nearest, np.arange(n)] = np.maximum(triangles[nearest, np.arange(n)], 1e-3)
    return triangles


# Images.


def scaled(ink: Array, height: int) -> Array:
    """Return an image [columns, rows] at another height, with the same proportions."""
    columns, rows = ink.shape
    if rows == height:
        return ink
    wide = max(1, round(columns * height / rows))
    return np.ascontiguousarray(_averaged(_averaged(ink, wide).T, height).T)


def _averaged(values: Array, n: int) -> Array:
    """Return n rows, each the mean of an equal share of the given ones.

    >>> _averaged(np.array([[0.0], [3.0], [6.0]]), 2).ravel().tolist()
    [1.0, 5.0]
    """
    before = len(values)
    edges = np.linspace(0, before, n + 1)
    whole = np.minimum(edges.astype(np.int64), before - 1)
    sums = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, 0, dtype=np.float64)])
    upto = sums[whole] + (edges - whole)[:, None] * values[whole]
    return (
        np.diff(upto, axis=0) * n / before
        if values.dtype == np.float64
        else (np.diff(upto, axis=0) * n / before).astype(values.dtype)
    )
