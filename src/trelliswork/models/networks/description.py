"""What a network is, in words and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trelliswork.models.base import Description, Rows

ENCODERS = {"lstm": "an LSTM from both ends", "gru": "a GRU from both ends", "none": "word vectors"}


def network_described(
    model: Any, structure: str, labels: Rows, record: Rows, transitions: Sequence[tuple[float, str, str]]
) -> Description:
    """A network over words under some structure."""
    encoder = ENCODERS.get(model.config.encoder, f"a {model.config.encoder} network")
    under = f"{'an' if structure[0] in 'aeio' else 'a'} {structure}"
    if getattr(model.config, "normalization", "global") == "local":
        under = f"local normalisation{structure.partition(' CRF')[2]}"
    sizes = {name: f"{len(items):,} entries" for name, items in model.features.vocabularies.items()}
    settings = model.config.to_dict()
    sections = [("lookup tables", sizes), ("network", settings)]
    return Description(f"{encoder} under {under}", labels, record, settings, sections, transitions)


def strongest_transitions(crf: Any, labels: Sequence[str]) -> list[tuple[float, str, str]]:
    """(score, before, after) of the legal neighbours that a layer has learned, the strongest first."""
    if crf.transitions is None:
        return []
    allowed = getattr(crf, "allowed_transitions", None)
    legal = allowed.tolist() if allowed is not None else [[True] * len(labels)] * len(labels)
    scored = [
        (score, labels[i], labels[j])
        for i, row in enumerate(crf.transitions.tolist())
        for j, score in enumerate(row)
        if legal[i][j]
    ]
    return sorted(scored, reverse=True)
