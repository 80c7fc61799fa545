"""Scores of another device, asked by kernel on a copy: see `runtime.transfer` for the way there and back."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor

from trelliswork.runtime import bridge, transfer
from trelliswork.runtime.device_costs import Size, copy_is_cheaper
from trelliswork.runtime.transfer import by_copy, tensors_in, with_tensors
from trelliswork.structures.record import Decoded, Solver, Structure


def solver_for(structure: Structure, backend: Literal["auto", "kernel", "torch"], *parts: object) -> Solver:
    """Return the solver of a backend; "auto" is that of parts on another device, by the way that takes less time there.

    Where a program is recorded, a CUDA graph captured, or torch.func at work, nothing may leave the device.
    """
    if backend != "auto":
        return structure.solver(backend, *parts)
    tensors = list(tensors_in(parts))
    if not tensors:  # such as machines, whose weights are on the CPU
        return structure.solver("torch" if bridge.out_of_reach() else "kernel", *parts)
    if bridge.must_stay(tensors[0].device):
        return structure.reference(*parts)
    if copy_is_cheaper(structure.name, Size.of(tensors), tensors[0].device):
        return HostSolver(structure, *parts)
    return structure.reference(*parts)


class HostSolver(Solver):
    """By kernel on a copy that is made once, with the first query; what needs no kernel is done on the device."""

    def __init__(self, structure: Structure, *parts: object) -> None:
        self._structure, self._parts = structure, parts
        self._tensors = tuple(tensors_in(parts))
        self._scores = tuple(tensor for tensor in self._tensors if tensor.is_floating_point())
        self._copies: tuple[Tensor, ...] | None = None

    @property
    def validates_values(self) -> bool:  # type: ignore[override]
        return bool(getattr(self._structure.kernels, "validates_values", False))

    @property
    def finds_fewer(self) -> bool:  # type: ignore[override]
        return bool(getattr(self._structure.kernels, "finds_fewer", False))

    @cached_property
    def _reference(self) -> Solver:
        return self._structure.reference(*self._parts)

    def __getattr__(self, name: str) -> Any:
        """Return what only some solvers have, such as arcs with labels."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._reference, name)

    # --- queries ---------------------------------------------------------------------------------------------

    def log_partition(self) -> Tensor:
        log_z: Tensor = self._ask("log_partition")
        return log_z

    def marginals(self, *options: object) -> Any:
        return self._ask("marginals", *options)

    def score(self, values: Tensor) -> Tensor:
        if self._structure.scores_by_kernel:
            score: Tensor = self._ask("score", values)
            return score
        return self._reference.score(values)

    def log_prob(self, values: Tensor) -> Tensor | None:
        log_prob: Tensor | None = self._ask("log_prob", values)
        return log_prob

    def best(self) -> Decoded:
        decoded: Decoded = self._ask("best")
        return decoded

    def top_k(self, k: int) -> Decoded:
        decoded: Decoded = self._ask("top_k", k)
        return decoded

    def sample(self, n_samples: int, generator: torch.Generator | None) -> Tensor:
        """By kernel with the numbers of the CPU's generator; one of the device draws on the device."""
        if generator is not None and generator.device.type != "cpu":
            return self._reference.sample(n_samples, generator)
        samples: Tensor = self._ask("sample", n_samples, generator)
        return samples

    # --- the copy --------------------------------------------------------------------------------------------

    def _ask(self, query: str, *arguments: object) -> Any:
        """The answer of the kernels to a query, on the device of the scores."""
        host_arguments = self._copy_with(arguments)
        assert self._copies is not None
        pairs = zip(self._tensors, self._copies, strict=True)

        def reference(*scores: Tensor) -> Any:
            others = iter(scores)
            tensors = (next(others) if tensor.is_floating_point() else tensor for tensor in self._tensors)
            solver = self._structure.reference(*with_tensors(self._parts, tensors))
            return getattr(solver, query)(*arguments)

        return by_copy(
            self._scores,
            tuple(copy for tensor, copy in pairs if tensor.is_floating_point()),
            self._tensors[0].device,
            lambda: getattr(self._kernels, query)(*host_arguments),
            reference,
        )

    def _copy_with(self, arguments: tuple[object, ...]) -> tuple[object, ...]:
        """The arguments on the host, in one transfer with the parts if these have not been copied yet."""
        wanted = [*(self._tensors if self._copies is None else ()), *tensors_in(arguments)]
        with torch.inference_mode(False):  # the copy may be differentiated later
            copies = iter(transfer.to_host(wanted))
            if self._copies is None:
                self._copies = tuple(self._leaves(copies))
        host_arguments: tuple[object, ...] = with_tensors(arguments, copies)
        return host_arguments

    def _leaves(self, copies: Iterator[Tensor]) -> Iterator[Tensor]:
        """As many copies as there are tensors; those of scores that require gradients require them too."""
        for tensor in self._tensors:
            yield next(copies).requires_grad_(tensor.requires_grad)

    @cached_property
    def _kernels(self) -> Solver:
        """On the copies; these are kept, so that gradients reach them."""
        assert self._copies is not None
        return self._structure.kernels(*with_tensors(self._parts, iter(self._copies)))
