"""Trelliswork: structured prediction, p(y | x) = exp(score(x, y)) / Z(x), exact and fast.

    >>> import trelliswork as tw
    >>> chain = tw.LinearChain(emissions, transitions, lengths=lengths)   # a distribution over tag sequences
    >>> chain.log_prob(tags), chain.marginals, chain.argmax, chain.top_k(3), chain.entropy()
    >>> crf = tw.CRF.from_tags(tags, scheme="IOB2", batch_first=True)      # a layer for your network
    >>> tagger = tw.Tagger.load("model")                                   # a trained model from disk

Names are imported when first used: `import trelliswork` alone loads neither torch nor numba.
"""

from __future__ import annotations

from importlib import import_module

from trelliswork.errors import (
    ConstraintError,
    DataError,
    ModelError,
    OutputError,
    ScoreError,
    TrellisworkError,
)

TYPE_CHECKING = False  # typing alone takes longer to import than all of this
if TYPE_CHECKING:
    from typing import Any

    from trelliswork import draw, fst, nn, semirings
    from trelliswork.data import Sentence, read_conll, read_jsonl
    from trelliswork.data.corpus import builtin_corpus
    from trelliswork.distributions import (
        CTC,
        HMM,
        CliqueTemplate,
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
        edit_distance,
        kl_divergence,
    )
    from trelliswork.metrics import calibration, span_scores, token_accuracy
    from trelliswork.models import FeatureTagger, Tagger, TaggerConfig, load, load_tagger
    from trelliswork.nn import CRF, DependencyCRF, SemiCRF, TreeCRF
    from trelliswork.structures import beam
    from trelliswork.structures.ctc.lexicon import Lexicon
    from trelliswork.structures.grammar.grammar import Grammar
    from trelliswork.structures.grammar.tree import Tree
    from trelliswork.training import TrainingConfig, train

__version__ = "0.1.0"

_HOME = {
    "draw": "trelliswork.draw",
    "fst": "trelliswork.fst",
    "nn": "trelliswork.nn",
    "semirings": "trelliswork.semirings",
    "Sentence": "trelliswork.data",
    "read_conll": "trelliswork.data",
    "read_jsonl": "trelliswork.data",
    "builtin_corpus": "trelliswork.data.corpus",
    "CTC": "trelliswork.distributions",
    "CliqueTemplate": "trelliswork.distributions",
    "EditAlignment": "trelliswork.distributions",
    "FactorGraph": "trelliswork.distributions",
    "HMM": "trelliswork.distributions",
    "LinearChain": "trelliswork.distributions",
    "ProbabilisticCFG": "trelliswork.distributions",
    "ProjectiveTree": "trelliswork.distributions",
    "SemiMarkov": "trelliswork.distributions",
    "SpanTree": "trelliswork.distributions",
    "SpanningTree": "trelliswork.distributions",
    "StructuredDistribution": "trelliswork.distributions",
    "WeightedCFG": "trelliswork.distributions",
    "edit_distance": "trelliswork.distributions",
    "kl_divergence": "trelliswork.distributions",
    "calibration": "trelliswork.metrics",
    "span_scores": "trelliswork.metrics",
    "token_accuracy": "trelliswork.metrics",
    "FeatureTagger": "trelliswork.models",
    "Tagger": "trelliswork.models",
    "TaggerConfig": "trelliswork.models",
    "load": "trelliswork.models",
    "load_tagger": "trelliswork.models",
    "CRF": "trelliswork.nn",
    "DependencyCRF": "trelliswork.nn",
    "SemiCRF": "trelliswork.nn",
    "TreeCRF": "trelliswork.nn",
    "beam": "trelliswork.structures.beam",
    "Lexicon": "trelliswork.structures.ctc.lexicon",
    "Grammar": "trelliswork.structures.grammar.grammar",
    "Tree": "trelliswork.structures.grammar.tree",
    "TrainingConfig": "trelliswork.training",
    "train": "trelliswork.training",
}

__all__ = [
    "CRF",
    "CTC",
    "HMM",
    "CliqueTemplate",
    "ConstraintError",
    "DataError",
    "DependencyCRF",
    "EditAlignment",
    "FactorGraph",
    "FeatureTagger",
    "Grammar",
    "Lexicon",
    "LinearChain",
    "ModelError",
    "OutputError",
    "ProbabilisticCFG",
    "ProjectiveTree",
    "ScoreError",
    "SemiCRF",
    "SemiMarkov",
    "Sentence",
    "SpanTree",
    "SpanningTree",
    "StructuredDistribution",
    "Tagger",
    "TaggerConfig",
    "TrainingConfig",
    "Tree",
    "TreeCRF",
    "TrellisworkError",
    "WeightedCFG",
    "beam",
    "builtin_corpus",
    "calibration",
    "draw",
    "edit_distance",
    "fst",
    "kl_divergence",
    "load",
    "load_tagger",
    "nn",
    "read_conll",
    "read_jsonl",
    "semirings",
    "span_scores",
    "token_accuracy",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'trelliswork' has no attribute {name!r}")
    module = import_module(_HOME[name])
    value = module if _HOME[name].rpartition(".")[2] == name else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
