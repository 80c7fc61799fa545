"""β-reduction in normal order, which reaches the normal form of every term that has one, with a limit on the steps.

    >>> from trelliswork.terms import parse
    >>> print(normal_form(parse("(λx.λy.(x y)) y")))
    λy'.(y y')

Curry and Feys (1958), Combinatory logic.
"""

from __future__ import annotations

from trelliswork.errors import TermError
from trelliswork.terms.term import Abstraction, Application, Term, substitute

STEPS = 1000


def beta_step(term: Term) -> Term | None:
    """Reduce the leftmost outermost redex, (λx.M) N -> M[x := N]; return None if the term is in normal form.

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
        contracted = substitute(term.function.body, term.function.variable, first)
        return Application(contracted, tuple(rest)) if rest else contracted
    for i, part in enumerate(term.parts):
        reduced = beta_step(part)
        if reduced is not None:
            parts = [*term.parts[:i], reduced, *term.parts[i + 1 :]]
            return Application(parts[0], tuple(parts[1:]))
    return None


def normal_form(term: Term, *, steps: int = STEPS) -> Term:
    """Reduce a term until no redex is left; raise `TermError` if this takes more than `steps` steps.

    >>> from trelliswork.terms import parse
    >>> print(normal_form(parse("(λp.λx.(p x)) capital")))
    λx.(capital x)
    """
    current = term
    for _ in range(steps + 1):
        reduced = beta_step(current)
        if reduced is None:
            return current
        current = reduced
    raise TermError(
        f"expected a normal form of {str(term)[:60]} within {steps} steps of β-reduction; got none; "
        "some terms have none, such as (λx.(x x)) (λx.(x x)); raise `steps` if this one has"
    )
