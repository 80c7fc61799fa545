"""The probabilistic grammar: rules are probabilities, a tree has the product of those it uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from trelliswork.distributions.weighted_cfg import WeightedCFG
from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import Float
from trelliswork.structures.grammar.grammar import Grammar


class ProbabilisticCFG(WeightedCFG):
    """p(tree, words) = the product of the probabilities of its rules, a locally normalised grammar.

    The rules of each left-hand side of `grammar`, words included, must sum to 1; so must the roots. `log_partition` is
    log p(words), `log_prob(trees)` the joint log p(tree, words); `posterior` is p(tree | words), and what is asked
    beyond that (marginals, entropy, samples, the best tree) is asked of it here as well.

    >>> grammar = Grammar.from_rules("S -> S S 0.4 | 'a' 0.6")
    >>> ProbabilisticCFG(grammar, [["a", "a"]]).log_partition.exp()
    tensor([0.1440], dtype=torch.float64)
    """  # [S2, PCFG]

    def __init__(self, grammar: Grammar, sentences: Sequence[Sequence[str]] | None = None, **options: Any):
        super().__init__(grammar, sentences, **options)
        if options.get("rules") is None and options.get("validate_args") in (None, True):
            _check_sums(grammar)

    def log_prob(self, value: Any) -> Float[Tensor, "batch"]:
        """Return log p(tree, words) = Σ log p(rule); -inf with a rule that the grammar lacks."""  # [S2, PCFG]
        return self.score(value)

    @property
    def posterior(self) -> WeightedCFG:
        """p(tree | words)."""
        plain = WeightedCFG.__new__(WeightedCFG)
        plain.__dict__.update(self.__dict__)
        return plain


def _check_sums(grammar: Grammar) -> None:
    """Check that the rules of each left-hand side sum to 1."""  # [S2, PCFG]
    totals = grammar.left_hand_totals(grammar.rule_scores, grammar.lexicon).exp()
    wrong = (totals - 1).abs() > 1e-6
    if bool(wrong.any()):
        symbol = int(wrong.nonzero()[0])
        raise ScoreError(
            f"the rules of each left-hand side must sum to 1; those of {grammar.symbols[symbol]!r} sum to "
            f"{float(totals[symbol]):.6g}; normalise them, or use WeightedCFG"
        )
    roots = float(torch.logsumexp(grammar.root_scores, 0).exp())
    if abs(roots - 1) > 1e-6:
        raise ScoreError(f"the probabilities of root symbols must sum to 1; got {roots:.6g}")
