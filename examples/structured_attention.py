"""Attention that learns what to select from the answer alone: brackets and windows, where a softmax is lost.

    python -m examples.structured_attention            # some ten seconds on one core
    python -m examples.structured_attention --quick

Two tasks. In both, a row of letters hides a part that matters; the answer is the most frequent letter in it; no one
says which part. Every model scores each token by a linear layer, attends, and reads the answer off the context.

- brackets: "a c ( b b a ) d ( b )" -> b. What matters is between brackets, so an "a" inside and an "a" outside score
  the same: attention that weighs tokens one by one cannot tell them apart. A chain can learn to switch at brackets.
- windows: five neighbours matter, and each token carries a noisy hint whether it is one of them. A chain pools the
  hints of neighbours; segments also learn how wide a window is.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from trelliswork.nn import BernoulliAttention, ChainAttention, SegmentAttention, SoftmaxAttention

N, N_LETTERS, OPEN, CLOSE = 20, 4, 4, 5
WIDTH, HINT = 5, 1.2


class Task(NamedTuple):
    """Rows to learn from: what tokens are scored by, the values that attention sums, and the answers."""

    features: Tensor
    values: Tensor
    answers: Tensor

    def rows(self, index: Tensor) -> Task:
        return Task(*(each[index] for each in self))


def brackets(n_rows: int, generator: torch.Generator) -> Task:
    """Rows with one or two pairs of brackets; the answer is the most frequent letter between them."""
    tokens = torch.randint(N_LETTERS, (4 * n_rows, N), generator=generator)
    places = torch.rand(4 * n_rows, N, generator=generator).argsort(1)[:, :4].sort(1).values
    has_two = torch.rand(4 * n_rows, generator=generator) < 0.5
    for column, bracket in enumerate((OPEN, CLOSE, OPEN, CLOSE)):
        here = one_hot(places[:, column], N).bool() & (has_two[:, None] | (column < 2))
        tokens = torch.where(here, bracket, tokens)
    depth = ((tokens == OPEN).long() - (tokens == CLOSE).long()).cumsum(1)
    return _task(one_hot(tokens, 6).float(), tokens, depth > 0, n_rows)


def windows(n_rows: int, generator: torch.Generator) -> Task:
    """Rows with a hidden window; each token carries a hint, noise of variance 1 raised by HINT inside."""
    tokens = torch.randint(N_LETTERS, (4 * n_rows, N), generator=generator)
    first = torch.randint(N - WIDTH + 1, (4 * n_rows, 1), generator=generator)
    inside = (torch.arange(N) >= first) & (torch.arange(N) < first + WIDTH)
    hints = HINT * inside + torch.randn(4 * n_rows, N, generator=generator)
    return _task(hints[..., None], tokens, inside, n_rows)


def _task(features: Tensor, tokens: Tensor, inside: Tensor, n_rows: int) -> Task:
    """The first rows that have one most frequent letter inside."""
    values = one_hot(tokens, 6).float()
    counts = (values[..., :N_LETTERS] * inside[..., None]).sum(1)
    most = counts.topk(2).values
    clear = (most[:, 0] > most[:, 1]).nonzero()[:n_rows, 0]
    return Task(features, values, counts.argmax(-1)).rows(clear)


class Reader(nn.Module):
    """Scores of tokens, attention, an answer; a chain's transitions see the tokens too."""

    def __init__(self, attention: nn.Module, n_features: int) -> None:
        super().__init__()
        self.attention = attention
        self.score, self.answer = nn.Linear(n_features, 1), nn.Linear(6, N_LETTERS)
        self.switch = nn.Linear(n_features, 4) if isinstance(attention, ChainAttention) else None

    def forward(self, task: Task) -> Tensor:
        more = () if self.switch is None else (None, self.switch(task.features[:, 1:]).unflatten(-1, (2, 2)))
        return self.answer(self.attention(self.score(task.features)[..., 0], task.values, *more).context)


def accuracy(make_attention: Callable[[], nn.Module], train: Task, test: Task, n_steps: int, seed: int = 0) -> float:
    """The share of right answers on `test` after training on `train`."""
    torch.manual_seed(seed)
    reader = Reader(make_attention(), train.features.shape[-1])
    optimiser = torch.optim.Adam(reader.parameters(), lr=0.05)
    for _ in range(n_steps):
        batch = train.rows(torch.randint(len(train.answers), (50,)))
        optimiser.zero_grad()
        cross_entropy(reader(batch), batch.answers).backward()
        optimiser.step()
    with torch.no_grad():
        return (reader(test).argmax(-1) == test.answers).float().mean().item()


ATTENTIONS: dict[str, Callable[[], nn.Module]] = {
    "softmax": SoftmaxAttention,
    "independent": BernoulliAttention,
    "chain": ChainAttention,
    "segments": lambda: SegmentAttention(max_width=8),
}
TASKS = {"brackets": brackets, "windows": windows}


def table(n_rows: int, n_steps: int) -> dict[tuple[str, str], float]:
    """Held-out accuracy of each attention on each task."""
    found = {}
    for task_name, make in TASKS.items():
        generator = torch.Generator().manual_seed(0)
        train, test = make(n_rows, generator), make(n_rows, generator)
        for name, attention in ATTENTIONS.items():
            found[name, task_name] = accuracy(attention, train, test, n_steps)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Structured attention against a softmax on two small tasks.")
    parser.add_argument("--quick", action="store_true", help="fewer rows and steps")
    torch.set_num_threads(1)
    n_rows, n_steps = (300, 100) if parser.parse_args().quick else (1000, 400)
    found = table(n_rows, n_steps)
    print(f"right answers on {n_rows} held-out rows, in per cent (guessing: 25)")
    print(f"{'attention':14}" + "".join(f"{task:>10}" for task in TASKS))
    for name in ATTENTIONS:
        print(f"{name:14}" + "".join(f"{100 * found[name, task]:10.1f}" for task in TASKS))


if __name__ == "__main__":
    main()
