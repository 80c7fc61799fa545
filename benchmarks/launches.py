"""Operations that a loss on a device launches, counted on the CPU: `python -m benchmarks.launches [--only NAME]`.

A launch is a leaf `aten` operation that is not a view, as `torch.profiler` sees it: on a GPU each is a kernel (some are
two or three), and takes 5 to 10 microseconds however small it is. Ours by `backend="torch"`, in float64 and with the
choice of recursion of a device that is not the CPU; pytorch-crf and torch-struct in float32, with scores of the same
size. Written by `python -m benchmarks.launches`; nothing here was run on a card.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile

from trelliswork.distributions import LinearChain, ProjectiveTree, SemiMarkov, SpanTree
from trelliswork.structures.chain import scan

PAGE = Path("docs/results/launches.md")
NOT_LAUNCHED = {
    "aten::" + name
    for name in (
        "view", "_unsafe_view", "reshape", "_reshape_alias", "as_strided", "as_strided_", "expand", "expand_as", "t",
        "transpose",
        "permute", "unsqueeze", "unsqueeze_", "squeeze", "squeeze_",
        "select", "slice", "narrow", "unbind", "split", "split_with_sizes", "chunk",
        "detach", "alias", "diagonal", "movedim", "unflatten", "flatten", "unfold", "empty", "empty_like",
        "empty_strided", "new_empty", "new_empty_strided", "result_type", "resize_", "lift_fresh", "numpy_T", "mT",
        "is_nonzero", "item", "to", "resolve_conj", "resolve_neg", "set_", "data", "requires_grad_", "real", "imag",
    )
}  # fmt: skip
Call = Callable[[], object]


class Row(NamedTuple):
    """A contest: its name, the wanted number of launches, and a call for each library."""

    name: str
    wanted: int
    calls: dict[str, Call]


def launches(call: Call) -> int:
    """Return how many operations a call launches, the second time it is made."""
    call()
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        call()
    return sum(_is_launch(event) for event in recorded.events())


def _is_launch(event: FunctionEvent) -> bool:
    """Return whether an operation computes by itself: not a view, and not done by others below it."""
    own = event.name.startswith("aten::") and event.name not in NOT_LAUNCHED
    return own and not any(map(_launches_below, event.cpu_children))


def _launches_below(event: FunctionEvent) -> bool:
    return _is_launch(event) or any(map(_launches_below, event.cpu_children))


def scores(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1)).requires_grad_()


def with_backward(total: Callable[[], Tensor]) -> Call:
    return lambda: total().sum().backward()


def chain_rows(batch: int, n: int, c: int) -> list[Row]:
    import torchcrf
    from torch_struct import LinearChainCRF

    emissions, arcs, tags = scores(batch, n, c), scores(c, c), torch.randint(c, (batch, n))
    mask = torch.ones(batch, n, dtype=torch.bool)
    layer = torchcrf.CRF(c, batch_first=True)
    potentials = scores(batch, n - 1, c, c)

    def ours() -> LinearChain:
        return LinearChain(emissions, arcs, mask=mask, backend="torch")

    shape = f"({batch}, {n}, {c})"
    return [
        Row(f"chain {shape}, loss", 200, {
            "ours": with_backward(lambda: ours().log_prob(tags)),
            "pytorch-crf": with_backward(lambda: layer(emissions, tags, mask)),
            "torch-struct": with_backward(lambda: LinearChainCRF(potentials).partition),
        }),
        Row(f"chain {shape}, argmax", 200, {
            "ours": lambda: ours().argmax,
            "pytorch-crf": lambda: layer.decode(emissions, mask),
            "torch-struct": lambda: LinearChainCRF(potentials).argmax,
        }),
        Row(f"chain {shape}, marginals", 400, {
            "ours": lambda: ours().marginals,
            "torch-struct": lambda: LinearChainCRF(potentials).marginals,
        }),
    ]  # fmt: skip


def segment_rows(batch: int, n: int, k: int, c: int) -> list[Row]:
    from torch_struct import SemiMarkovCRF

    segments, arcs = scores(batch, n, k, c), scores(c, c)
    potentials = scores(batch, n, k + 1, c, c)

    def ours() -> SemiMarkov:
        return SemiMarkov(segments, arcs, backend="torch")

    shape = f"({batch}, {n}, {k}, {c})"
    return [
        Row(f"semi-Markov {shape}, log Z", 230, {
            "ours": with_backward(lambda: ours().log_partition),
            "torch-struct": with_backward(lambda: SemiMarkovCRF(potentials).partition),
        }),
        Row(f"semi-Markov {shape}, argmax", 230, {
            "ours": lambda: ours().argmax,
            "torch-struct": lambda: SemiMarkovCRF(potentials).argmax,
        }),
    ]  # fmt: skip


def span_rows(batch: int, n: int, c: int) -> list[Row]:
    from torch_struct import TreeCRF

    spans = scores(batch, n, n, c)
    shape = f"({batch}, {n}, {c})"
    return [
        Row(f"span trees {shape}, log Z", 600, {
            "ours": with_backward(lambda: SpanTree(spans, backend="torch").log_partition),
            "torch-struct": with_backward(lambda: TreeCRF(spans).partition),
        }),
        Row(f"span trees {shape}, argmax", 600, {
            "ours": lambda: SpanTree(spans, backend="torch").argmax_nodes,
            "torch-struct": lambda: TreeCRF(spans).argmax,
        }),
    ]  # fmt: skip


def arc_rows(batch: int, n: int) -> list[Row]:
    from torch_struct import DependencyCRF

    arcs, theirs = scores(batch, n + 1, n + 1), scores(batch, n, n)
    shape = f"({batch}, {n})"
    return [
        Row(f"projective trees {shape}, log Z", 1500, {
            "ours": with_backward(lambda: ProjectiveTree(arcs, backend="torch").log_partition),
            "torch-struct": with_backward(lambda: DependencyCRF(theirs, multiroot=False).partition),
        }),
        Row(f"projective trees {shape}, argmax", 1500, {
            "ours": lambda: ProjectiveTree(arcs, backend="torch").argmax,
            "torch-struct": lambda: DependencyCRF(theirs, multiroot=False).argmax,
        }),
    ]  # fmt: skip


GROUPS: dict[str, Callable[[], list[Row]]] = {
    "chain": lambda: chain_rows(32, 128, 20),
    "eisner": lambda: arc_rows(8, 30),
    "cky": lambda: span_rows(8, 30, 10),
    "segments": lambda: segment_rows(8, 60, 8, 8),
}
LIBRARIES = ("ours", "pytorch-crf", "torch-struct")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=list(GROUPS), help="one structure; nothing is written")
    parser.add_argument("--ours", action="store_true", help="ours alone; nothing is written")
    chosen = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    with scan.chosen_as_on("other"):
        count(chosen)


def count(chosen: argparse.Namespace) -> None:
    """Count what is asked for, and write the page if that is everything."""
    lines = ["| work | " + " | ".join(LIBRARIES) + " | wanted |", "|---|" + "---:|" * (len(LIBRARIES) + 1)]
    for row in [row for name in ([chosen.only] if chosen.only else GROUPS) for row in GROUPS[name]()]:
        counts = {name: launches(call) for name, call in row.calls.items() if name == "ours" or not chosen.ours}
        columns = [f"{counts[name]:,}" if name in counts else "" for name in LIBRARIES]
        lines.append(f"| {row.name} | {' | '.join(columns)} | {row.wanted:,} |")
        print(lines[-1], flush=True)
    if not chosen.only and not chosen.ours:
        page = ["# Launched operations", "", *(__doc__ or "").splitlines()[2:7], "", *lines, ""]
        PAGE.write_text("\n".join(page), encoding="utf-8")


if __name__ == "__main__":
    main()
