"""Models with the search for the best answer behind them, as modules that a graph is recorded from.

Positions come first, [n, batch, ...]: then a step of a loop takes one row of a tensor. Nothing in a loop changes its
shape from step to step; what grows is a list. Of several that are best the first is taken, as the kernels do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from trelliswork.data import Sentence
from trelliswork.distributions.local import local_scores
from trelliswork.models.networks.features import LONGEST_SPELLING
from trelliswork.models.networks.sparse_features import LONGEST, parse_templates
from trelliswork.models.networks.stored_network import StoredNetwork
from trelliswork.models.taggers.labels import Labels
from trelliswork.models.taggers.networks.config import TaggerConfig
from trelliswork.models.taggers.networks.multi_tagger import MultiTagger
from trelliswork.models.taggers.networks.segmenter import OUTSIDE, Segmenter
from trelliswork.models.taggers.networks.tagger import Tagger
from trelliswork.models.taggers.networks.vector_tagger import VectorTagger
from trelliswork.nn.inputs import TokenBatch
from trelliswork.runtime.arrays import Bool, Float
from trelliswork.tags.schemes import SpanPattern, span_patterns, split_tag

Given = dict[str, Any]  # tensors by the names of the inputs
IMPOSSIBLE = -1e30  # -inf of what a scheme forbids; finite, so that no runtime makes NaN of it
N_OUTPUTS = 4  # of a task
ROLES = "BIES"  # in the order of the roles of `best_segments`


class Task(NamedTuple):
    """The outputs of one task: their names, the labels that the first one counts, and what makes confidences.

    `potentials` score labels at tokens, or segments by their first token, length and kind; `transitions` score pairs.
    `same_tag` lists for each label those that mean the same tag; `patterns` says for each kind of span which labels
    spell it (see `SpanPattern`), and `kinds` are those of segments.
    """

    tags: str
    score: str
    potentials: str
    transitions: str
    labels: list[str]
    scheme: str
    data_scheme: str
    same_tag: list[list[int]]
    patterns: dict[str, list[dict[str, object]]]
    kinds: list[str]


class Graph(nn.Module, ABC):
    """A model with the search for its best tags: takes the tensors called `inputs`, gives those of its `tasks`."""

    def __init__(self, model: StoredNetwork) -> None:
        super().__init__()
        self.model = model
        self.inputs, self.tasks = tuple(self.example([1])), self.answers()

    @abstractmethod
    def example(self, lengths: Sequence[int]) -> dict[str, Tensor]:
        """Return inputs by name for sentences of these lengths."""

    @abstractmethod
    def answers(self) -> list[Task]:
        """Return what the model answers; the outputs of several tasks have their names."""

    @abstractmethod
    def decode(self, given: Given) -> tuple[Tensor, ...]:
        """Return tags [batch, n], 0 behind the last token, their score [batch], and all scores, task by task."""

    @abstractmethod
    def reading(self) -> dict[str, object]:
        """Return how the inputs come about."""

    @property
    def outputs(self) -> list[str]:
        return [str(name) for task in self.tasks for name in task[:N_OUTPUTS]]

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        return self.decode(dict(zip(self.inputs, inputs, strict=True)))


class WordGraph(Graph):
    """A network that reads words."""

    @property
    @abstractmethod
    def reader(self) -> Tagger | Segmenter:
        """The network that encodes words."""

    def example(self, lengths: Sequence[int]) -> dict[str, Tensor]:
        tagger = self.reader
        sentences = [
            Sentence(tuple("abcde"[: 1 + i % 5] for i in range(n)), None, (("x",) * n,) * tagger.n_columns)
            for n in lengths
        ]
        batch = tagger.token_batch(tagger.encode(sentences))
        return {name: each for name, each in batch._asdict().items() if isinstance(each, Tensor)}

    def reading(self) -> dict[str, object]:
        config, features = self.reader.config, self.reader.features
        templates = parse_templates(config.templates, 1 + features.n_columns).templates if config.templates else ()
        return {
            "features": features.names,
            "n_columns": features.n_columns,
            "lowercase": config.lowercase,
            "digits_to_zero": config.digits_to_zero,
            "longest_spelling": LONGEST_SPELLING,
            "ngrams": {"lengths": config.ngrams, "buckets": config.ngram_buckets, "longest": LONGEST},
            "templates": [template.text for template in templates],
            "settings": config.to_dict(),
            "vocabularies": features.stored_vocabularies(),
        }


class ChainGraph(WordGraph):
    """A tagger of words, or several that share their encoder."""

    model: Tagger | MultiTagger

    @property
    def heads(self) -> dict[str, Tagger]:
        """The tagger of each task by name; one alone has the empty name."""
        return self.model.heads if isinstance(self.model, MultiTagger) else {"": self.model}

    @property
    def reader(self) -> Tagger:
        return next(iter(self.heads.values()))

    def answers(self) -> list[Task]:
        return [
            _task(head.labels, head.labels.vocabulary.to_list(), _outputs(head.pairs is not None, head.config, name))
            for name, head in self.heads.items()
        ]

    def decode(self, given: Given) -> tuple[Tensor, ...]:
        batch, heads = TokenBatch(**given), list(self.heads.values())
        vectors = heads[0].encode_tokens(batch)
        return tuple(each for head in heads for each in decode_chain(head, vectors, batch))


class SegmentGraph(WordGraph):
    """A segmenter of words."""

    model: Segmenter

    @property
    def reader(self) -> Segmenter:
        return self.model

    def answers(self) -> list[Task]:
        model = self.model
        of_kinds = [f"{role}-{kind}" if kind else role for kind in model.kinds[1:] for role in ROLES]
        task = _task(model.labels, [OUTSIDE, *of_kinds], _outputs(False, model.config, ""))
        return [task._replace(scheme="IOBES", kinds=model.kinds)]

    def decode(self, given: Given) -> tuple[Tensor, ...]:
        return decode_segments(self.model, TokenBatch(**given))


class VectorGraph(Graph):
    """A tagger of vectors."""

    model: VectorTagger

    def example(self, lengths: Sequence[int]) -> dict[str, Tensor]:
        mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
        vectors = torch.linspace(-1, 1, mask.numel() * self.model.dim).view(*mask.shape, self.model.dim)
        return {"vectors": vectors, "mask": mask}

    def answers(self) -> list[Task]:
        names = self.model.labels.to_list()
        outputs = _outputs(self.model.pairs is not None, None, "")
        return [Task(*outputs, names, "plain", "plain", [[i] for i in range(len(names))], {}, [])]

    def decode(self, given: Given) -> tuple[Tensor, ...]:
        return decode_vectors(self.model, **given)

    def reading(self) -> dict[str, object]:
        return {"dim": self.model.dim, "settings": self.model.config.to_dict(), "templates": [], "vocabularies": {}}


# What a model says its graph is -> the class that makes it.
GRAPHS: dict[str, type[Graph]] = {"chain": ChainGraph, "segments": SegmentGraph, "vectors": VectorGraph}


def _outputs(by_place: bool, config: TaggerConfig | None, task: str) -> tuple[str, str, str, str]:
    """Return names of outputs; those of several tasks have theirs behind them."""
    by_place = by_place or getattr(config, "normalization", "") == "local"
    names = ("tags", "score", "potentials", "pairs" if by_place else "transitions")
    return tuple(f"{name}_{task}" if task else name for name in names)  # type: ignore[return-value]


def _task(labels: Labels, names: list[str], outputs: tuple[str, str, str, str]) -> Task:
    tags = labels.vocabulary.to_list()
    kinds = sorted({split_tag(tag)[1] for tag in tags if tag != OUTSIDE}) if labels.has_spans else []
    patterns = {kind: [_plain(each) for each in span_patterns(tags, labels.scheme, kind)] for kind in kinds}
    return Task(*outputs, names, labels.scheme, labels.data_scheme, labels.same_tag, patterns, [])


def _plain(pattern: SpanPattern) -> dict[str, object]:
    return {name: sorted(each) if isinstance(each, frozenset) else each for name, each in vars(pattern).items()}


# Tags [batch, n], 0 behind the last token, and scores [batch]; then the scores of labels, in which those of the first
# and the last token have start and end, and of pairs of labels [from, to].
Decoded = tuple[Tensor, Tensor, Tensor, Tensor]


def decode_chain(tagger: Tagger, vectors: Float[Tensor, "batch n d"], batch: TokenBatch) -> Decoded:
    """Return the best labels of tokens.

    Args:
        tagger: the network.
        vectors: what `encode_tokens` gives, [batch, n, d].
        batch: the tokens, with their mask.

    Returns:
        Tags, their scores, and the scores of labels and of pairs.
    """
    emissions = tagger._emissions(vectors, batch).double()
    transitions, start, end = (scores.double() for scores in tagger.crf._scores())
    if tagger.pairs is not None:
        transitions = transitions + tagger.pairs(vectors)
    if tagger.config.normalization == "local":
        emissions, transitions = local_scores(emissions, transitions, start, end, batch.mask)
        start, end = torch.zeros_like(start), torch.zeros_like(end)
    return _search(emissions, transitions, start, end, batch.mask)


def decode_vectors(tagger: VectorTagger, vectors: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"]) -> Decoded:
    """Return the best labels of vectors.

    Args:
        tagger: the network.
        vectors: [batch, n, d].
        mask: True for each vector of a sequence, [batch, n].

    Returns:
        Labels, their scores, and the scores of labels and of pairs.
    """
    features = tagger._features(vectors, mask)
    transitions, start, end = (scores.double() for scores in tagger.crf._scores())
    if tagger.pairs is not None:
        transitions = transitions + tagger.pairs(features)
    return _search(tagger.scorer(features).double(), transitions, start, end, mask)


def _search(emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, mask: Tensor) -> Decoded:
    shared = transitions.dim() == 2
    arcs = transitions.expand(1, 1, -1, -1) if shared else transitions.transpose(0, 1)
    edges = _finite(arcs.transpose(2, 3)), _finite(start), _finite(end)
    tags, score = best_labels(emissions.transpose(0, 1), mask.T, *edges, 0 if shared else 1)
    first, last = _edges(mask)
    potentials = emissions + first[..., None] * _finite(start) + last[..., None] * _finite(end)
    arcs = _finite(transitions)  # a constant is no output: a copy for each sentence
    return tags * mask.long(), score.float(), potentials, arcs.expand(mask.shape[0], -1, -1) if shared else arcs


def _edges(mask: Bool[Tensor, "batch n"]) -> tuple[Tensor, Tensor]:
    """Return 1 at the first token of each sentence, and at its last."""
    place = torch.arange(mask.shape[1])
    return (place == 0).double().expand(mask.shape), (place + 1 == mask.long().sum(1, keepdim=True)).double()


def decode_segments(segmenter: Segmenter, batch: TokenBatch) -> Decoded:
    """Return the best segments, as tags that `tasks_of` names, and their scores."""
    crf = segmenter.crf
    assert crf.transitions is not None and crf.max_lengths is not None, "a segmenter makes its layer with both"
    k = crf.max_length
    scores = segmenter(batch).double()
    short = torch.arange(1, k + 1)[:, None] <= torch.tensor(crf.max_lengths)
    scores = torch.where(short, scores, IMPOSSIBLE)
    arriving = _arriving(scores)
    kinds, roles, score = best_segments(
        arriving.transpose(0, 1),
        batch.mask.T,
        crf.transitions.T.double(),
        crf.start_transitions.double(),
        crf.end_transitions.double(),
        IMPOSSIBLE,
    )
    tags = torch.where(batch.mask & (kinds > 0), len(ROLES) * (kinds - 1) + roles + 1, 0)
    past = torch.arange(batch.mask.shape[1])[:, None] + torch.arange(1, k + 1)
    last = (past == batch.mask.long().sum(1)[:, None, None]).double()
    first = (past - torch.arange(1, k + 1) == 0).double()
    scores = scores + first[..., None] * crf.start_transitions.double() + last[..., None] * crf.end_transitions.double()
    return tags, score.float(), scores, crf.transitions.double().expand(tags.shape[0], -1, -1)


def _arriving(leaving: Float[Tensor, "batch n k c"]) -> Float[Tensor, "batch n k c"]:
    """Return segments by their last token, at [t, d-1] that of d tokens, instead of by their first."""
    n, k = leaving.shape[1], leaving.shape[2]
    spare = torch.arange(k)
    first = torch.arange(n)[:, None] - spare
    arriving = leaving.flatten(1, 2)[:, (k * first.clamp(min=0) + spare).flatten()].view_as(leaving)
    return torch.where((first >= 0)[..., None], arriving, IMPOSSIBLE)


def _finite(scores: Tensor) -> Tensor:
    return scores.clamp(min=IMPOSSIBLE)


# The best labels and the best segments as loops that become part of an ONNX graph.


@torch.jit.script_if_tracing
def best_labels(
    emissions: Tensor, mask: Tensor, arcs: Tensor, start: Tensor, end: Tensor, step: int
) -> tuple[Tensor, Tensor]:
    """Run Viterbi on a chain.

    Args:
        emissions: Scores [n, batch, c].
        mask: True at tokens [n, batch], which come first in a sentence.
        arcs: Scores [n-1, batch, to, from] of each place and sentence if `step` is 1; [1, 1, to, from], the same for
            all, if it is 0.
        start: Scores [c] of the first label.
        end: Scores [c] of the last label.
        step: 1 or 0, see `arcs`.

    Returns:
        Labels [batch, n], of no meaning behind the last token, and scores [batch].
    """
    # [S4.100-102]
    n, c = mask.shape[0], emissions.shape[2]
    best = start + emissions[0]
    bests = [best]
    for k in range(1, n):
        arrived = (best.unsqueeze(1) + arcs[step * (k - 1)]).amax(2)
        best = torch.where(mask[k].unsqueeze(1), arrived + emissions[k], best)
        bests.append(best)
    score, label = (best + end).max(1)
    path = [label]
    first_row = step * c * torch.arange(mask.shape[1])
    for back in range(1, n):
        k = n - back
        into = arcs[step * (k - 1)].flatten(0, 1)[first_row + label]
        label = torch.where(mask[k], (bests[k - 1] + into).argmax(1), label)
        path.append(label)
    return torch.stack(path, 1).flip([1]), score


@torch.jit.script_if_tracing
def best_segments(
    arriving: Tensor, mask: Tensor, arcs: Tensor, start: Tensor, end: Tensor, impossible: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Run Viterbi on segments.

    Args:
        arriving: Scores [n, batch, k, c]; that of the segment of d tokens which ends with token t is at [t, :, d-1].
        mask: True at tokens [n, batch], which come first in a sentence.
        arcs: Scores [to, from] of pairs of kinds.
        start: Scores [c] of the first kind.
        end: Scores [c] of the last kind.
        impossible: Score of what cannot be: nothing ends before the first token.

    Returns:
        Kind and role of the segment of each token [batch, n], and scores [batch]. Roles are 0 for the first token of
        several, 1 for one inside, 2 for the last, 3 for the only one.
    """
    # [S0.18]
    n, k = mask.shape[0], arriving.shape[2]
    lengths = mask.long().sum(0)
    entered = torch.full_like(arriving[0], impossible)  # at d-1: the best that ends d tokens ago, going on to a label
    entered = torch.cat([start.expand_as(entered[:, :1]), entered[:, 1:]], 1)
    final = torch.zeros_like(entered[:, 0])
    bests: list[Tensor] = []
    durations: list[Tensor] = []
    for t in range(n):
        totals = entered + arriving[t]
        best = totals.amax(1)
        bests.append(best)
        durations.append(totals.argmax(1) + 1)
        entered = torch.cat([(best.unsqueeze(1) + arcs).amax(2).unsqueeze(1), entered[:, : k - 1]], 1)
        final = torch.where((lengths == t + 1).unsqueeze(1), best, final)
    score, label = (final + end).max(1)
    past = lengths  # the tokens from here on have their segment
    kinds: list[Tensor] = []
    roles: list[Tensor] = []
    for back in range(1, n + 1):
        t = n - back
        ends = past == t + 1
        label = torch.where(ends & (lengths > t + 1), (bests[t] + arcs[label]).argmax(1), label)
        duration = durations[t].gather(1, label.unsqueeze(1)).flatten()
        past = torch.where(ends, t + 1 - duration, past)
        kinds.append(label)
        roles.append(torch.where(past == t, 3 * ends.long(), 1 + ends.long()))
    return torch.stack(kinds, 1).flip([1]), torch.stack(roles, 1).flip([1]), score
