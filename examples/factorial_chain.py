"""Parts of speech and chunks at once: a factorial CRF on CoNLL-2000, and what its loops buy.

Two chains over a sentence, one of parts of speech and one of chunk tags, are tied at each word. That makes a ladder,
full of loops, which the junction tree still solves exactly. The same features without the ties are two linear chains.

    python examples/factorial_chain.py path/to/conll2000        # the folder with train.txt and test.txt
"""

from __future__ import annotations

import itertools
import sys
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from trelliswork import FactorGraph, Sentence, read_conll
from trelliswork.distributions import factorial_chain
from trelliswork.metrics import span_scores

N_FEATURES = 1 << 15
POS_CLASSES = ("NN", "VB", "JJ", "RB", "DT", "IN", "PR", "CD", "CC", "TO", "MD", "W")


def coarse(pos: str) -> str:
    """A dozen classes, by the first letters of the Penn tag; "." for all the rest."""
    return next((name for name in POS_CLASSES if pos.startswith(name)), ".")


def simple(chunk: str) -> str:
    """NP, VP, PP and one for the other chunks."""
    return chunk if chunk == "O" or chunk[2:] in ("NP", "VP", "PP") else f"{chunk[:2]}XP"


def features(words: tuple[str, ...]) -> list[list[int]]:
    """Hashed observations of each word: itself, its ends, its shape, its neighbours."""
    lower = ["<s>", *(word.lower() for word in words), "</s>"]
    found = []
    for t, word in enumerate(words, 1):
        shape = ("A" if word[0].isupper() else "a") + ("9" if any(letter.isdigit() for letter in word) else "")
        own = lower[t]
        named = [own, own[-1:], own[-2:], own[-3:], own[:2], shape, f"<{lower[t - 1]}", f">{lower[t + 1]}"]
        found.append([zlib.crc32(f"{kind}{name}".encode()) % N_FEATURES for kind, name in enumerate(named)])
    return found


@dataclass(frozen=True)
class Batch:
    """Sentences padded to one length; variable 2t is the part of speech of word t, 2t + 1 its chunk."""

    features: Tensor  # [batch, n, kinds]
    labels: Tensor  # [batch, 2n]
    mask: Tensor  # [batch, 2n]


class Labels:
    """The two label sets, as the training sentences have them."""

    def __init__(self, sentences: list[Sentence]):
        self.pos = sorted({coarse(tag) for sentence in sentences for tag in sentence.features[0]})
        self.chunks = sorted({simple(tag) for sentence in sentences for tag in sentence.tags or ()})

    def batches(self, sentences: list[Sentence], size: int = 32) -> Iterator[Batch]:
        by_length = sorted(sentences, key=len)
        for first in range(0, len(by_length), size):
            yield self._batch(by_length[first : first + size])

    def _batch(self, rows: list[Sentence]) -> Batch:
        n = -(-max(map(len, rows)) // 8) * 8  # few different lengths: each has a junction tree of its own
        batch = Batch(
            torch.zeros(len(rows), n, 8, dtype=torch.long),
            torch.zeros(len(rows), 2 * n, dtype=torch.long),
            torch.zeros(len(rows), 2 * n, dtype=torch.bool),
        )
        for row, sentence in enumerate(rows):
            length = len(sentence)
            batch.features[row, :length] = torch.tensor(features(sentence.words))
            batch.mask[row, : 2 * length] = True
            batch.labels[row, : 2 * length : 2] = torch.tensor(
                [self.pos.index(coarse(t)) for t in sentence.features[0]]
            )
            batch.labels[row, 1 : 2 * length : 2] = torch.tensor(
                [self.chunks.index(simple(t)) for t in sentence.tags or ()]
            )
        return batch


class FactorialCRF(nn.Module):
    """Scores of words for both chains, transitions of both, and the ties between them (or none)."""

    def __init__(self, n_pos: int, n_chunks: int, *, tied: bool):
        super().__init__()
        self.n_pos, self.n_chunks, self.tied = n_pos, n_chunks, tied
        self.words = nn.EmbeddingBag(N_FEATURES, n_pos + n_chunks, mode="sum")
        nn.init.zeros_(self.words.weight)
        self.pos = nn.Parameter(torch.zeros(n_pos, n_pos))
        self.chunks = nn.Parameter(torch.zeros(n_chunks, n_chunks))
        self.across = nn.Parameter(torch.zeros(n_pos, n_chunks), requires_grad=tied)

    def forward(self, batch: Batch) -> FactorGraph:
        size, n, kinds = batch.features.shape
        scores = self.words(batch.features.reshape(-1, kinds)).reshape(size, n, -1)
        c = max(self.n_pos, self.n_chunks)
        pos = nn.functional.pad(scores[..., : self.n_pos], (0, c - self.n_pos))
        chunks = nn.functional.pad(scores[..., self.n_pos :], (0, c - self.n_chunks))
        unary = torch.stack([pos, chunks], 2).reshape(size, 2 * n, c)
        factors = factorial_chain(n, [self.pos, self.chunks], [self.across])
        sizes = [self.n_pos, self.n_chunks] * n
        return FactorGraph(unary, factors if self.tied else factors[:2], sizes=sizes, mask=batch.mask)


def train(model: FactorialCRF, batches: list[Batch], epochs: int) -> float:
    """Maximum likelihood; returns the seconds it took."""
    optimizer, started = torch.optim.Adam(model.parameters(), lr=0.05), time.perf_counter()
    order = torch.Generator().manual_seed(0)
    for _ in range(epochs):
        for index in torch.randperm(len(batches), generator=order).tolist():
            batch = batches[index]
            loss = -model(batch).log_prob(batch.labels).sum() / batch.mask.sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return time.perf_counter() - started


@torch.no_grad()
def evaluate(model: FactorialCRF, batches: list[Batch], labels: Labels) -> dict[str, float]:
    right = {"POS": 0, "words": 0, "both right": 0}
    gold, predicted = [], []
    log_prob = 0.0
    for batch in batches:
        graph = model(batch)
        best, mask = graph.argmax, batch.mask[:, ::2]
        log_prob += float(graph.log_prob(batch.labels).sum())
        same = (best == batch.labels).reshape(*mask.shape, 2)
        right["words"] += int(mask.sum())
        right["POS"] += int((same[..., 0] & mask).sum())
        right["both right"] += int((same.all(-1) & mask).sum())
        for values, where in ((gold, batch.labels), (predicted, best)):
            for row, length in zip(where[:, 1::2].tolist(), mask.sum(1).tolist(), strict=True):
                values.append([labels.chunks[tag] for tag in row[:length]])
    return {
        "POS": 100 * right["POS"] / right["words"],
        "chunk F1": 100 * span_scores(gold, predicted, "IOB2").f1,
        "both right": 100 * right["both right"] / right["words"],
        "nats a word": -log_prob / right["words"],
    }


@torch.no_grad()
def approximate(model: FactorialCRF, batches: list[Batch]) -> None:
    """The ladder by loopy propagation and AD3, beside the exact answers."""
    gaps, certified, times = [], [], {"junction tree": 0.0, "propagation": 0.0, "AD3": 0.0}
    for batch in batches:
        graph, clock = model(batch), time.perf_counter
        started = clock()
        exact, best = graph.marginals, graph.score(graph.argmax)
        times["junction tree"] += clock() - started
        started = clock()
        beliefs = graph.propagate(tolerance=1e-4)
        times["propagation"] += clock() - started
        started = clock()
        found = graph.ad3()
        times["AD3"] += clock() - started
        gaps.append((beliefs.marginals - exact).abs().amax((1, 2)))
        certified.append(found.certified)
        assert (found.bound >= best - 1e-3).all()
    largest, sure = torch.cat(gaps), torch.cat(certified).float()
    print(
        f"loopy propagation: the largest error of a marginal is {largest.mean():.3f} in the mean sentence, "
        f"{largest.max():.2f} in the worst"
    )
    print(f"AD3: {100 * sure.mean():.1f} % of the sentences come with a proof that their labels are the best")
    print("seconds: " + ", ".join(f"{name} {seconds:.2f}" for name, seconds in times.items()))


def main(folder: Path, n_train: int = 600, n_test: int = 400, epochs: int = 6) -> dict[str, dict[str, float]]:
    torch.manual_seed(0)
    sentences = [
        list(itertools.islice(read_conll(folder / name), n))
        for name, n in (("train.txt", n_train), ("test.txt", n_test))
    ]
    labels = Labels(sentences[0])
    training, testing = (list(labels.batches(each)) for each in sentences)
    print(
        f"{n_train} sentences, {len(labels.pos)} parts of speech, {len(labels.chunks)} chunk tags; {n_test} to test on"
    )
    results, model = {}, None
    for name, tied in (("two chains", False), ("tied chains", True)):
        model = FactorialCRF(len(labels.pos), len(labels.chunks), tied=tied)
        seconds = train(model, training, epochs)
        results[name] = evaluate(model, testing, labels)
        print(
            f"{name:12}"
            + "".join(f"  {key} {value:6.2f}" for key, value in results[name].items())
            + f"  ({seconds:.0f} s)"
        )
    assert model is not None
    approximate(model, testing[::4])
    return results


if __name__ == "__main__":
    torch.set_num_threads(1)
    if len(sys.argv) != 2 or not (Path(sys.argv[1]) / "train.txt").is_file():
        sys.exit("usage: python examples/factorial_chain.py FOLDER, a folder with train.txt and test.txt of CoNLL-2000")
    main(Path(sys.argv[1]))
