"""Rules as people write them, and the way to Chomsky normal form: no mixed, long or unary rules."""  # [S2, CNF]

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from trelliswork.errors import ScoreError
from trelliswork.structures.grammar.tree import MARKER

FoldedChains = dict[tuple[str, ...], tuple[str, ...]]
"""Of a rule (left, right...): the symbols of the best unary chain that it stands for, below `left`."""


_QUOTED = r"""'[^']+'(?=[\s|]|$)|"[^"]+"(?=[\s|]|$)"""
_TOKENS = re.compile(rf"{_QUOTED}|[^\s|]+|\|")  # words in quotes, which may have blanks and | in them; symbols; |
_COMMENT = re.compile(rf"({_QUOTED})|#.*")


class Rule(NamedTuple):
    """left -> right with a weight (not its logarithm); quoted symbols are words."""

    left: str
    right: tuple[str, ...]
    weight: float = 1.0

    @staticmethod
    def parse(line: str) -> list[Rule]:
        """Return `S -> NP VP 0.9 | VP 0.1`: alternatives with weights, 1 if there is none.

        >>> Rule.parse("N -> 'dogs' 0.5 | Adj N 0.5")[0]
        Rule(left='N', right=("'dogs'",), weight=0.5)
        """
        left, arrow, rest = line.partition("->")
        if not arrow or len(left.split()) != 1:
            raise ScoreError(f"a rule must read 'A -> B C 0.5 | D 0.5'; got {line!r}")
        alternatives: list[list[str]] = [[]]
        for token in _TOKENS.findall(rest):
            if token == "|":
                alternatives.append([])
            else:
                alternatives[-1].append(token)
        rules = []
        for right in alternatives:
            weight = float(right.pop()) if right and _is_number(right[-1]) else 1.0
            rules.append(Rule(left.strip(), tuple(right), weight))
        return rules


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_word(symbol: str) -> bool:
    return len(symbol) > 2 and symbol[0] == symbol[-1] and symbol[0] in "'\""


def read_rules(given: str | Iterable[Rule | tuple[str, tuple[str, ...], float]]) -> list[Rule]:
    """Return rules from text, one left-hand side a line, or from tuples; weights must be positive numbers."""
    if isinstance(given, str):
        lines = [_COMMENT.sub(lambda match: match[1] or "", line).strip() for line in given.splitlines()]
        rules = [rule for line in lines if line for rule in Rule.parse(line)]
    else:
        rules = [_rule_of(each) for each in given]
    for rule in rules:
        if not rule.right or not 0 < rule.weight < math.inf:
            raise ScoreError(
                f"a rule needs a right-hand side and a weight above 0; got {rule}; leave out impossible rules"
            )
    if not rules:
        raise ScoreError("a grammar needs at least one rule; got none")
    known = {rule.left for rule in rules}
    missing = {symbol for rule in rules for symbol in rule.right if not is_word(symbol)} - known
    if missing:
        listed = sorted(missing)[:5]
        raise ScoreError(f"every symbol needs a rule; got none for {listed}; add rules or put words in quotes")
    return rules


def _rule_of(given: object) -> Rule:
    if not isinstance(given, tuple) or len(given) != 3 or isinstance(given[1], str):
        raise ScoreError(f"a rule must be (left, (right, ...), weight); got {given!r:.80}")
    left, right, weight = given
    return Rule(left, tuple(right), weight)


def without_mixed(rules: list[Rule]) -> list[Rule]:
    """Give words next to other symbols a node of their own.

    `V -> 'give' up` has `V -> <give> up`, `<give> -> 'give'`.
    """
    unmixed, lifted = [], set()
    for left, right, weight in rules:
        if len(right) > 1:
            lifted |= {symbol for symbol in right if is_word(symbol)}
            right = tuple(f"<{symbol[1:-1]}>" if is_word(symbol) else symbol for symbol in right)
        unmixed.append(Rule(left, right, weight))
    return [*unmixed, *(Rule(f"<{word[1:-1]}>", (word,)) for word in sorted(lifted))]


def without_long(rules: list[Rule]) -> list[Rule]:
    """Cut right-hand sides of three symbols and more; the weight stays with the first piece."""  # [S2, CNF]
    short, made = [], set()
    for left, right, weight in rules:
        owner = left
        while len(right) > 2:
            rest = f"{owner}{MARKER}<{'-'.join(right[1:])}>"
            if left not in made:
                short.append(Rule(left, (right[0], rest), weight))
                made |= {left} - {owner}
            left, right, weight = rest, right[1:], 1.0
        if left not in made:
            short.append(Rule(left, right, weight))
            made |= {left} - {owner}
    return short


def without_unary(rules: list[Rule]) -> tuple[list[Rule], FoldedChains]:
    """Fold unary rules into the others, for the normal form: A -> β weighs Σ over chains A -> ... -> Z times Z -> β.

    Chains may go round, as long as their weights sum up; the best chain to each rule is recorded.
    """  # [S2, CNF]
    unary = [rule for rule in rules if len(rule.right) == 1 and not is_word(rule.right[0])]
    others = [rule for rule in rules if not (len(rule.right) == 1 and not is_word(rule.right[0]))]
    if not unary:
        return others, {}
    names = sorted({rule.left for rule in rules} | {rule.right[0] for rule in unary})
    place = {name: i for i, name in enumerate(names)}
    steps = np.zeros((len(names), len(names)))
    for rule in unary:
        steps[place[rule.left], place[rule.right[0]]] += rule.weight
    total = _sum_of_chains(steps)
    best, through = _best_chains(steps)
    weights: dict[tuple[str, ...], float] = {}
    candidates: dict[tuple[str, ...], tuple[float, tuple[str, ...]]] = {}
    for end, right, weight in others:
        for start in np.nonzero(total[:, place[end]])[0].tolist():
            key = (names[start], *right)
            weights[key] = weights.get(key, 0.0) + total[start, place[end]] * weight
            chain = tuple(names[i] for i in through.get((start, place[end]), ()))
            score = best[start, place[end]] * weight
            if score > candidates.get(key, (0.0,))[0]:
                candidates[key] = (score, chain)
    closed = [Rule(key[0], key[1:], weight) for key, weight in weights.items()]
    return closed, {key: chain for key, (_, chain) in candidates.items() if chain}


def _sum_of_chains(steps: np.ndarray) -> np.ndarray:
    """Return Σ_k steps^k, the sum over all chains of any length."""
    radius = max(abs(np.linalg.eigvals(steps)))
    if radius >= 1 - 1e-12:
        raise ScoreError(
            f"unary rules go round with a total weight of {radius:.3g}; their sum is infinite unless it is below 1; "
            "lower the weights of the cycle or take a rule out"
        )
    reachable = np.linalg.matrix_power(np.eye(len(steps)) + (steps > 0), len(steps)) > 0
    return np.where(reachable, np.linalg.inv(np.eye(len(steps)) - steps), 0.0)


def _best_chains(steps: np.ndarray) -> tuple[np.ndarray, dict[tuple[int, int], tuple[int, ...]]]:
    """Return the weight of the best chain between each two symbols, and the symbols it visits after the first."""
    n = len(steps)
    best = np.maximum(steps, np.eye(n))
    ways: dict[tuple[int, int], tuple[int, ...]] = {(i, i): () for i in range(n)}
    ways |= {(i, j): (j,) for i in range(n) for j in range(n) if i != j and steps[i, j] > 0}
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if best[i, k] * best[k, j] > best[i, j] * (1 + 1e-12) and i != j:
                    best[i, j] = best[i, k] * best[k, j]
                    ways[i, j] = ways[i, k] + ways[k, j]
    return best, ways
