"""Lambda terms, the meaning representations that questions are mapped to: parsing, reduction, types and normal forms.

>>> from trelliswork import terms
>>> meaning = terms.parse("(λp.λx.(p x)) capital")
>>> print(terms.normal_form(meaning))
λx.(capital x)
"""

from trelliswork.terms.brackets import format_brackets, parse_brackets
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
    rename_variable,
    substitute,
    subterms,
)
from trelliswork.terms.types import Arrow, Base, Type, infer_type, parse_type

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
    "canonical",
    "format_brackets",
    "free_variables",
    "infer_type",
    "normal_form",
    "parse",
    "parse_brackets",
    "parse_type",
    "rename_variable",
    "substitute",
    "subterms",
]
