"""Dependency trees of a real treebank (UD English-EWT, dev), where it is present: all are scored and found again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from trelliswork.distributions import ProjectiveTree, SpanningTree

Tree = tuple[list[int], list[str]]  # heads, relations
N_SENTENCES, N_WORDS, N_NOT_PROJECTIVE = 2001, 25147, 31  # as counted by the corpus' own notes


@pytest.fixture(scope="module")
def treebank() -> list[Tree]:
    file = Path(__file__).parents[2].parent / "shared/data/ud_english_ewt/en_ewt-ud-dev.conllu"
    if not file.exists():
        pytest.skip(f"UD English-EWT not found at {file}")
    return list(read_trees(file))


def read_trees(file: Path) -> Iterator[Tree]:
    """Heads and relations of the words of each sentence; multiword tokens and empty nodes left out."""
    for block in file.read_text(encoding="utf-8").strip().split("\n\n"):
        lines = [line.split("\t") for line in block.splitlines() if not line.startswith("#")]
        words = [line for line in lines if line[0].isdigit()]
        yield [int(line[6]) for line in words], [line[7] for line in words]


def batches(trees: list[Tree], size: int = 128) -> Iterator[tuple[Tensor, Tensor, list[Tree]]]:
    """Padded heads, lengths and the trees themselves, sentences of similar length together."""
    by_length = sorted(trees, key=lambda tree: len(tree[0]))
    for begin in range(0, len(by_length), size):
        some = by_length[begin : begin + size]
        rows = [torch.tensor(heads) for heads, _ in some]
        heads = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        yield heads, torch.tensor([len(row) for row in rows]), some


def boosted(heads: Tensor) -> Tensor:
    """Random scores, with more for the arcs of these trees than all others of a word can have."""
    batch, n = heads.shape
    arcs = torch.randn(batch, n + 1, n + 1, generator=torch.Generator().manual_seed(n))
    return arcs.scatter_add_(1, torch.cat([heads[:, :1], heads], 1)[:, None], torch.full((batch, 1, n + 1), 50.0))


def test_every_tree_can_be_scored_and_is_found_again(treebank: list[Tree]) -> None:
    assert (len(treebank), sum(len(heads) for heads, _ in treebank)) == (N_SENTENCES, N_WORDS)
    not_projective = 0
    for heads, lengths, _ in batches(treebank):
        arcs = boosted(heads)
        spanning, projective = SpanningTree(arcs, lengths=lengths), ProjectiveTree(arcs, lengths=lengths)
        log_probs = spanning.log_prob(heads)
        assert log_probs.isfinite().all()
        assert (log_probs > -1e-6).all()
        assert torch.equal(spanning.argmax, heads)
        is_projective = projective._is_member(heads)
        not_projective += int((~is_projective).sum())
        some = ProjectiveTree(arcs[is_projective], lengths=lengths[is_projective])
        assert some.log_prob(heads[is_projective]).isfinite().all()
        assert torch.equal(some.argmax, heads[is_projective])
        assert (projective.score(projective.argmax) <= spanning.score(heads) + 1e-3).all()
    assert not_projective == N_NOT_PROJECTIVE


def test_relations_come_back_with_the_heads(treebank: list[Tree]) -> None:
    names = sorted({relation for _, relations in treebank for relation in relations})
    number = {name: index for index, name in enumerate(names)}
    heads, lengths, some = list(batches(treebank, 32))[10]
    rows = [torch.tensor([number[relation] for relation in relations]) for _, relations in some]
    labels = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    scores = torch.zeros(*boosted(heads).shape, len(names))
    scores.scatter_(-1, torch.cat([labels[:, :1], labels], 1)[:, None, :, None].expand(*scores.shape[:3], 1), 50.0)
    trees = SpanningTree(boosted(heads), scores, lengths=lengths)
    gold = torch.stack([heads, labels], -1)
    assert torch.equal(trees.argmax, gold)
    assert (trees.log_prob(gold) > -1e-6).all()
    assert torch.equal(trees.top_k(2)[0][0], gold)
