"""What is called to compile kernels, and needs torch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from trelliswork.cli.kernels import ANNOUNCER, announce_compiling
from trelliswork.cli.messages import NOTE, say
from trelliswork.data import Sentence
from trelliswork.distributions.registry import distribution_of, exercise
from trelliswork.errors import TrellisworkError
from trelliswork.models import Segmenter, Tagger, TaggerConfig
from trelliswork.models.taggers.features.tagger import rehearse
from trelliswork.nn import CRF
from trelliswork.plugins import plugins_of
from trelliswork.structures.registry import STRUCTURES


def compile_kernels() -> None:
    """Call every kernel of chains once on a small one."""
    tags = ["O", "B-X", "I-X"]
    crf = CRF.from_tags(tags, scheme="IOB2", batch_first=True)
    emissions = torch.zeros(2, 3, len(tags), requires_grad=True)
    mask = torch.tensor([[True, True, True], [True, True, False]])
    gold, pairs = torch.zeros(2, 3, dtype=torch.long), torch.zeros(2, 2, len(tags), len(tags), requires_grad=True)
    crf(emissions, gold, mask).backward()
    crf.distribution(emissions, mask, pair_scores=pairs).log_prob(gold).sum().backward()
    with torch.no_grad():
        crf.decode(emissions, mask)
        chain = crf.distribution(emissions, mask)
        chain.constrain(torch.full((2, 3), -100)).argmax  # noqa: B018, the query is what compiles
        chain.marginals  # noqa: B018
        chain.span_probabilities([[(0, 1, "X")], []], tags=tags, scheme="IOB2")
        chain.top_k(2)


def small_networks() -> Iterator[Segmenter | Tagger]:
    """Networks that together call the kernels of every network."""
    sentences = [Sentence(("Ann", "Lee"), ("B-X", "I-X"))]
    sizes: dict[str, Any] = dict(word_dim=2, hidden=16, segment_dim=4)
    yield Segmenter.from_data(sentences, TaggerConfig(segments="pyramid", max_length=2, **sizes))
    yield Tagger.from_data(sentences, TaggerConfig(encoder="lstm", scorer="hidden-units", hidden_units=4, **sizes))


def warm_up(*, every: bool, quiet: bool) -> None:
    """Compile the kernels of chains, or all of them, and say how long it takes."""
    announce_compiling(quiet=quiet)
    before = ANNOUNCER.seconds
    for what, compile_them in (_everything() if every else {"chains": compile_kernels}).items():
        began = time.perf_counter()
        compile_them()
        if every and not quiet:
            print(f"{what}: ready after {time.perf_counter() - began:.1f} s", flush=True)
    if ANNOUNCER.seconds == before and not every and not quiet:
        print("kernels are compiled already; nothing to do")


def _exercise_foreign(name: str) -> None:
    """A structure of another package; one that is broken does not stop the others."""
    try:
        exercise(distribution_of(name)._structure)
    except TrellisworkError as error:
        say(f"{NOTE}{error}")


def _everything() -> dict[str, Callable[[], None]]:
    """What calls the kernels of networks, of feature models and of every structure."""
    networks = {f"network of {type(each).__name__}": each.rehearse for each in small_networks()}
    structures = {each.name: partial(exercise, each) for each in STRUCTURES}
    structures |= {
        name: partial(_exercise_foreign, name) for name in plugins_of("structures") if name not in structures
    }
    return {"chains": compile_kernels, **networks, "feature models": rehearse, **structures}
