"""Answers for batches of sentences of like length, in the order in which the sentences were given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from trelliswork.data import Sentence, token_budget_batches
from trelliswork.errors import DataError, TrellisworkError, is_out_of_memory
from trelliswork.runtime.threads import one_thread_if_small

if TYPE_CHECKING:
    from trelliswork.models.base import Model

BUDGET = 4096  # tokens, padding included, that are answered at a time

Result = TypeVar("Result")
Pinned = Sequence[Any] | None  # what is known of each sentence
Ask = Callable[[Sequence[Sentence], Pinned], list[Result]]


def in_batches(
    model: Model,
    sentences: Sequence[Sentence],
    pins: Pinned,
    answer: Ask[Result],
    *,
    empty: Callable[[], Result],
    budget: int = BUDGET,
) -> list[Result]:
    """Apply `answer` to batches of like length; results in the order given, `empty()` for no words.

    Args:
        model: the model that answers; it is switched to evaluation meanwhile.
        sentences: the inputs, in any order of length.
        pins: for each sentence what is known; None for nothing.
        answer: called with a batch of sentences that have words, and their pins; returns a result for each.
        empty: makes the result of a sentence without words.
        budget: the most tokens of a batch, padding included.

    Returns:
        The results, in the order of the sentences.
    """
    if pins is not None and len(pins) != len(sentences):
        raise TrellisworkError(f"expected pins for {len(sentences)} sentences; got {len(pins)}; use {{}} for none")
    results = [empty() for _ in sentences]
    filled = [i for i, sentence in enumerate(sentences) if len(sentence)]
    lengths = [len(sentences[i]) for i in filled]
    work = min(sum(lengths), budget) * model.n_parameters
    with model.evaluating(), one_thread_if_small(work):
        for batch in token_budget_batches(lengths, budget, shuffle=False):
            chosen = [filled[i] for i in batch]
            pinned = None if pins is None else [pins[i] for i in chosen]
            for i, result in zip(chosen, _halve_on_oom(answer, [sentences[i] for i in chosen], pinned), strict=True):
                results[i] = result
    return results


def _halve_on_oom(answer: Ask[Result], batch: Sequence[Sentence], pins: Pinned) -> list[Result]:
    """Return the answers of a batch; one that does not fit into memory is answered by halves, down to one sentence."""
    try:
        return answer(batch, pins)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        if len(batch) == 1:
            problem = f"expected a sentence that fits into memory, got one of {len(batch[0])} tokens"
            fix = "split it, or allow more memory"
            raise DataError(batch[0].file or "sentence", f"{problem}; {fix}", line=batch[0].line) from error
    half = len(batch) // 2
    first, second = (None, None) if pins is None else (pins[:half], pins[half:])
    return _halve_on_oom(answer, batch[:half], first) + _halve_on_oom(answer, batch[half:], second)
