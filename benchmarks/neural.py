"""Speed of networks under structured layers: `make bench` or `python -m benchmarks.neural [--quick]`.

A training step of a BiLSTM-CRF, with our layer or a peer's on the same network; the pyramid of a grSemi-CRF against a
loop over its cells; tagging from file to file on CoNLL-2000 (../shared/data/conll2000).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torchcrf
from torch import Tensor, nn
from torch_struct import LinearChainCRF

from benchmarks.grconv_cells import by_cells, forward_backward, problem
from benchmarks.report import OURS, Contest, main
from benchmarks.tagged_file import tag_file
from benchmarks.timing import Candidate
from trelliswork.data import Sentence, open_conll
from trelliswork.models import Tagger, TaggerConfig
from trelliswork.nn import CRF
from trelliswork.nn.encoders import RecurrentEncoder

DATA = Path(__file__).parents[2] / "shared" / "data" / "conll2000"
N_WORDS, WORD_DIM, HIDDEN, N_TAGS, BATCH, N = 10_000, 100, 200, 45, 32, 30
WINDOW, BILSTM = TaggerConfig(), TaggerConfig(encoder="lstm", hidden=HIDDEN, characters="cnn")
PACES = {"window": (WINDOW, 60_000), "BiLSTM-CRF": (BILSTM, 12_000)}  # tokens a second
NOTE = """
`make bench`: milliseconds. A training step is forward, backward and an AdamW update of a word table, an LSTM of 200
units from either end, or two layers of them, a linear layer and a CRF of 45 tags, on 32 sentences of 15 to 30 tokens
and two threads; only the CRF differs. The share of the structured layer is what its loss and gradients take of a step
with one layer of LSTMs: the whole step should take 20 times as long. The pyramid is that of 32 sentences of 30 tokens,
segments of up to 10 tokens, 100 dimensions, forward and backward on two threads; the loop makes one cell at a time, in
all sentences at once. Tagging reads, tags and writes the 47,377 tokens of the CoNLL-2000 test file in a running
process, on two threads; the pace that is wanted stands next to it like a peer.
"""

Loss = Callable[[Tensor], Tensor]
Task = Callable[[], object]


class Network(nn.Module):
    """All of a BiLSTM-CRF below the CRF."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.table = nn.Embedding(N_WORDS, WORD_DIM)
        self.encoder = RecurrentEncoder(WORD_DIM, hidden=HIDDEN, layers=layers)
        self.linear = nn.Linear(self.encoder.dim, N_TAGS)

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        return self.linear(self.encoder(self.table(words), mask))


def batch() -> tuple[Tensor, Tensor, Tensor]:
    """Words, gold tags and mask."""
    torch.manual_seed(0)
    lengths = torch.linspace(N // 2, N, BATCH).long()
    mask = torch.arange(N) < lengths[:, None]
    return torch.randint(N_WORDS, (BATCH, N)), torch.randint(N_TAGS, (BATCH, N)), mask


def training_step(words: Tensor, mask: Tensor, layers: int, layer: nn.Module, loss: Loss) -> Task:
    """One update of a network of its own, with so many layers of LSTMs, and the structured layer."""
    torch.manual_seed(0)
    network = Network(layers)
    optimizer = torch.optim.AdamW([*network.parameters(), *layer.parameters()], lr=1e-4, fused=True)

    def run() -> None:
        optimizer.zero_grad()
        loss(network(words, mask)).backward()
        optimizer.step()

    return run


def on_both_cores(call: Task) -> Task:
    def run() -> None:
        torch.set_num_threads(2)
        call()

    return run


class TorchStructLayer(nn.Module):
    """torch-struct's chain with transitions of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.transitions = nn.Parameter(torch.empty(N_TAGS, N_TAGS).uniform_(-0.1, 0.1))

    def loss(self, emissions: Tensor, tags: Tensor, lengths: Tensor) -> Tensor:
        scores = self.transitions.T + emissions[:, 1:, :, None]  # [batch, n - 1, to, from]
        first = nn.functional.pad(emissions[:, :1], (0, 0, 0, N - 2))  # the first token counts with the first edge
        chain = LinearChainCRF((scores + first[:, :, None]).contiguous(), lengths=lengths)
        gold = chain.struct.to_parts(tags, N_TAGS, lengths=lengths).type_as(scores)
        return -chain.log_prob(gold).sum()


def training_contests() -> Iterator[Contest]:
    words, tags, mask = batch()
    ours, theirs, struct = CRF(N_TAGS, batch_first=True), torchcrf.CRF(N_TAGS, batch_first=True), TorchStructLayer()
    losses: dict[str, tuple[nn.Module, Loss]] = {
        OURS: (ours, lambda scores: -ours(scores, tags, mask)),
        "pytorch-crf": (theirs, lambda scores: -theirs(scores, tags, mask)),
        "torch-struct": (struct, lambda scores: struct.loss(scores, tags, mask.sum(1))),
    }

    def contest(task: str, layers: int, targets: dict[str, float]) -> Contest:
        steps = {name: on_both_cores(training_step(words, mask, layers, *of)) for name, of in losses.items()}
        return Contest(task, size, [Candidate(name, step) for name, step in steps.items()], targets)

    size = f"2 x {HIDDEN}, {N_TAGS} tags, batch {BATCH}"
    step = contest("BiLSTM-CRF training step", 1, {"pytorch-crf": 1.5, "torch-struct": 3.0})
    yield step
    yield contest("the same with two layers of LSTMs", 2, {})

    emissions = torch.randn(BATCH, N, N_TAGS, requires_grad=True)

    def layer_alone() -> None:
        emissions.grad = None
        ours.zero_grad()
        (-ours(emissions, tags, mask)).backward()

    parts = [Candidate(OURS, on_both_cores(layer_alone)), Candidate("whole step", step.candidates[0].call)]
    yield Contest("structured layer of a step with one layer of LSTMs", size, parts, {"whole step": 20.0})


def pyramid_contest() -> Contest:
    dim, k = 100, 10
    pyramid, tokens = problem(BATCH, N, k, dim)
    seed = torch.randn(BATCH, N, k, dim)
    torch.testing.assert_close(pyramid(tokens), by_cells(pyramid, tokens))
    ways = {OURS: False, "loop over cells": True}

    def step(cells: bool) -> Task:
        return on_both_cores(lambda: forward_backward(pyramid, tokens, seed, cells=cells))

    candidates = [Candidate(name, step(cells)) for name, cells in ways.items()]
    size = f"batch {BATCH}, n {N}, k {k}, d {dim}"
    return Contest("grConv forward + backward", size, candidates, {"loop over cells": 3.0})


def tagging_contests(folder: Path) -> Iterator[Contest]:
    if not DATA.exists():
        print(f"{DATA} is not there: tagging is not measured")
        return
    learn: list[Sentence] = list(open_conll(DATA / "train.txt")[1])
    n_tokens = sum(len(sentence) for sentence in open_conll(DATA / "test.txt")[1])
    for name, (config, pace) in PACES.items():
        tagger = Tagger.from_data(learn, config).eval()

        def call(tagger: Tagger = tagger) -> None:
            tag_file(tagger, DATA / "test.txt", folder / "tagged")

        peer = f"{pace:,} tokens/s"
        told = {peer: 1000 * n_tokens / pace}
        candidates = [Candidate(OURS, on_both_cores(call)), Candidate("ours on one thread", call)]
        yield Contest(f"tagging, {name}", f"{n_tokens:,} tokens", candidates, {peer: 1.0}, told)


def contests() -> Iterator[Contest]:
    yield from training_contests()
    yield pyramid_contest()
    with tempfile.TemporaryDirectory() as folder:
        yield from tagging_contests(Path(folder))


if __name__ == "__main__":
    main("neural", "Speed of neural taggers and segmenters", NOTE, contests)
