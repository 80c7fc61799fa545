"""Trelliswork: structured prediction, p(y | x) = exp(score(x, y)) / Z(x), exact and fast.

    >>> import trelliswork as tw
    >>> chain = tw.LinearChain(emissions, transitions, lengths=lengths)   # a distribution over tag sequences
    >>> chain.log_prob(tags), chain.marginals, chain.argmax, chain.top_k(3), chain.entropy()
    >>> crf = tw.nn.CRF.from_tags(tags, scheme="IOB2", batch_first=True)   # a layer for your network
    >>> tagger = tw.Tagger.load("model")                                   # a trained model from disk

Names are imported when first used: `import trelliswork` alone loads neither torch nor numba. Other public names are in
the modules of their kind: layers in `trelliswork.nn`, readers in `trelliswork.data`, scores in `trelliswork.metrics`,
errors in `trelliswork.errors`.
"""

from __future__ import annotations

from importlib import import_module

from trelliswork.errors import TrellisworkError

TYPE_CHECKING = False  # typing alone takes longer to import than all of this
if TYPE_CHECKING:  # the same names as in _HOMES, for type checkers and editors
    from typing import Any

    from trelliswork import compat, draw, fst, nn, semirings
    from trelliswork.data import Sentence, read_conll
    from trelliswork.data.corpus import builtin_corpus
    from trelliswork.distributions import (
        CTC,
        HMM,
        EditAlignment,
        FactorGraph,
        LinearChain,
        ProbabilisticCFG,
        ProjectiveTree,
        SemiMarkov,
        SpanningTree,
        SpanTree,
        StructuredDistribution,
        WeightedCFG,
        kl_divergence,
    )
    from trelliswork.models import FeatureTagger, Tagger, TaggerConfig, load
    from trelliswork.runtime.warming import warmup
    from trelliswork.structures import beam
    from trelliswork.structures.grammar.grammar import Grammar
    from trelliswork.structures.grammar.tree import Tree
    from trelliswork.training import TrainingConfig, train

__version__ = "0.1.0"

_HOMES = {
    "trelliswork": "compat draw fst nn semirings",
    "trelliswork.data": "Sentence read_conll",
    "trelliswork.data.corpus": "builtin_corpus",
    "trelliswork.distributions": "CTC EditAlignment FactorGraph HMM LinearChain ProbabilisticCFG ProjectiveTree "
    "SemiMarkov SpanTree SpanningTree StructuredDistribution WeightedCFG kl_divergence",
    "trelliswork.models": "FeatureTagger Tagger TaggerConfig load",
    "trelliswork.runtime.warming": "warmup",
    "trelliswork.structures": "beam",
    "trelliswork.structures.grammar.grammar": "Grammar",
    "trelliswork.structures.grammar.tree": "Tree",
    "trelliswork.training": "TrainingConfig train",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [  # written out: type checkers do not read tables
    "CTC",
    "HMM",
    "EditAlignment",
    "FactorGraph",
    "FeatureTagger",
    "Grammar",
    "LinearChain",
    "ProbabilisticCFG",
    "ProjectiveTree",
    "SemiMarkov",
    "Sentence",
    "SpanTree",
    "SpanningTree",
    "StructuredDistribution",
    "Tagger",
    "TaggerConfig",
    "TrainingConfig",
    "Tree",
    "TrellisworkError",
    "WeightedCFG",
    "beam",
    "builtin_corpus",
    "compat",
    "draw",
    "fst",
    "kl_divergence",
    "load",
    "nn",
    "read_conll",
    "semirings",
    "train",
    "warmup",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'trelliswork' has no attribute {name!r}")
    home = _HOME[name]
    is_module = name.islower() and home in ("trelliswork", "trelliswork.structures")
    value = import_module(f"{home}.{name}") if is_module else getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])  # and not what this file imports for itself
