"""β-reduction in normal order, which finds the normal form of every term that has one; with a limit of steps.

    >>> from trelliswork.terms import parse
    >>> print(normal_form(parse("(λx.λy.(x y)) y")))
    λy'.(y y')

Curry and Feys (1958), Combinatory logic.
"""

from __future__ import annotations

from trelliswork.errors import TermError
from trelliswork.terms.term import Abstraction, Application, Term, substituted

STEPS = 1000


def beta_step(term: Term) -> Term | None:
    """The term after reducing its leftmost outermost redex (λx.M) N -> M[x := N]; None in normal form.

    >>> from trelliswork.terms import parse
    >>> print(beta_step(parse("(λx.(f x)) a")))
    f a
    """  # [S2, beta-reduction]
    if isinstance(term, Abstraction):
        body = beta_step(term.body)
        return None if body is None else Abstraction(term.variable, body, term.type)
    if not isinstance(term, Application):
        return None
    if isinstance(term.function, Abstraction):
        first, *rest = term.arguments
        found = substituted(term.function.body, term.function.variable, first)
        return Application(found, tuple(rest)) if rest else found
    for i, part in enumerate(term.parts):
        reduced = beta_step(part)
        if reduced is not None:
            parts = [*term.parts[:i], reduced, *term.parts[i + 1 :]]
            return Application(parts[0], tuple(parts[1:]))
    return None


def normal_form(term: Term, *, steps: int = STEPS) -> Term:
    """The term without a redex; an error after this many steps, as some terms have no normal form."""
    found = term
    for _ in range(steps + 1):
        reduced = beta_step(found)
        if reduced is None:
            return found
        found = reduced
    shown = str(term)
    raise TermError(
        f"expected a normal form of {shown[:60]} within {steps} steps of β-reduction; got none; it may have none, "
        "as (λx.(x x)) (λx.(x x)) has none; raise the limit if it has"
    )
