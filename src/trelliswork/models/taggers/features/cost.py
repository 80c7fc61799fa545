"""The time that an iteration takes where there are many tags, announced before it begins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from trelliswork.models.base import count
from trelliswork.models.taggers.features.crf.kinds import kind_of
from trelliswork.models.taggers.features.crf.listed import is_worth_listing
from trelliswork.models.taggers.features.learners.config import LearningConfig

SLOW = 10.0  # seconds
# Seconds of a token on one core: for each pair of states in a table, for each pair that is listed, and for each tag.
TABLE = {"lbfgs": 6e-10, "sgd": 8e-10}
DECODED = 4e-10  # the same where the best tags are looked for
LISTED, TAG = 1.2e-9, 1.5e-8


def cost_notes(tags: Iterable[Sequence[str]], config: LearningConfig, *, scheme: bool) -> Iterator[str]:
    """Return notes on whether pairs of tags are listed, and on how long an iteration takes if that is long.

    With a `scheme`, what it forbids is in a table.
    """
    kind, n_tokens, seen, pairs = kind_of(config.model), 0, set[str](), set[tuple[str, str]]()
    if kind.counted or not kind.transitions:
        return
    for each in tags:
        n_tokens += len(each)
        seen.update(each)
        pairs.update(pairwise(each))
    single = config.order == 1 and config.latent == 1 and not config.hidden_units and kind.normalised == "globally"
    listed = single and not config.all_transitions and not scheme and is_worth_listing(len(seen), len(pairs))
    if listed and config.algorithm == "lbfgs":
        which = f"{len(pairs):,} of {len(seen) ** 2:,} pairs follow one another"
        yield f"{len(seen):,} tags: {which} and have transition weights; the others share the score 0"
        seconds = n_tokens * (LISTED * len(pairs) + TAG * len(seen))
    else:
        states = len(pairs) + len(seen) if config.order == 2 else len(seen) * config.latent
        seconds = n_tokens * TABLE.get(config.algorithm, DECODED) * states**2
    if seconds > SLOW and kind.normalised == "globally":
        fixes = ["--algorithm lbfgs"] if listed and config.algorithm != "lbfgs" else []
        fixes += ["--order 1"] if config.order == 2 else []
        fixes += ["--latent 1"] if config.latent > 1 else []
        fixes += ["--model logistic", "--min-tag-count 10"]
        what = f"{len(seen):,} tags: about {_spoken(seconds)} an iteration on one core"
        yield f"{what}; consider {' or '.join(fixes)}"


def _spoken(seconds: float) -> str:
    """
    >>> _spoken(14.2), _spoken(200), _spoken(9000)
    ('14 seconds', '3 minutes', '2.5 hours')
    """
    if seconds < 90:
        return count(round(seconds), "second")
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
