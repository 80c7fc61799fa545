"""Compiling the kernels at a moment that is announced, rather than in the middle of something."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch

from trelliswork.data import Sentence
from trelliswork.models import (
    FeatureTagger,
    LearningConfig,
    MultiTagger,
    Segmenter,
    SentenceTagger,
    Tagger,
    TaggerConfig,
)
from trelliswork.models.taggers.features.kernels import decoding, likelihood
from trelliswork.nn import CRF
from trelliswork.runtime.kernel_math import first_not_a_score
from trelliswork.structures.chain import kernels as chain_kernels
from trelliswork.structures.chain import likelihood_kernels, path_kernels

SEGMENTS = "segments"
_SMALL: dict[str, Any] = dict(
    word_dim=2, hidden=16, heads=2, layers=1, segment_dim=4, max_length=2, hidden_units=4, pretrain_epochs=0,
    pretrained="", templates=(), ngrams=(), min_count=1,
)  # fmt: skip


def prepare_kernels(tagger: SentenceTagger | MultiTagger | None = None, *, quiet: bool = False) -> None:
    """Make sure that the kernels are compiled, with a line on standard error when that takes time.

    Those of chains, which all commands share, and the others that `tagger` calls.
    """
    if not kernels_are_cached():
        _announced("kernels", "10 s", compile_kernels, quiet)
    if tagger is not None:
        _prepare_own_kernels(tagger, quiet)


def _prepare_own_kernels(tagger: SentenceTagger | MultiTagger, quiet: bool) -> None:
    missing = [what for what, kernels in tagger.own_kernels().items() if not all(map(_is_cached, kernels))]
    if missing:
        about = f"{10 + 20 * (SEGMENTS in missing)} s"
        _announced(f"kernels of {' and '.join(missing)}", about, lambda: compile_own_kernels(tagger), quiet)


def prepare_network_kernels(*, quiet: bool = False) -> None:
    """Those of every network."""
    sentences = [Sentence(("Ann", "Lee"), ("B-X", "I-X"))]
    prepare_kernels(Segmenter.from_data(sentences, TaggerConfig(segments="pyramid", **_SMALL)), quiet=quiet)
    settings = TaggerConfig(encoder="lstm", scorer="hidden-units", **_SMALL)
    prepare_kernels(Tagger.from_data(sentences, settings), quiet=quiet)


def prepare_feature_kernels(*, quiet: bool = False) -> None:
    """The same for those that learn from features, which need no torch."""
    if not all(map(_is_cached, (likelihood.loss_and_gradient, decoding.best_labels))):
        _announced("kernels of feature models", "20 s", compile_feature_kernels, quiet)


def _announced(what: str, about: str, compile_them: Callable[[], float], quiet: bool) -> None:
    if not quiet:
        print(f"compiling {what} for this machine, once (about {about}) ...", file=sys.stderr, flush=True)
    seconds = compile_them()
    if not quiet:
        print(f"{what} compiled in {seconds:.1f} s", file=sys.stderr, flush=True)


def kernels_are_cached() -> bool:
    """Whether every kernel that the commands call is in the cache on disk, compiled from the present source."""
    return all(_is_cached(kernel) for kernel in _entry_kernels())


def compile_kernels() -> float:
    """Call every kernel once on a small chain; returns the seconds it took."""
    began = time.perf_counter()
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
    return time.perf_counter() - began


def compile_own_kernels(network: Any) -> float:
    """Learn and answer with a small network of the same kind; returns the seconds it took."""
    began = time.perf_counter()
    sentences = [Sentence(("Ann", "Lee", "sings"), ("B-X", "I-X", "O")), Sentence(("Stop",), ("O",))] * 4
    kind = type(next(iter(network.heads.values())))
    with torch.random.fork_rng(devices=[]):
        small = kind.from_data(sentences, replace(network.config, **_SMALL))
        small.loss(sentences).backward()  # a batch that is large enough for every kernel
    small.tag(sentences)
    small.confidences(sentences[:2], [{0: "B-X"}, {}])
    small.analyses(sentences, 2)
    return time.perf_counter() - began


def compile_feature_kernels() -> float:
    """Learn from two sentences and tag them; returns the seconds it took."""
    began = time.perf_counter()
    sentences = [Sentence(("Ann", "sings"), ("B-X", "O")), Sentence(("Stop",), ("O",))]
    FeatureTagger.fit(sentences, LearningConfig(max_iterations=2)).tag(sentences)
    return time.perf_counter() - began


def _entry_kernels() -> Iterator[Any]:
    """Kernels that stand for all that `compile_kernels` reaches, the last one it compiles among them."""
    yield from (chain_kernels.forward_scaled, chain_kernels.backward_scaled, first_not_a_score)
    yield from (likelihood_kernels.forward_rows, likelihood_kernels.backward_rows)
    yield from (path_kernels.path_scores, path_kernels.decode_rows, path_kernels.best_paths, path_kernels.top_paths)


def _is_cached(kernel: Any) -> bool:
    """Whether there is machine code of a kernel for this processor; true where nothing is compiled at all."""
    held = getattr(kernel, "_cache", None)
    return held is None or held.holds_any(kernel.targetctx.codegen())  # None: numba is switched off
