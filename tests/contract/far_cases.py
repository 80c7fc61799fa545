"""Every query of every structure, asked of scores on another device: `python -m tests.contract.far_cases`.

In a process of its own, because the device must be there before anything is differentiated. Each case is a line of
JSON: which structure, which query, and what was wrong with the answer (nothing, if all is well).
"""

from __future__ import annotations

import copy
import json
import logging
import os
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from tests.contract import far_device
from trelliswork import logs
from trelliswork.distributions import LinearChain, kl_divergence
from trelliswork.distributions.acceptor import Acceptor
from trelliswork.distributions.registry import OF_STRUCTURE, STRUCTURES
from trelliswork.errors import TrellisworkError
from trelliswork.nn import CRF, CTC
from trelliswork.runtime import transfer
from trelliswork.structures.host_solver import HostSolver, solver_for
from trelliswork.structures.record import Structure
from trelliswork.structures.reference import Reference

SEEDED = "sample"
Change = Callable[[Tensor], Tensor]
Query = Callable[[Any], Any]
QUERIES: dict[str, Query] = {
    "log_partition": lambda dist: dist.log_partition,
    "marginals": lambda dist: dist.marginals,
    "entropy": lambda dist: dist.entropy(),
    "argmax": lambda dist: dist.argmax,
    "top_k": lambda dist: dist.top_k(3),
    "sample": lambda dist: dist.sample((2,), generator=torch.Generator().manual_seed(5)),
    "score": lambda dist: dist.score(dist.argmax),
    "log_prob": lambda dist: dist.log_prob(dist.argmax),
    "count": lambda dist: dist.count,
    "expected": lambda dist: dist.expected(torch.ones_like(dist.marginals)),
    "variance": lambda dist: dist.variance(torch.ones_like(dist.marginals).cumsum(-1)),
    "kl_divergence": lambda dist: kl_divergence(dist, dist.tempered(2.0)),
    "tempered": lambda dist: dist.tempered(0.5).log_partition,
    "constrain": lambda dist: dist.constrain(None).log_partition,
    "pairwise_marginals": lambda dist: dist.pairwise_marginals,
    "token_marginals": lambda dist: dist.token_marginals,
    "token_log_probs": lambda dist: dist.token_log_probs(dist.argmax),
    "argmax_lists": lambda dist: dist.argmax_lists(),
    "arc_probability": lambda dist: dist.arc_probability(0, 1),
}
ONE_EACH_WAY = ("log_partition", "marginals")  # the queries that ask their solver once, and need no value
SUMS = ("log_partition", "marginals", "entropy", "log_prob")
OPTIONAL = ("pairwise_marginals", "token_marginals", "token_log_probs", "argmax_lists", "arc_probability")


class Transfers:
    """Counts the calls of both transfer functions."""

    def __init__(self) -> None:
        self.to_host = self.to_device = 0
        there, back = transfer.to_host, transfer.to_device

        def to_host(tensors: Any) -> Any:
            self.to_host += bool(tensors)
            return there(tensors)

        def to_device(tensors: Any, device: torch.device) -> Any:
            self.to_device += bool(tensors)
            return back(tensors, device)

        transfer.to_host, transfer.to_device = to_host, to_device  # type: ignore[assignment]

    def reset(self) -> None:
        self.to_host = self.to_device = 0
        far_device.COPIES.clear()


def example(
    structure: Structure, dtype: torch.dtype, change: Change, requires: str = "all"
) -> tuple[Any, list[Tensor]]:
    """A distribution, its scores changed, and the leaves: all of them, the first alone, or none."""
    generator, leaves = torch.Generator().manual_seed(3), list[Tensor]()

    def scores(*shape: int) -> Tensor:
        leaf = change(torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype))
        if requires == "all" or (requires == "first" and not leaves):
            leaves.append(leaf.requires_grad_())
        return leaf

    return OF_STRUCTURE[structure.name](**structure.example(scores)), leaves


def flat(answer: Any) -> Iterator[Any]:
    """The tensors and plain values of an answer."""
    if isinstance(answer, tuple | list):
        for item in answer:
            yield from flat(item)
    else:
        yield answer


def same(far: Any, near: Any, tolerance: float) -> str:
    """What differs between an answer there and here, or nothing."""
    for there, here in zip(list(flat(far)), list(flat(near)), strict=True):
        if not isinstance(here, Tensor):
            if str(there) != str(here):
                return f"{there} there, {here} here"
            continue
        if there.device.type != far_device.NAME:
            return f"the result is on {there.device}"
        if there.dtype != here.dtype:
            return f"the result is {there.dtype}, not {here.dtype}"
        if not torch.allclose(there.detach().cpu().double(), here.detach().double(), rtol=tolerance, atol=tolerance):
            return f"{there.detach().cpu()} there, {here} here"
    return ""


def asked(dist: Any, query: str) -> Any:
    """The answer, or None where a structure has no such query."""
    try:
        return QUERIES[query](dist)
    except AttributeError:
        if query in OPTIONAL:
            return None
        raise


def to_far(tensor: Tensor) -> Tensor:
    return tensor.to(far_device.NAME)


def cases(structure: Structure, transfers: Transfers) -> Iterator[tuple[str, str]]:
    """(query, what is wrong) of one structure."""
    for dtype, tolerance, queries in ((torch.float32, 2e-5, tuple(QUERIES)), (torch.float64, 1e-9, SUMS)):
        for query in queries:
            near, _ = example(structure, dtype, lambda tensor: tensor)
            far, _ = example(structure, dtype, to_far)
            wanted = asked(near, query)
            yield f"{query} {dtype}", same(asked(far, query), wanted, tolerance)
    for query in SUMS:
        for requires in ("all", "first"):
            yield f"gradient of {query} by {requires}", _gradient(structure, query, requires)
        yield f"second gradient of {query}", _second_gradient(structure, query)
    for query in ONE_EACH_WAY:
        yield f"transfers of {query}", _transfers(structure, query, transfers)
    yield "one copy of the scores for all queries", _one_copy(structure, transfers)
    near, far = (example(structure, torch.float32, change, "none")[0] for change in (lambda tensor: tensor, to_far))
    solver = far._solver  # made first: parts of inference mode are not read outside of it on this device
    with torch.inference_mode():
        log_z = solver.log_partition().float()
    yield "log_partition in inference mode", same(log_z, near._solver.log_partition().float(), 2e-5)
    os.environ["TRELLISWORK_DEVICE_COSTS"] = "launch=0,device_rate=1e30"
    there = solver_for(far._structure, far.backend, *far._solved)
    yield "the reference where it is cheaper", "by kernel" * isinstance(there, HostSolver)
    os.environ["TRELLISWORK_DEVICE_COSTS"] = CHEAP


def _gradient(structure: Structure, query: str, requires: str) -> str:
    gradients = []
    for change in (to_far, lambda tensor: tensor):
        dist, leaves = example(structure, torch.float32, change, requires)
        answer = QUERIES[query](dist)
        weights = change(torch.arange(1.0, answer.numel() + 1).reshape(answer.shape))
        for _ in range(2):  # twice: the graph was asked to stay
            found = torch.autograd.grad((answer * weights).sum(), leaves, allow_unused=True, retain_graph=True)
        gradients.append([each for each in found if each is not None])
    return same(*gradients, 1e-4)


def _second_gradient(structure: Structure, query: str) -> str:
    gradients = []
    for change in (to_far, lambda tensor: tensor):
        dist, leaves = example(structure, torch.float64, change)
        first = torch.autograd.grad(QUERIES[query](dist).pow(2).sum(), leaves, create_graph=True, allow_unused=True)
        total = torch.stack([each.pow(2).sum() for each in first if each is not None]).sum()
        second = torch.autograd.grad(total, leaves, allow_unused=True)
        gradients.append([each for each in second if each is not None])
    return same(*gradients, 1e-7)


def _transfers(structure: Structure, query: str, transfers: Transfers) -> str:
    far, leaves = example(structure, torch.float32, to_far)
    solved = solver_for(far._structure, far.backend, *far._solved)
    transfers.reset()
    answer = solved.log_partition() if query == "log_partition" else solved.marginals()
    forth = transfers.to_host, transfers.to_device, far_device.COPIES["to_host"], far_device.COPIES["to_far"]
    by_torch = structure.name == "ctc strings"  # sums over single frames, without kernels
    if forth != (1, 1, 1, 1):
        return f"(to host, to device) {forth[:2]}, copies {forth[2:]}"
    total = torch.stack([each.sum() for each in flat(answer) if each.requires_grad]).sum()
    transfers.reset()
    torch.autograd.grad(total, leaves, allow_unused=True)
    back = transfers.to_host, transfers.to_device
    return "" if back == (1, 1) or by_torch else f"on the way back {back}"


def _one_copy(structure: Structure, transfers: Transfers) -> str:
    far, _ = example(structure, torch.float32, to_far, "none")
    solver = solver_for(far._structure, far.backend, *far._solved)
    transfers.reset()
    solver.log_partition(), solver.marginals(), solver.best(), solver.top_k(2)
    found = transfers.to_host, transfers.to_device
    return "" if found == (1, 4) else f"(to host, to device) {found}"


CHEAP = "launch=1"  # a device so slow that a copy is always cheaper


def messages() -> Iterator[tuple[str, str]]:
    """What is logged and refused."""
    emissions, transitions = torch.zeros(2, 3, 2), torch.zeros(2, 2)
    far = to_far(emissions), to_far(transitions)
    for name, build in {
        "kernels on another device": lambda: LinearChain(*far, backend="kernel"),
        "scores on two devices": lambda: LinearChain(far[0], transitions),
        "machines": lambda: Acceptor([(0, 1, "a")], far[0][0, 0, :1], final=1),
    }.items():
        yield name, refusal(build, "far:0")
    os.environ["TRELLISWORK_DEVICE_COSTS"] = "lunch=1"
    yield "a constant that is not one", refusal(lambda: LinearChain(*far).log_partition, "lunch=1")
    os.environ["TRELLISWORK_DEVICE_COSTS"] = CHEAP
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    logs.LOGGER.addHandler(handler)
    logs.LOGGER.setLevel(logging.DEBUG)
    for _ in range(2):
        LinearChain(*far).log_partition  # noqa: B018, the query is what is logged
    said = [record.getMessage() for record in records]
    expected = len(said) == 1 and "chain on far:0: kernels on a copy" in said[0]
    yield "the choice is logged once", "" if expected else str(said)
    kept = LinearChain(*far, backend="torch")
    yield "torch stays there", "" if isinstance(kept._solver, Reference) and kept.backend == "torch" else repr(kept)


def refusal(build: Callable[[], Any], words: str) -> str:
    """What is wrong with the sentence of an error."""
    try:
        build()
    except TrellisworkError as error:
        return "" if words in str(error) else str(error)
    return "no error"


def main() -> None:
    far_device.switch_on()
    os.environ["TRELLISWORK_DEVICE_COSTS"] = CHEAP
    transfers = Transfers()
    for structure in STRUCTURES:
        if structure.name != "automata":  # machines are on the CPU, and say so
            report(structure.name, cases(structure, transfers))
    report("layers", layers())
    report("messages", messages())


def layers() -> Iterator[tuple[str, str]]:
    """Losses of layers and their gradients, there and here."""
    emissions, log_probs = torch.randn(2, 5, 3), torch.randn(6, 2, 4).log_softmax(-1)
    tags, targets = torch.tensor([[0, 1, 2, 1, 0], [2, 2, 0, -100, 1]]), torch.tensor([[1, 2], [3, 0]])
    layer, frames = CRF(3, batch_first=True), (torch.tensor([6, 5]), torch.tensor([2, 1]))
    far_layer = copy.deepcopy(layer)
    for name in ("transitions", "start_transitions", "end_transitions"):
        setattr(far_layer, name, torch.nn.Parameter(to_far(getattr(layer, name).detach())))
    for name, (given, losses) in {
        "nn.CRF": (emissions, [lambda x: -layer(x, tags), lambda x: -far_layer(x, to_far(tags))]),
        "nn.CTC": (
            log_probs,
            [lambda x: CTC()(x, targets, *frames), lambda x: CTC()(x, to_far(targets), *map(to_far, frames))],
        ),
    }.items():
        near, far = given.clone().requires_grad_(), to_far(given).requires_grad_()
        here, there = losses[0](near), losses[1](far)
        here.backward(), there.backward()
        yield f"loss of {name}", same(there, here, 1e-5) or same(far.grad, near.grad, 1e-5)


def report(name: str, found: Iterator[tuple[str, str]]) -> None:
    """Print each case; an error ends those of a structure."""
    try:
        for query, problem in found:
            print(json.dumps([name, query, problem]), flush=True)
    except Exception as error:
        print(json.dumps([name, "the next", "".join(traceback.format_exception(error)[-4:])]), flush=True)


if __name__ == "__main__":
    main()
