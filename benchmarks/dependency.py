"""Speed of dependency trees against their peers: `python -m benchmarks.dependency [--quick]`.

The same arc scores, gold trees and lengths go to every library; the work is the loss and the gradient of all scores, or
the best trees. Nothing else should run on the machine. Writes docs/results/bench-dependency.md and .json.
"""

from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from benchmarks.report import OURS, Contest, Growth, main
from benchmarks.timing import Candidate

SIZES = [(8, 25), (8, 60), (32, 25), (1, 25)]
EISNER, MATRIX_TREE = "Eisner", "matrix-tree"
ATTENTION = "attention + gradient"
TARGETS = {
    f"{EISNER}: loss + gradient": {"torch-struct": 30.0, "supar": 20.0},
    f"{EISNER}: argmax": {"torch-struct": 50.0},
    f"{EISNER}: attention + gradient": {"torch-struct": 30.0},
    f"{MATRIX_TREE}: loss + gradient": {"torch-struct": 1.2, "supar": 1.2},
    f"{MATRIX_TREE}: argmax": {},
    f"{MATRIX_TREE}: attention + gradient": {"torch-struct": 0.8},
}
Tasks = dict[str, Callable[[], object]]


@dataclass(frozen=True)
class Problem:
    """One batch: arc scores [batch, n+1, n+1] that want gradients, lengths of half to full, gold heads, and vectors of
    the nodes to attend to."""

    arcs: Tensor
    lengths: Tensor
    heads: Tensor
    values: Tensor

    @staticmethod
    def of(batch: int, n: int) -> Problem:
        from trelliswork import ProjectiveTree

        generator = torch.Generator().manual_seed(0)
        lengths = torch.randint(n // 2, n + 1, (batch,), generator=generator)
        lengths[0] = n
        arcs, gold = torch.randn(2, batch, n + 1, n + 1, generator=generator)
        heads = ProjectiveTree(gold, lengths=lengths).argmax
        return Problem(arcs.requires_grad_(), lengths, heads, torch.randn(batch, n + 1, 64, generator=generator))


def step(scores: Tensor, loss: Callable[[], Tensor]) -> Callable[[], None]:
    """The loss and the gradient of all scores."""

    def run() -> None:
        scores.grad = None
        loss().sum().backward()

    return run


def ours(problem: Problem, kind: str) -> Tasks:
    from trelliswork import ProjectiveTree, SpanningTree
    from trelliswork.nn import TreeAttention

    family = ProjectiveTree if kind == EISNER else SpanningTree
    attention = TreeAttention("projective" if kind == EISNER else "spanning")
    arcs, lengths = problem.arcs, problem.lengths
    return {
        "loss + gradient": step(arcs, lambda: -family(arcs, lengths=lengths).log_prob(problem.heads)),
        "argmax": lambda: family(arcs.detach(), lengths=lengths).argmax,
        ATTENTION: step(arcs, lambda: attention(arcs, problem.values, lengths).context.square()),
    }


def torch_struct(problem: Problem, kind: str) -> Tasks:
    """torch-struct keeps root arcs on the diagonal; it has no matrix-tree log_prob and no spanning argmax."""
    from torch_struct import DependencyCRF, NonProjectiveDependencyCRF

    warnings.filterwarnings("ignore", message=".*arg_constraints.*")
    arcs = problem.arcs.detach()
    folded = (
        arcs[:, 1:, 1:] - torch.diag_embed(arcs[:, 1:, 1:].diagonal(dim1=1, dim2=2) - arcs[:, 0, 1:])
    ).contiguous()
    potentials, lengths = folded.requires_grad_(), problem.lengths
    words = torch.arange(folded.shape[1])
    heads = torch.where(problem.heads > 0, problem.heads - 1, words)
    parts = torch.zeros_like(folded).scatter_(1, heads[:, None], 1.0) * (words < lengths[:, None])[:, None]
    family = DependencyCRF if kind == EISNER else NonProjectiveDependencyCRF

    def attention() -> Tensor:
        marginals = family(potentials, lengths=lengths, multiroot=False).marginals
        roots = marginals.diagonal(dim1=1, dim2=2)
        weights = torch.cat([roots[:, None], marginals - torch.diag_embed(roots)], 1)
        return torch.einsum("bhm,bhd->bmd", weights, problem.values).square()

    if kind == EISNER:
        return {
            ATTENTION: step(potentials, attention),
            "loss + gradient": step(
                potentials, lambda: -DependencyCRF(potentials, lengths=lengths, multiroot=False).log_prob(parts)
            ),
            "argmax": lambda: DependencyCRF(potentials * 1.0, lengths=lengths, multiroot=False).argmax,
        }

    def loss() -> Tensor:
        partition = NonProjectiveDependencyCRF(potentials, lengths=lengths, multiroot=False).partition
        return partition - (potentials * parts).sum((1, 2))

    return {"loss + gradient": step(potentials, loss), ATTENTION: step(potentials, attention)}


@cache
def supar_structs() -> types.ModuleType:
    """supar's distributions without its parsers, which want packages of their own."""
    found = find_spec("supar")
    assert found is not None and found.submodule_search_locations is not None
    for name, folder in (("supar", ""), ("supar.utils", "/utils")):
        package = types.ModuleType(name)
        package.__path__ = [found.submodule_search_locations[0] + folder]
        sys.modules.setdefault(name, package)
    import supar.structs  # type: ignore[import-not-found]

    return supar.structs


def supar(problem: Problem, kind: str) -> Tasks:
    """supar's scores are [dependent, head], with the root among the dependents."""
    structs = supar_structs()
    family = structs.DependencyCRF if kind == EISNER else structs.MatrixTree
    scores = problem.arcs.detach().transpose(1, 2).contiguous().requires_grad_()
    heads = torch.cat([torch.zeros_like(problem.heads[:, :1]), problem.heads], 1)
    return {
        "loss + gradient": step(scores, lambda: -family(scores, problem.lengths).log_prob(heads)),
        "argmax": lambda: family(scores.detach(), problem.lengths).argmax,
    }


def contests() -> Iterator[Contest]:
    libraries = {OURS: ours, "torch-struct": torch_struct}
    if find_spec("supar"):
        libraries["supar"] = supar
    else:
        print("supar is not installed and left out: pip install --no-deps supar==1.1.4 to compare with it")
    for kind in (EISNER, MATRIX_TREE):
        for size in SIZES:
            problem = Problem.of(*size)
            found = {name: tasks(problem, kind) for name, tasks in libraries.items()}
            for task in ("loss + gradient", "argmax", ATTENTION):
                calls = [Candidate(name, tasks[task]) for name, tasks in found.items() if task in tasks]
                calls += [Candidate(OURS, found[OURS][task], threads=2)]
                name = f"{kind}: {task}"
                targets = {peer: x for peer, x in TARGETS[name].items() if peer in libraries}
                yield Contest(name, str(size), calls, targets)


def growths() -> Iterator[Growth]:
    for kind in (EISNER, MATRIX_TREE):
        for task, exponent in (("loss + gradient", 3.0), ("argmax", 3.0 if kind == EISNER else 2.0)):

            def call(n: int, kind: str = kind, task: str = task) -> Callable[[], object]:
                return ours(Problem.of(4, n), kind)[task]

            yield Growth(f"{kind}: {task}, (4, n)", (60, 120, 240), exponent, call)


NOTE = """
`python -m benchmarks.dependency`: milliseconds a call, medians of 21 interleaved rounds in one process, float32, one
thread unless said; in brackets how many times as long as ours (the median of the rounds' ratios). Sizes are (batch, n),
rows of half to full length, one root word. The loss is -log p of a gold tree, with the gradient of all arc scores;
argmax gives heads; attention sums vectors of 64 by the arcs' posteriors (`nn.TreeAttention`), with the gradient of all
arc scores. Ours checks scores and trees on the way, and computes in float64. torch-struct has no log_prob of spanning
trees (the score is subtracted outside) and no best spanning tree. supar's distributions are used without its parsers
(`pip install --no-deps supar==1.1.4`); where it is not installed it is left out.
"""


if __name__ == "__main__":
    main("dependency", "Speed of dependency trees", NOTE, contests, growths)
