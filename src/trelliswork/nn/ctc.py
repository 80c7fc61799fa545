"""The CTC layer: `torch.nn.CTCLoss`'s interface and results, faster on the CPU, and differentiable twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from trelliswork import distributions
from trelliswork.distributions.base import Backend, resolve_backend, uses_kernels
from trelliswork.distributions.checks import check_tensor, flat_lengths
from trelliswork.distributions.ctc_inputs import check_frames, check_labels, check_scores
from trelliswork.errors import ScoreError
from trelliswork.nn.structured import StructuredLayer
from trelliswork.runtime.arrays import INF, Float, Int
from trelliswork.runtime.bridge import as_array
from trelliswork.runtime.device_costs import Size, copy_is_cheaper
from trelliswork.runtime.transfer import by_copy, to_host
from trelliswork.structures.ctc import solver
from trelliswork.structures.ctc.kernels import frames_are_scores
from trelliswork.structures.ctc.structure import Labelling

REDUCTIONS = ("none", "mean", "sum")
Lengths = Tensor | Sequence[int] | int


class CTC(StructuredLayer):
    """-log p(targets | frames), drop-in for `torch.nn.CTCLoss`: same arguments, layout, reductions and gradient.

    `mean` divides each row's loss by its number of labels (at least 1) before it averages. With `zero_infinity` rows
    whose labels need more frames than there are have a loss of 0 instead of +inf; their gradient is 0 either way.
    Like torch's, the gradient by `log_probs` is y - occupancy, the exact one where they come out of a log-softmax.

    Args:
        blank: Number of the blank label.
        reduction: Way to combine the rows.
        zero_infinity: True for a loss of 0 where there is no path.
        backend: Implementation: kernels, torch, or the faster one.

    >>> loss = CTC(blank=0)(logits.log_softmax(-1), targets, input_lengths, target_lengths)   # logits [t, batch, c]
    """

    __call__: Callable[..., Tensor]

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False, *, backend: Backend = "auto"
    ) -> None:
        super().__init__()
        if reduction not in REDUCTIONS:
            raise ScoreError(f"reduction must be one of {', '.join(REDUCTIONS)}; got {reduction!r}")
        self.blank, self.reduction, self.zero_infinity, self.backend = blank, reduction, zero_infinity, backend

    def forward(
        self,
        log_probs: Float[Tensor, "t batch c"],
        targets: Int[Tensor, "batch u"],
        input_lengths: Lengths,
        target_lengths: Lengths,
    ) -> Tensor:
        """Return the loss. `targets` may also be all labels in one row, `log_probs` a single sequence [t, c].

        Args:
            log_probs: Log probabilities of the labels in each frame, [t, batch, c].
            targets: Labels, [batch, u], or of all rows one behind the other.
            input_lengths: Number of frames of each row, [batch].
            target_lengths: Number of labels of each row, [batch].

        Returns:
            A scalar, or [batch] without reduction.
        """
        check_tensor("log_probs", log_probs)
        single = log_probs.dim() == 2
        if single:
            log_probs = log_probs.unsqueeze(1)
        if log_probs.dim() != 3:
            raise ScoreError(f"log_probs must be [t, batch, c] or [t, c]; got {tuple(log_probs.shape)}")
        check_frames(log_probs.transpose(0, 1), self.blank)
        batch = torch.Size([log_probs.shape[1]])
        lengths = flat_lengths("input_lengths", _rows(input_lengths), batch, log_probs.shape[0], log_probs.device)
        padded, sizes = _padded(targets, _rows(target_lengths), batch, log_probs.device)
        check_labels(padded, sizes, log_probs.shape[2], self.blank)
        losses = self._losses(log_probs, padded, lengths, sizes)
        if self.zero_infinity:
            losses = torch.where(losses == INF, 0.0, losses)
        return self._reduced(losses, sizes, single)

    def distribution(
        self, log_probs: Float[Tensor, "t batch c"], input_lengths: Lengths | None = None
    ) -> distributions.CTC:
        """Return p(label string | frames), to decode, align and sample from; a single sequence [t, c] has no batch."""
        check_tensor("log_probs", log_probs)
        if log_probs.dim() not in (2, 3):
            raise ScoreError(f"log_probs must be [t, batch, c] or [t, c]; got {tuple(log_probs.shape)}")
        single = log_probs.dim() == 2
        lengths = None if input_lengths is None else _rows(input_lengths).reshape(() if single else (-1,))
        frames = log_probs if single else log_probs.transpose(0, 1)
        return distributions.CTC(frames, lengths=lengths, blank=self.blank, backend=self.backend)

    def _losses(self, log_probs: Tensor, targets: Tensor, lengths: Tensor, sizes: Tensor) -> Float[Tensor, "batch"]:
        half = log_probs.dtype not in (torch.float32, torch.float64)
        scores = log_probs.float() if half else log_probs
        parts_of = partial(_parts, targets=targets, lengths=lengths, sizes=sizes, blank=self.blank)
        if not uses_kernels(self.backend, log_probs):
            parts = parts_of(scores)
            check_scores(scores.transpose(0, 1), parts.frame_mask)
            size, device = Size.of([scores.transpose(0, 1)]), scores.device
            if resolve_backend(self.backend, device) == "auto" and copy_is_cheaper("ctc", size, device):
                return self._losses_by_copy(scores, targets, lengths, sizes).to(log_probs.dtype)
            return solver.reference_loss(parts).to(log_probs.dtype)
        frames, counts = scores.detach().numpy(), lengths.numpy()
        if not frames_are_scores(frames, counts):
            check_scores(scores.transpose(0, 1), parts_of(scores).frame_mask)
        arrays = solver.LabelArrays.of(frames.transpose(1, 0, 2), as_array(targets), counts, sizes.numpy(), self.blank)
        losses = solver.loss(scores, arrays, parts_of)
        return losses.to(log_probs.dtype) if half else losses

    def _losses_by_copy(
        self, scores: Tensor, targets: Tensor, lengths: Tensor, sizes: Tensor
    ) -> Float[Tensor, "batch"]:
        """Losses by kernel of scores on another device, in one transfer each way."""
        near, *others = to_host([scores, targets, lengths, sizes])
        near.requires_grad_(scores.requires_grad)

        def reference(moved: Tensor) -> Tensor:
            return solver.reference_loss(_parts(moved, targets=targets, lengths=lengths, sizes=sizes, blank=self.blank))

        losses: Tensor = by_copy((scores,), (near,), scores.device, lambda: self._losses(near, *others), reference)
        return losses

    def _reduced(self, losses: Tensor, sizes: Tensor, single: bool) -> Tensor:
        if self.reduction == "sum":
            return losses.sum()
        if self.reduction == "mean":
            return (losses / sizes.clamp(min=1)).mean()
        return losses.squeeze(0) if single else losses

    def extra_repr(self) -> str:
        return f"blank={self.blank}, reduction={self.reduction!r}, zero_infinity={self.zero_infinity}"


def _parts(scores: Tensor, *, targets: Tensor, lengths: Tensor, sizes: Tensor, blank: int) -> Labelling:
    """Return the parts that belong to scores [t, batch, c]."""
    return Labelling.of(scores.transpose(0, 1), targets, lengths, sizes, blank)


def _rows(lengths: Lengths) -> Tensor:
    given = torch.as_tensor(lengths)
    return given.reshape(1) if given.dim() == 0 else given


def _padded(targets: Tensor, sizes: Tensor, batch: torch.Size, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return targets as padded rows [batch, u] and their lengths; in one row they lie behind one another."""
    check_tensor("targets", targets)
    if targets.dtype.is_floating_point or targets.dtype == torch.bool:
        raise ScoreError(f"targets must be whole numbers; got {targets.dtype}; call .long() on them")
    if targets.dim() == 2:
        if targets.shape[0] != batch[0]:
            raise ScoreError(
                f"targets must be [{batch[0]}, u], one row for each of the batch; got {tuple(targets.shape)}"
            )
        lengths = flat_lengths("target_lengths", sizes, batch, targets.shape[1], device)
        return targets.to(device, torch.long), lengths
    if targets.dim() != 1:
        raise ScoreError(f"targets must be [batch, u], or all labels in one row; got {tuple(targets.shape)}")
    lengths = flat_lengths("target_lengths", sizes, batch, len(targets), device)
    if int(lengths.sum()) != len(targets) and batch[0] != 1:
        raise ScoreError(f"target_lengths must add up to the {len(targets)} labels given; got {int(lengths.sum())}")
    rows = targets[: int(lengths.sum())].to(device, torch.long).split(lengths.tolist())
    if not batch[0]:
        return targets.new_zeros(0, 0, dtype=torch.long).to(device), lengths
    return nn.utils.rnn.pad_sequence(list(rows), batch_first=True), lengths
