"""The distribution of a locally normalised model over whole label sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from trelliswork.distributions import LinearChain
from trelliswork.models.taggers.features.kernels.local import local_scores

Array = np.ndarray[Any, Any]


def local_chain(scores: Array, transitions: Array, starts: Array, lengths: Array) -> LinearChain:
    """Π_t p(y_t | y_{t-1}, x) of some sentences [S4.136]: a chain whose log Z is 0, each arc into position t scored by
    log p(y_t | y_{t-1}, x). Sentence b has the rows starts[b]..starts[b] + lengths[b] of `scores` [tokens, c]."""
    n, c = int(lengths.max(initial=1)), scores.shape[1]
    emissions, arcs = np.empty((len(lengths), n, c)), np.empty((len(lengths), n - 1, c, c))
    local_scores(0, len(lengths), lengths, starts, scores, transitions, emissions, arcs)
    return LinearChain(torch.from_numpy(emissions), torch.from_numpy(arcs), lengths=torch.from_numpy(lengths))
