"""The list of distributions, and of the structures that they are over: contract tests, benchmarks and `warmup` use it.

A newcomer copies a folder of `structures/` and adds its distribution here, which names the record of the structure.
`beam` is not in the list: it sums over nothing.
"""

import torch

from trelliswork.distributions.acceptor import Acceptor
from trelliswork.distributions.base import StructuredDistribution
from trelliswork.distributions.ctc import CTC
from trelliswork.distributions.ctc_alignment import CTCAlignment
from trelliswork.distributions.edit_alignment import EditAlignment
from trelliswork.distributions.factor_graph import FactorGraph
from trelliswork.distributions.linear_chain import LinearChain
from trelliswork.distributions.projective_tree import ProjectiveTree
from trelliswork.distributions.semi_markov import SemiMarkov
from trelliswork.distributions.span_tree import SpanTree
from trelliswork.distributions.spanning_tree import SpanningTree
from trelliswork.distributions.weighted_cfg import WeightedCFG
from trelliswork.errors import TrellisworkError
from trelliswork.plugins import plugins_of
from trelliswork.structures.record import Scores, Structure

KINDS: tuple[type[StructuredDistribution], ...] = (
    Acceptor, CTC, CTCAlignment, EditAlignment, FactorGraph, LinearChain, ProjectiveTree, SemiMarkov, SpanTree,
    SpanningTree, WeightedCFG,
)  # fmt: skip
STRUCTURES = tuple(kind._structure for kind in KINDS)
OF_STRUCTURE = {kind._structure.name: kind for kind in KINDS}


def distribution_of(name: str) -> type[StructuredDistribution]:
    """Return the distribution over a structure, also one of another package (entry points `trelliswork.structures`).

    >>> distribution_of("chain").__name__
    'LinearChain'
    """
    plugins = plugins_of("structures")
    if name in OF_STRUCTURE:
        return OF_STRUCTURE[name]
    if name not in plugins:
        raise TrellisworkError(f"expected one of the structures {', '.join([*OF_STRUCTURE, *plugins])}; got {name!r}")
    loaded = plugins[name].load()
    if not (isinstance(loaded, type) and issubclass(loaded, StructuredDistribution) and hasattr(loaded, "_structure")):
        problem = f"expected a StructuredDistribution with a _structure for {name!r}, got {loaded!r}"
        raise TrellisworkError(f"{problem}; {plugins[name].fix}")
    return loaded


def example_of(structure: Structure, scores: Scores) -> StructuredDistribution:
    """Return a small distribution of a structure, all its scores made by `scores(*shape)`."""
    return distribution_of(structure.name)(**structure.example(scores))


def exercise(structure: Structure) -> None:
    """Ask an example for every query in float32 and float64, forwards and backwards: the kernels are then compiled."""
    for dtype in (torch.float32, torch.float64):

        def zeros(*shape: int, dtype: torch.dtype = dtype) -> torch.Tensor:
            return torch.zeros(shape, dtype=dtype, requires_grad=True)

        dist = example_of(structure, zeros)
        answers = dist.log_prob(dist.argmax), dist.log_partition, dist.entropy(), dist.marginals
        torch.stack([answer.sum() for answer in answers]).sum().backward()
        dist.top_k(2)
        dist.sample((2,))
        dist.constrain(None).count  # noqa: B018, the query is what compiles
