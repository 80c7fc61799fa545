"""Edit scripts between two sequences as a distribution: insert, delete and substitute with scores of your own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, TypedDict, Unpack

import torch
from torch import Tensor
from torch.distributions import constraints

from trelliswork.distributions.alignment import Alignment
from trelliswork.distributions.base import Backend
from trelliswork.distributions.centring import centred_steps
from trelliswork.distributions.checks import (
    Lengths,
    check_floating,
    check_tensor,
    flat_lengths,
    is_whole,
    refuse_not_scores,
    whole_values,
)
from trelliswork.distributions.segment_values import Nested, nested
from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import Bool, Float, Int
from trelliswork.structures.edit import structure
from trelliswork.structures.edit.solver import STRUCTURE
from trelliswork.structures.edit.structure import DELETE, INSERT, SUBSTITUTE, EditLattice

OPERATIONS = ("substitute", "delete", "insert")


class EditOptions(TypedDict, total=False):
    """The options of an `EditAlignment`, however its scores are given."""

    lengths: Lengths | None
    target_lengths: Lengths | None
    backend: Backend
    validate_args: bool | None


class EditStep(NamedTuple):
    """One step of a script; `source` and `target` are the positions it reads and writes, None where there is none."""

    operation: str
    source: int | None
    target: int | None


class EditAlignment(Alignment):
    """p(script | x, y) over the edit scripts that turn x [n] into y [m], with score = Σ scores of the steps.

    `scores[..., i, j, operation]` scores the step that arrives where i symbols of x are read and j of y written;
    operations are 0 substitute, 1 delete, 2 insert. Use `from_operations` or `from_symbols` to build them. A value is
    the operations in order [*batch, n + m], -1 behind the last; `script` turns it into (operation, source, target).

    >>> pairs = EditAlignment.from_symbols(x, y, substitute, delete, insert)    # scores by symbol
    >>> pairs.log_partition, pairs.script(pairs.argmax), pairs.pair_probability(0, 1)

    Args:
        scores: scores of the steps into each cell [*batch, n+1, m+1, 3].
        lengths: the length of x of each row; None for n.
        target_lengths: the length of y of each row; None for m.
        backend: "kernel", "torch" or "auto".
        validate_args: whether scores are checked; None as torch.distributions does.
    """

    _structure = STRUCTURE
    _advice = "allow steps that lead from the start to the end of both sequences"

    def __init__(
        self,
        scores: Float[Tensor, "*batch n+1 m+1 3"],
        *,
        lengths: Lengths | None = None,
        target_lengths: Lengths | None = None,
        backend: Backend = "auto",
        validate_args: bool | None = None,
    ):
        check_tensor("scores", scores)
        if scores.dim() < 3 or scores.shape[-1] != len(OPERATIONS) or 0 in scores.shape[-3:]:
            raise ScoreError(
                f"scores must be [batch, n+1, m+1, 3], the last axis substitute, delete, insert; "
                f"got {tuple(scores.shape)}; build them with from_operations or from_symbols"
            )
        check_floating(scores.dtype)
        self.scores = scores
        batch_shape, n, m = scores.shape[:-3], scores.shape[-3] - 1, scores.shape[-2] - 1
        self._lengths = flat_lengths("lengths", lengths, batch_shape, n, scores.device)
        self._target_lengths = flat_lengths("target_lengths", target_lengths, batch_shape, m, scores.device)
        super().__init__(scores, batch_shape, [n + m], backend)
        if validate_args is None or validate_args:
            refuse_not_scores("scores", self._parts.scores, None, _cell)

    @classmethod
    def from_operations(
        cls,
        substitute: Float[Tensor, "*batch n m"],
        delete: Float[Tensor, "*batch n"] | Float[Tensor, "*batch n m+1"],
        insert: Float[Tensor, "*batch m"] | Float[Tensor, "*batch n+1 m"],
        **options: Unpack[EditOptions],
    ) -> EditAlignment:
        """Build it from the scores of operations on the symbols of two sequences x [n] and y [m].

        Args:
            substitute: the score of y_j in place of x_i [*batch, n, m].
            delete: the score of deleting x_i: wherever [*batch, n], or after j symbols are written [*batch, n, m+1].
            insert: the score of inserting y_j: wherever [*batch, m], or after i symbols are read [*batch, n+1, m].
            options: further arguments of the constructor, such as `lengths` and `backend`.

        Returns:
            A distribution over edit scripts.
        """
        *batch, n, m = substitute.shape
        removed = delete[..., None].expand(*batch, n, m + 1) if delete.shape == (*batch, n) else delete
        added = insert[..., None, :].expand(*batch, n + 1, m) if insert.shape == (*batch, m) else insert
        if removed.shape != (*batch, n, m + 1) or added.shape != (*batch, n + 1, m):
            raise ScoreError(
                f"for substitute {tuple(substitute.shape)} delete must be {(*batch, n)} or {(*batch, n, m + 1)} and "
                f"insert {(*batch, m)} or {(*batch, n + 1, m)}; got {tuple(delete.shape)} and {tuple(insert.shape)}"
            )
        pad = torch.nn.functional.pad
        return cls(
            torch.stack([pad(substitute, (1, 0, 1, 0)), pad(removed, (0, 0, 1, 0)), pad(added, (1, 0))], -1), **options
        )

    @classmethod
    def from_symbols(
        cls,
        x: Int[Tensor, "*batch n"],
        y: Int[Tensor, "*batch m"],
        substitute: Float[Tensor, "v w"],
        delete: Float[Tensor, "v"],
        insert: Float[Tensor, "w"],
        **options: Unpack[EditOptions],
    ) -> EditAlignment:
        """Build it from tables of scores by symbol: `substitute[a, b]` for b in place of a, and so on.

        Args:
            x: the symbols of the first sequence of each row, whole numbers below v.
            y: the symbols of the second sequence of each row, whole numbers below w.
            substitute: `substitute[a, b]` is the score of b in place of a.
            delete: the score of deleting each symbol of x.
            insert: the score of inserting each symbol of y.
            options: further arguments of the constructor, such as `lengths` and `backend`.

        Returns:
            A distribution over edit scripts.
        """
        if substitute.shape != (len(delete), len(insert)):
            raise ScoreError(
                f"substitute must be {(len(delete), len(insert))}, a row for each symbol of delete and a column for "
                f"each of insert; got {tuple(substitute.shape)}"
            )
        for name, sequence, size in (("x", x, len(delete)), ("y", y, len(insert))):
            check_symbols(name, sequence)
            if bool(((sequence < 0) | (sequence >= size)).any()):
                raise ScoreError(f"{name} must hold symbols in 0..{size - 1}; pad with any of them, and give lengths")
        return cls.from_operations(substitute[x[..., :, None], y[..., None, :]], delete[x], insert[y], **options)

    @cached_property
    def _parts(self) -> EditLattice:
        scores = self.scores.reshape(-1, *self.scores.shape[-3:])
        return EditLattice.of(scores, self._lengths, self._target_lengths)

    @property
    def target_lengths(self) -> Int[Tensor, "*batch"]:
        return self._target_lengths.reshape(self.batch_shape)

    # --- hooks -----------------------------------------------------------------------------------------------

    def _checked(self, value: Tensor) -> Int[Tensor, "samples rows n+m"]:
        steps = whole_values("steps", value, (*self.batch_shape, *self.event_shape))
        n_samples = steps.shape[: steps.dim() - len(self.batch_shape) - 1].numel()
        samples = steps.reshape(n_samples, len(self._lengths), *self.event_shape)
        if bool((samples > INSERT).any()):
            raise ScoreError(
                f"steps must be 0 (substitute), 1 (delete), 2 (insert) or -1 behind the last; got {int(samples.max())}"
            )
        for steps in samples:
            fine = structure.is_script(self._parts, steps)
            if not bool(fine.all()):
                row = int((~fine).nonzero()[0])
                script = [step for step in steps[row].tolist() if step >= 0]
                wanted = int(self._lengths[row]), int(self._target_lengths[row])
                raise ScoreError(
                    f"a script must read {wanted[0]} and write {wanted[1]} symbols at row {row}; got {script}, which "
                    f"reads {sum(s != INSERT for s in script)} and writes {sum(s != DELETE for s in script)}"
                )
        return samples

    def _allowed(self, partial: Tensor) -> Bool[Tensor, "*batch n+1 m+1 3"]:
        """True for allowed steps; or for each symbol of x its partner in y, -1 if it is deleted, -100 if unknown."""
        shape = self.scores.shape
        if isinstance(partial, Tensor) and partial.dtype == torch.bool and partial.shape == shape:
            return partial
        expected = (*shape[:-3], shape[-3] - 1)
        if not isinstance(partial, Tensor) or not is_whole(partial) or partial.shape != expected:
            raise ScoreError(
                f"partial knowledge must be bool {tuple(shape)}, True = allowed, or whole numbers {expected}: the "
                f"partner of each symbol, -1 = deleted, -100 = unknown; got {getattr(partial, 'shape', partial)}"
            )
        if bool((partial > shape[-2] - 2).any()):
            raise ScoreError(f"partners must lie in 0..{shape[-2] - 2}, or be -1 or -100; got {int(partial.max())}")
        partner = partial[..., None]
        j = torch.arange(shape[-2], device=partial.device) - 1
        substituted = (partner < -1) | ((partner >= 0) & (partner == j))
        deleted = ((partner < -1) | (partner == -1)).expand(substituted.shape)
        allowed = torch.ones(shape, dtype=torch.bool, device=partial.device)
        allowed[..., 1:, :, SUBSTITUTE], allowed[..., 1:, :, DELETE] = substituted, deleted
        return allowed

    def _like(self, scores: Tensor) -> EditAlignment:
        return EditAlignment(
            scores, lengths=self.lengths, target_lengths=self.target_lengths, backend=self.backend, validate_args=False
        )

    def _centred(self) -> EditAlignment:
        return self._like(centred_steps(self._parts).reshape(self.scores.shape))

    def _comparable(self, other: EditAlignment) -> bool:
        if self.scores.shape != other.scores.shape:
            return False
        lengths = torch.equal(self._lengths, other._lengths)
        return lengths and torch.equal(self._target_lengths, other._target_lengths)

    # --- in the user's words ---------------------------------------------------------------------------------

    def script(self, value: Int[Tensor, "*batch n+m"]) -> Nested:
        """Return the steps as (operation, source, target), one list a row (a single one without batch)."""
        steps = self._one_each("script", value)
        taken, i, j = structure.cells(steps)
        rows = []
        for b in range(len(steps)):
            kept = taken[b]
            script = zip(steps[b][kept].tolist(), i[b][kept].tolist(), j[b][kept].tolist(), strict=True)
            rows.append(
                [
                    EditStep(OPERATIONS[step], None if step == INSERT else x - 1, None if step == DELETE else y - 1)
                    for step, x, y in script
                ]
            )
        result: Nested = nested(rows, self.batch_shape)
        return result

    def pair_probability(self, source: int, target: int) -> Float[Tensor, "*batch"]:
        """Return P(y_target is written in place of x_source)."""
        n, m = self.scores.shape[-3] - 1, self.scores.shape[-2] - 1
        if not (0 <= source < n and 0 <= target < m):
            raise ScoreError(f"a pair lies in 0..{n - 1} and 0..{m - 1}; got {source} and {target}")
        return self.marginals[..., source + 1, target + 1, SUBSTITUTE]

    # --- torch.distributions ---------------------------------------------------------------------------------

    @property
    def support(self) -> constraints.Constraint:
        return constraints.independent(constraints.integer_interval(-1, INSERT), 1)

    def expand(self, batch_shape: Sequence[int], _instance: object = None) -> EditAlignment:
        """Return the same distribution in a larger batch shape, without copying scores."""
        shape = torch.Size(batch_shape)
        return EditAlignment(
            self.scores.expand(*shape, *self.scores.shape[-3:]), lengths=self.lengths.expand(shape),
            target_lengths=self.target_lengths.expand(shape), backend=self.backend, validate_args=False,
        )  # fmt: skip

    def __repr__(self) -> str:
        n, m = self.scores.shape[-3] - 1, self.scores.shape[-2] - 1
        return f"EditAlignment(batch_shape={tuple(self.batch_shape)}, n={n}, m={m}, backend={self.backend!r})"


def _cell(place: list[int]) -> str:
    row, i, j, operation = place
    return f"row {row}, cell ({i}, {j}), {OPERATIONS[operation]}"


def check_symbols(name: str, sequence: Tensor) -> None:
    """Check that symbols are whole numbers [*batch, n]."""
    check_tensor(name, sequence)
    if not (is_whole(sequence) or sequence.numel() == 0) or sequence.dim() < 1:
        raise ScoreError(f"{name} must be whole numbers [batch, n]; got {sequence.dtype} {tuple(sequence.shape)}")


def edit_distance(
    x: Int[Tensor, "*batch n"],
    y: Int[Tensor, "*batch m"],
    *,
    lengths: Lengths | None = None,
    target_lengths: Lengths | None = None,
    substitute: float = 1.0,
    delete: float = 1.0,
    insert: float = 1.0,
) -> Float[Tensor, "*batch"]:
    """Return the least cost of turning x into y, in float64; with costs of 1 the Levenshtein distance.

    >>> edit_distance(torch.tensor([1, 2, 3]), torch.tensor([2, 3, 4]))
    tensor(2., dtype=torch.float64)

    Args:
        x: whole numbers [*batch, n].
        y: whole numbers [*batch, m].
        lengths: [*batch], the symbols of each x that count; all if not given.
        target_lengths: [*batch], likewise of y.
        substitute: the cost of one symbol in place of another.
        delete: the cost of leaving out a symbol of x.
        insert: the cost of adding a symbol of y.

    Returns:
        [*batch].
    """
    check_symbols("x", x)
    check_symbols("y", y)
    if x.shape[:-1] != y.shape[:-1]:
        raise ScoreError(f"x and y must have the same rows; got {tuple(x.shape)} and {tuple(y.shape)}")
    differ = (x[..., :, None] != y[..., None, :]).double()
    scripts = EditAlignment.from_operations(
        -substitute * differ, torch.full(x.shape, -delete).double(), torch.full(y.shape, -insert).double(),
        lengths=lengths, target_lengths=target_lengths,
    )  # fmt: skip
    return 0.0 - scripts.score(scripts.argmax)
