"""A language model in the beam of a recognizer: log p(string | recording) + weight log p_lm(string) + bonus · length.

Carbune et al. (2020), Fast multi-language LSTM-based online handwriting recognition, tune the weights of such feature
functions on held-out data; here it is a grid, since the network answers once for all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

from trelliswork.distributions.ctc import CTC
from trelliswork.errors import TrellisworkError
from trelliswork.metrics.strings import edit_distances
from trelliswork.models.language.config import PLAIN_TEXT
from trelliswork.models.language.corpus import SPACE, UNKNOWN
from trelliswork.models.loading import load
from trelliswork.structures.ctc.beam import NgramScorer

if TYPE_CHECKING:
    from trelliswork.data import Vocabulary

WEIGHTS, BONUSES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.3), (0.0, 0.5, 1.0, 1.5, 2.0)


class Fusion(NamedTuple):
    """The weight of a language model, and what each symbol adds against its liking for short strings."""

    weight: float = 0.5
    bonus: float = 0.5


def scorer_of(folder: str, symbols: Vocabulary) -> NgramScorer:
    """Return the n-gram model in a folder as a scorer of the symbols of a recognizer.

    Symbols that it has never seen are its unknown unit; if it has none, they are never written.
    """
    model = load(folder)
    arrays = getattr(model, "arrays", None)
    if model.learns_from != PLAIN_TEXT or arrays is None:
        problem = f"{folder}: expected an n-gram model of the symbols of transcripts, got a {type(model).__name__}"
        raise TrellisworkError(f"{problem}; train one with --model ngram --units characters")
    numbers = {name: i for i, name in enumerate(model.names)}  # type: ignore[attr-defined]
    units = [numbers.get(symbol.replace(" ", SPACE), -1) for symbol in symbols]
    if max(units) < 0:
        problem = f"{folder}: expected n-grams of symbols such as {symbols[0]!r}, got none of them"
        raise TrellisworkError(f"{problem}; train it on transcripts, with --units characters if these are characters")
    unknown = numbers.get(UNKNOWN, -1)
    return NgramScorer(arrays, [-1, *(unknown if unit < 0 else unit for unit in units)])


def fitted(rows: Sequence[Tensor], gold: Sequence[Sequence[int]], scorer: NgramScorer, width: int) -> Fusion:
    """Return the weight and the bonus by which the beam makes the fewest errors; of equals the smallest.

    Args:
        rows: Log probabilities of the symbols in each frame, of each recording.
        gold: Symbols of their transcripts, -1 for those that the recognizer does not know.
        scorer: The language model.
        width: Strings kept at each frame.
    """
    known = [[str(label) for label in labels] for labels in gold]
    errors: dict[Fusion, int] = {}
    for weight in WEIGHTS:
        for bonus in BONUSES if weight else BONUSES[:1]:
            best = [best_labels(row, width, scorer, Fusion(weight, bonus)) for row in rows]
            pairs = [(list(map(str, labels)), right) for labels, right in zip(best, known, strict=True)]
            errors[Fusion(weight, bonus)] = sum(edit_distances(pairs))
    return min(errors, key=lambda each: (errors[each], each))


def best_labels(row: Tensor, width: int, scorer: NgramScorer, fusion: Fusion) -> list[int]:
    """Return the best string of one recording.

    Args:
        row: Log probabilities of the blank and the symbols in each frame, float32 [frames, symbols].
        width: Strings kept at each frame.
        scorer: The language model.
        fusion: Its weight, and the bonus of each symbol.

    Returns:
        Numbers of its symbols, from 1 on.
    """
    (best,) = CTC(row, blank=0, backend="kernel").beam_search(
        width, scorer=scorer, scorer_weight=fusion.weight, label_bonus=fusion.bonus
    )
    labels: list[int] = best.labels
    return labels
