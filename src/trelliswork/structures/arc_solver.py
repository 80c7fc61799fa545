"""The queries of dependency trees, with or without labels, for every family of them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from trelliswork.runtime.bridge import as_array
from trelliswork.structures.arc_autograd import Family, log_likelihood, log_partition, marginals
from trelliswork.structures.arc_labels import LabelledArcs, add_labels, below, label_log_probs
from trelliswork.structures.arc_rows import ArcRows
from trelliswork.structures.arcs import tree_score
from trelliswork.structures.label_autograd import best_over_labels, sum_over_labels
from trelliswork.structures.record import Solver


class ArcKernels(Solver):
    """By kernel. `fast` is the family's module; values are heads [rows, n], or (head, label) pairs [rows, n, 2]."""

    refuses = True

    def __init__(self, fast: ModuleType, given: ArcRows, labels: Tensor | None) -> None:
        self._fast, self._given, self._labels = fast, given, labels

    @property
    def arrays(self) -> Any:
        return self._given.arrays

    @property
    def _family(self) -> Family:
        family: Family = self._fast.FAMILY
        return family

    # What carries a graph of its own is made for each query: two of them can then be differentiated one after another.

    @property
    def labelled(self) -> LabelledArcs:
        """Arcs with labels; none of them is the same as one that scores 0."""
        scores = self._given.scores
        labels = scores.new_zeros(*scores.shape, 1) if self._labels is None else self._labels
        return LabelledArcs.of(self._given.trees, labels)

    @property
    def rows(self) -> ArcRows:
        """Arcs whose trees are to be summed: over labels it has been done."""
        return self._given if self._labels is None else self._over_all(self._labels)

    def _over_all(self, labels: Tensor) -> ArcRows:
        return sum_over_labels(self._given, labels)

    def _over_best(self, labels: Tensor) -> ArcRows:
        return best_over_labels(self._given, labels)

    def log_partition(self) -> Tensor:
        return log_partition(self._family, self.rows)

    def marginals(self) -> Tensor:
        return marginals(self._family, self.rows)

    def score(self, values: Tensor) -> Tensor:
        trees = self._given.trees
        if self._labels is None:
            return tree_score(trees, values)
        return self.labelled.score(values[..., 0], values[..., 1], trees.word_mask)

    def log_prob(self, values: Tensor) -> Tensor | None:
        if self._labels is None:
            return log_likelihood(self._family, self.rows, values)
        real = self._given.word_mask
        heads, labels = (torch.where(real, each, 0) for each in values.unbind(-1))
        if bool(((labels < 0) | (labels >= self._labels.shape[-1])).any()):
            return None
        rows = self.rows
        of_heads = log_likelihood(self._family, rows, heads)
        if of_heads is None:
            return None
        of_labels = label_log_probs(self._given.scores, self._labels, rows.scores, heads, labels)
        return add_labels(of_heads, of_labels, real)

    def best(self) -> tuple[Tensor, Tensor]:
        rows = self.rows if self._labels is None else self._over_best(self._labels)
        heads, possible = (each.to(self._given.scores.device) for each in self._best(rows))
        labels = None if self._labels is None else below(self._labels, heads).argmax(-1)
        return self._values(heads, labels), possible

    def top_k(self, k: int) -> tuple[Tensor, Tensor]:
        heads, labels, scores = (each.to(self._given.scores.device) for each in self._top(self.labelled.parts, k))
        return self._values(heads, None if self._labels is None else labels), scores

    def sample(self, n_samples: int, generator: torch.Generator | None) -> Tensor:
        heads = self._draw(self.rows, n_samples, generator).to(self._given.scores.device)
        return self._values(heads, None if self._labels is None else self.labelled.draw_labels(heads, generator))

    def _values(self, heads: Tensor, labels: Tensor | None) -> Tensor:
        """Heads, or (head, label) pairs; 0 at padding."""
        real = self._given.word_mask
        if labels is None:
            return torch.where(real, heads, 0)
        return torch.where(real[..., None], torch.stack([heads, labels], -1), 0)

    # --- trees without labels --------------------------------------------------------------------------------

    def _best(self, rows: ArcRows) -> tuple[Tensor, Tensor]:
        found: tuple[Tensor, Tensor] = self._fast.best_trees(rows.arrays)
        return found

    def _top(self, parts: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
        given = self._given
        found = self._fast.top_trees(as_array(parts), as_array(given.lengths), given.single_root, k)
        heads, labels, scores = (torch.from_numpy(each) for each in found)
        return heads, labels, scores

    def _draw(self, rows: ArcRows, n_samples: int, generator: torch.Generator | None) -> Tensor:
        drawn: Tensor = self._fast.sample_trees(rows.arrays, n_samples, generator)
        return drawn


class ArcReference(ArcKernels):
    """Sums in plain torch; trees are searched by kernel, on the CPU."""

    refuses = False
    arrays = None

    def _over_all(self, labels: Tensor) -> ArcRows:
        return self._given.with_scores(self.labelled.summed)

    def _over_best(self, labels: Tensor) -> ArcRows:
        return self._given.with_scores(self.labelled.best)

    def log_partition(self) -> Tensor:
        log_z: Tensor = self._family.reference.log_partition(self.rows.trees)
        return log_z

    def marginals(self) -> Tensor:
        posteriors: Tensor = self._family.reference.marginals(self.rows.trees)
        return posteriors

    def log_prob(self, values: Tensor) -> Tensor | None:
        return Solver.log_prob(self, values)


class SearchedReference(ArcReference):
    """Trees are searched in plain torch as well, where the family's reference can."""

    def _best(self, rows: ArcRows) -> tuple[Tensor, Tensor]:
        found: tuple[Tensor, Tensor] = self._family.reference.best(rows.trees)
        return found

    def _top(self, parts: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
        found: tuple[Tensor, Tensor, Tensor] = self._family.reference.top_k(self._given.trees.with_arcs(parts), k)
        return found

    def _draw(self, rows: ArcRows, n_samples: int, generator: torch.Generator | None) -> Tensor:
        drawn: Tensor = self._family.reference.sample(rows.trees, n_samples, generator)
        return drawn
