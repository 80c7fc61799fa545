"""The label sequences that a tag scheme allows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trelliswork.errors import ConstraintError
from trelliswork.models.taggers.features.kernels.records import Legal
from trelliswork.runtime.arrays import Array
from trelliswork.tags.schemes import allowed_transitions

FIX = "correct the tags, or train with --unconstrained (constrained=False)"


def everything(n_labels: int) -> Legal:
    """Return that nothing is forbidden."""
    return Legal(np.zeros((n_labels, n_labels)), np.zeros(n_labels), np.zeros(n_labels))


def legal_of(labels: Sequence[str], scheme: str) -> Legal | None:
    """Return what the scheme allows; None for plain tags. `ConstraintError` if some sentence could have no tags at all.

    >>> legal_of(["O", "B-X", "I-X"], "IOB2").arcs[0].tolist()
    [0.0, 0.0, -inf]
    """
    if scheme == "plain":
        return None
    legal = Legal(*(np.where(np.array(each, bool), 0.0, -np.inf) for each in allowed_transitions(labels, scheme)))
    if not (legal.start + legal.arcs.diagonal() + legal.end == 0).any():
        problem = f"expected tags that can fill a sentence of any length in {scheme}, such as O"
        raise ConstraintError(f"{problem}; got only {', '.join(sorted(labels))}; {FIX}")
    return legal


def copied(legal: Legal, n_copies: int) -> Legal:
    """Return the same for copies of the labels, those of a label side by side."""
    arcs = legal.arcs.repeat(n_copies, 0).repeat(n_copies, 1)
    return Legal(arcs, legal.start.repeat(n_copies), legal.end.repeat(n_copies))


def first_impossible(legal: Legal, lengths: Array, codes: Array, sets: Array) -> int | None:
    """Return the first sentence that no legal labels fit, of codes and sets as `observed` has them.

    Args:
        legal: what the scheme allows.
        lengths: tokens of each sentence.
        codes: code of each token.
        sets: [sets, labels] bool: what the codes below 0 allow.

    Returns:
        Its number, or None.
    """
    follows = legal.arcs == 0
    first = 0
    for sentence, n in enumerate(lengths.tolist()):
        reached = legal.start == 0
        for i, code in enumerate(codes[first : first + n].tolist()):
            allowed = np.arange(len(reached)) == code if code >= 0 else sets[-1 - code]
            reached = (reached if i == 0 else follows[reached].any(0)) & allowed
        if n and not (reached & (legal.end == 0)).any():
            return sentence
        first += n
    return None
