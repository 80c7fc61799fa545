"""Checks of the arguments of a `FactorGraph`, each with a sentence that explains the error."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from trelliswork.distributions.checks import cast, check_floating, check_tensor, refuse_not_scores, whole_values
from trelliswork.distributions.clique_templates import CliqueTemplate, Factor
from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import INF, Bool, Float
from trelliswork.runtime.kernel_math import LARGEST_SCORE
from trelliswork.structures.factors.graph import Graph


def check_unary(unary: Tensor) -> None:
    check_tensor("unary", unary)
    if unary.dim() < 2 or 0 in unary.shape[-2:]:
        raise ScoreError(
            f"unary must be [batch, n, c] with n >= 1 variables of at most c >= 1 values; got {tuple(unary.shape)}; "
            "give zeros for variables without scores of their own"
        )


def check_sizes(sizes: Sequence[int] | Tensor | None, n: int, c: int) -> tuple[int, ...]:
    """Return the number of values of each variable, in 1..c.

    Args:
        sizes: one for each variable; None for c everywhere.
        n: the number of variables.
        c: the highest number of values.

    Returns:
        One number for each variable.
    """
    if sizes is None:
        return (c,) * n
    try:
        numbers = tuple(operator.index(size) for size in sizes)
    except TypeError as error:
        raise ScoreError(f"sizes must be {n} whole numbers in 1..{c}, one a variable; got {sizes!r}") from error
    if len(numbers) != n or not all(1 <= size <= c for size in numbers):
        raise ScoreError(f"sizes must be {n} whole numbers in 1..{c}, one a variable; got {list(numbers)}")
    return numbers


def as_templates(factors: Sequence[Factor]) -> tuple[CliqueTemplate, ...]:
    return tuple(_as_template(place, factor) for place, factor in enumerate(factors))


def _as_template(place: int, factor: Any) -> CliqueTemplate:
    if isinstance(factor, CliqueTemplate):
        check_tensor(f"factor {place}: scores", factor.scores)
        return factor
    pair = isinstance(factor, (tuple, list)) and len(factor) == 2
    if not pair or not isinstance(factor[0], Sequence) or not all(_is_whole(each) for each in factor[0]):
        raise ScoreError(
            f"factor {place} must be a pair (variables, scores) such as ((0, 1), scores), or a CliqueTemplate; "
            f"got {factor!r}"
        )
    check_tensor(f"factor {place}: scores", factor[1])
    return CliqueTemplate([tuple(factor[0])], factor[1])


def _is_whole(number: object) -> bool:
    return hasattr(number, "__index__") and not isinstance(number, bool)


def check_template(
    place: int, template: CliqueTemplate, sizes: tuple[int, ...], batch_shape: torch.Size, device: torch.device
) -> None:
    """Check cliques: known variables, none twice, and scores of the shape that they ask for.

    Args:
        place: which of the templates it is, for the sentence of an error.
        template: cliques of variables and the scores of their values.
        sizes: the number of values of each variable.
        batch_shape: the batch axes of the unary scores.
        device: where the unary scores lie.
    """
    n = len(sizes)
    for clique in template.cliques:
        if len(set(clique)) < len(clique) or not all(0 <= variable < n for variable in clique):
            raise ScoreError(
                f"factor {place}: variables must be different ones of 0..{n - 1}; got {clique}; "
                "number variables as unary does"
            )
    shapes = {tuple(sizes[variable] for variable in clique) for clique in template.cliques}
    if len(shapes) > 1:
        raise ScoreError(
            f"factor {place}: all cliques of a template must have tables of one shape; got {sorted(shapes)}; "
            "make one template for each shape"
        )
    shape = next(iter(shapes), None)
    if shape is None:
        return
    event = (len(template.cliques), *shape) if template.by_clique else shape
    if tuple(template.scores.shape) not in (event, (*batch_shape, *event)):
        raise ScoreError(
            f"factor {place}: scores must be {event} or, for each row, {(*batch_shape, *event)}; "
            f"got {tuple(template.scores.shape)}; one axis for each variable, in the order of the clique"
        )
    if template.scores.device != device:
        raise ScoreError(
            f"factor {place}: scores must be on {device} like unary; got {template.scores.device}; move them with .to"
        )


def promote(unary: Tensor, templates: tuple[CliqueTemplate, ...]) -> tuple[Tensor, tuple[CliqueTemplate, ...]]:
    """Return all scores in one dtype."""
    dtype = unary.dtype
    for template in templates:
        dtype = torch.promote_types(dtype, template.scores.dtype)
    check_floating(dtype)
    moved = tuple(template.with_scores(cast(template.scores, dtype)) for template in templates)
    return cast(unary, dtype), moved


def check_mask(mask: Tensor | None, batch_shape: torch.Size, n: int) -> Bool[Tensor, "rows n"] | None:
    """Return which variables each row has.

    Args:
        mask: True where a row has a variable [*batch, n]; None if every row has all.
        batch_shape: the batch axes.
        n: the number of variables.

    Returns:
        One axis for all rows, or None.
    """
    if mask is None:
        return None
    check_tensor("mask", mask)
    if mask.shape != (*batch_shape, n) or mask.dtype != torch.bool:
        raise ScoreError(
            f"mask must be bool {(*batch_shape, n)}, True where a row has the variable; "
            f"got {mask.dtype} {tuple(mask.shape)}"
        )
    return mask.reshape(-1, n)


def flat_scores(
    graph: Graph, unary: Tensor, templates: tuple[CliqueTemplate, ...], batch_shape: torch.Size, present: Tensor | None
) -> Float[Tensor, "rows scores"]:
    """All scores of a row in one float64 vector. A variable that a row does not have is pinned to 0, and a factor that
    touches one scores 0, so that both drop out of everything.

    Args:
        graph: the variables and factors of a row.
        unary: scores [*batch, n, c] of the values of each variable.
        templates: the factors of more variables, checked.
        batch_shape: the batch axes.
        present: which variables each row has [rows, n]; None for all.

    Returns:
        One row of float64 for each row of the batch, in the order of the graph.
    """
    rows = batch_shape.numel()
    double = torch.float32 if unary.device.type == "mps" else torch.float64
    read = torch.arange(graph.c, device=unary.device) < torch.tensor(graph.sizes, device=unary.device)[:, None]
    own = torch.where(read, cast(unary, double), 0.0).reshape(rows, graph.n, graph.c)
    if present is not None:
        pinned = torch.where(torch.arange(graph.c, device=unary.device) == 0, 0.0, -INF).to(double)
        own = torch.where(present[..., None], own, pinned)
    pieces = [own.flatten(1)]
    for template in templates:
        if not template.cliques:
            continue
        tables = by_row(template, batch_shape, cast(template.scores, double))
        if present is not None:
            complete = present[:, torch.tensor(template.cliques, device=unary.device)].all(-1)
            tables = torch.where(complete[..., None], tables, 0.0)
        pieces.append(tables.flatten(1))
    return torch.cat(pieces, 1)


def by_row(template: CliqueTemplate, batch_shape: torch.Size, scores: Tensor) -> Float[Tensor, "rows cliques entries"]:
    """Return the tables of a template, for each row and each clique.

    Args:
        template: the cliques whose scores these are.
        batch_shape: the batch axes.
        scores: with or without the axes of batch and cliques, over which one table is then shared.

    Returns:
        `entries` is the product of the numbers of values of a clique.
    """
    m, n_cliques = len(template.cliques[0]), len(template.cliques)
    has_rows = scores.dim() > m + template.by_clique
    scores = scores.flatten(-m)
    if not template.by_clique:
        scores = scores.unsqueeze(-2)
    if not has_rows:
        scores = scores.expand(*batch_shape, *scores.shape)
    return scores.expand(*batch_shape, n_cliques, scores.shape[-1]).reshape(-1, n_cliques, scores.shape[-1])


def check_scores(unary: Tensor, templates: tuple[CliqueTemplate, ...], flat: Tensor, sizes: tuple[int, ...]) -> None:
    """Refuse NaN and +inf, by name and place, where they are read.

    Args:
        unary: scores [*batch, n, c].
        templates: the factors of more variables.
        flat: all scores that are read [rows, scores], which tell at once whether one is wrong.
        sizes: the number of values of each variable.
    """
    if flat.numel() == 0 or float(flat.detach().amax()) <= LARGEST_SCORE:  # the maximum of NaN and anything is NaN
        return
    read = torch.arange(unary.shape[-1], device=unary.device) < torch.tensor(sizes, device=unary.device)[:, None]
    named = [("unary", torch.where(read, unary.detach(), 0.0))]
    named += [(f"factor {place}", template.scores.detach()) for place, template in enumerate(templates)]
    for name, part in named:
        refuse_not_scores(name, part)


def check_values(value: Tensor, batch_shape: torch.Size, sizes: tuple[int, ...], present: Tensor | None) -> Tensor:
    """Return assignments [*samples, *batch, n] as [samples, rows, n]; 0 for variables that a row does not have.

    Args:
        value: whole numbers [*samples, *batch, n].
        batch_shape: the batch axes.
        sizes: the number of values of each variable.
        present: which variables each row has [rows, n]; None for all.

    Returns:
        One axis for all samples, one for all rows.
    """
    whole = whole_values("values", value, (*batch_shape, len(sizes)))
    flat = whole.reshape(-1 if value.numel() else 0, batch_shape.numel(), len(sizes))
    if present is not None:
        flat = torch.where(present, flat, 0)
    wrong = (flat < 0) | (flat >= torch.tensor(sizes, device=value.device))
    if bool(wrong.any()):
        sample, row, variable = wrong.nonzero()[0].tolist()
        raise ScoreError(
            f"the value of variable {variable} must lie in 0..{sizes[variable] - 1}; "
            f"got {int(flat[sample, row, variable])} at row {row}; map labels to indices as the scores do"
        )
    return flat
