"""A linear-chain CRF over sparse attributes: the model, without its learners.

parameters.py, observed.py   which weights there are: those of pairs that occur in the data
states.py, kinds.py          states of the chain (labels, latent copies, pairs), and the classical models
model.py, array_chain.py     weights in, labels and probabilities out; which pairs of many labels have a weight
chains.py                    distributions with every query, averages over several weight vectors: need torch
legality.py                  what a tag scheme forbids
plan.py                      a corpus laid out for the kernels
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trelliswork.lazy import lazy_names

if TYPE_CHECKING:
    from trelliswork.models.taggers.features.crf.chains import averaged_crf, distribution

__all__ = ["averaged_crf", "distribution"]
__getattr__ = lazy_names(__name__, {"chains": "averaged_crf distribution"})
