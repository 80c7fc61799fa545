"""Lambda terms: the meanings that questions are turned into.

>>> from trelliswork import terms
>>> meaning = terms.parse("(λp.λx.(p x)) capital")
>>> print(terms.normal_form(meaning))
λx.(capital x)
"""

from trelliswork.terms.brackets import bracketed, parse_brackets
from trelliswork.terms.canonical import canonical
from trelliswork.terms.notation import parse
from trelliswork.terms.reduction import beta_step, normal_form
from trelliswork.terms.term import (
    Abstraction,
    Application,
    Constant,
    Term,
    Variable,
    alpha_equivalent,
    free_variables,
    renamed,
    substituted,
    subterms,
)
from trelliswork.terms.types import Arrow, Base, Type, inferred, parse_type

__all__ = [
    "Abstraction",
    "Application",
    "Arrow",
    "Base",
    "Constant",
    "Term",
    "Type",
    "Variable",
    "alpha_equivalent",
    "beta_step",
    "bracketed",
    "canonical",
    "free_variables",
    "inferred",
    "normal_form",
    "parse",
    "parse_brackets",
    "parse_type",
    "renamed",
    "substituted",
    "subterms",
]
