"""A linear-chain CRF over sparse attributes: the model, without its learners.

parameters.py, observed.py   which weights there are: those of pairs that occur in the data
states.py, kinds.py          states of the chain (labels, latent copies, pairs), and the classical models
model.py, array_chain.py     weights in, labels and probabilities out
chains.py, averaged.py       distributions with every query, averages over several weight vectors: need torch
legality.py, listed.py       what a tag scheme forbids, and which pairs of many labels have a weight
marks.py                     what counted models add
plan.py, edges.py            a corpus laid out for the kernels
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trelliswork.lazy import lazy_names

if TYPE_CHECKING:
    from trelliswork.models.taggers.features.crf.averaged import averaged_crf
    from trelliswork.models.taggers.features.crf.chains import distribution

__all__ = ["averaged_crf", "distribution"]
__getattr__ = lazy_names(__name__, {"averaged": "averaged_crf", "chains": "distribution"})
