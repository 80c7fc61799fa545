"""What the grammar leaves to spelling: agreement of the verb "was", "a" or "an", the capital at the start."""

from __future__ import annotations

from dataclasses import replace

from trelliswork.data.corpus.derivation import Derivation


def spelled(tree: Derivation) -> Derivation:
    """The derivation of a well-spelled sentence.

    >>> leaves = Derivation("DT", "a", word="a"), Derivation("NN", "thing", word="apple")
    >>> spelled(Derivation("NP", "base", leaves, head=1)).words()
    ['An', 'apple']
    """
    agreed = _agree(tree)
    words = agreed.words()
    for i, following in enumerate(words[1:]):
        if words[i] == "a" and following[0].lower() in "aeiou" and not following.startswith("use"):
            words[i] = "an"
    words[0] = words[0][0].upper() + words[0][1:]
    return agreed.with_words(iter(words))


def _agree(node: Derivation) -> Derivation:
    """ "was" after a plural subject becomes "were", throughout the tree."""
    children = [_agree(child) for child in node.children]
    for left, (i, right) in zip(children, list(enumerate(children))[1:], strict=False):
        if left.label == "NP" and right.label == "VP" and _is_plural(left):
            children[i] = _with_were(right)
    return replace(node, children=tuple(children))


def _is_plural(subject: Derivation) -> bool:
    joined = any(child.label == "CC" for child in subject.children)
    return joined or subject.head_leaf().label == "NNS" or subject.head_leaf().word == "they"


def _with_were(phrase: Derivation) -> Derivation:
    first, *others = phrase.children
    if first.kind != "was":
        return phrase
    return replace(phrase, children=(replace(first, word="were"), *others))
