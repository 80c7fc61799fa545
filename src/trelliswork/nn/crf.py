"""The CRF layer: `torchcrf.CRF`'s interface, exact queries, hard constraints, unknown labels, weights."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from trelliswork.distributions import LinearChain
from trelliswork.distributions.base import Backend
from trelliswork.distributions.checks import check_tensors
from trelliswork.errors import ConstraintError, ScoreError, TrellisworkWarning
from trelliswork.nn.structured import StructuredLayer, check_reduction, mask_of, reduce
from trelliswork.runtime.arrays import INF, Bool, Float, Int
from trelliswork.runtime.bridge import any_seen, values_are_hidden
from trelliswork.tags.schemes import allowed_transitions, unreachable, violations

UNKNOWN = -100
KIND = (Tensor, type(None))
ALLOWED = ("allowed_transitions", "allowed_start", "allowed_end")  # buffers


class CRF(StructuredLayer):
    """A linear-chain CRF over emission scores, with the interface of `torchcrf.CRF`.

    Tensors are (n, batch, ...) unless `batch_first`. A mask is True (or 1) at valid positions and may have holes
    anywhere; `lengths` [batch] may be given instead. Tags of -100 are unknown and summed over. A layer made by
    `from_tags` knows the names of its tags and forbids what their scheme forbids: in the loss, in the marginals and in
    decoding.

    Args:
        num_tags: Number of tags.
        batch_first: True for tensors [batch, n, ...].
        backend: Implementation: kernels, torch, or the faster one.

    >>> crf = CRF.from_tags(["O", "B-PER", "I-PER"], scheme="IOB2", batch_first=True)
    >>> loss = -crf(emissions, tags, mask)
    >>> crf.decode(emissions, mask)
    [[0, 1, 2], [1, 0]]

    Lafferty, McCallum and Pereira (2001), Conditional random fields: probabilistic models for segmenting and labeling
    sequence data.
    """

    __call__: Callable[..., Tensor]

    def __init__(self, num_tags: int, batch_first: bool = False, *, backend: Backend = "auto") -> None:
        if num_tags <= 0:
            raise ScoreError(f"invalid number of tags: {num_tags}")
        super().__init__()
        self.num_tags, self.batch_first, self.backend = num_tags, batch_first, backend
        self.start_transitions = nn.Parameter(torch.empty(num_tags))
        self.end_transitions = nn.Parameter(torch.empty(num_tags))
        self.transitions = nn.Parameter(torch.empty(num_tags, num_tags))
        self.tags: tuple[str, ...] | None = None
        self.scheme: str | None = None
        for name in ALLOWED:
            self.register_buffer(name, None, persistent=False)  # made by from_tags; not in the state dict
        self.reset_parameters()

    allowed_transitions: Bool[Tensor, "c c"] | None
    allowed_start: Bool[Tensor, "c"] | None
    allowed_end: Bool[Tensor, "c"] | None

    @classmethod
    def from_tags(
        cls, tags: Sequence[str], scheme: str = "IOBES", batch_first: bool = False, *, backend: Backend = "auto"
    ) -> CRF:
        """Make a layer for named tags that forbids the transitions their scheme forbids (IOB1, IOB2, IOBES, plain).

        A tag that no legal sequence can have, such as I-Y without B-Y, is a warning.

        Args:
            tags: Names of the tags, in the order of their numbers.
            scheme: Scheme in which they spell spans; plain forbids nothing.
            batch_first: True for tensors [batch, n, ...], False for [n, batch, ...].
            backend: Implementation: kernels, torch, or the faster one.

        Returns:
            The layer.
        """
        if len(set(tags)) < len(tags):
            repeated = ", ".join(tag for tag, n in Counter(tags).items() if n > 1)
            raise ScoreError(f"tags must differ from one another; got {repeated} more than once; name each tag once")
        crf = cls(len(tags), batch_first, backend=backend)
        crf.tags, crf.scheme = tuple(tags), scheme
        if scheme.lower() != "plain":
            allowed = inside, first, last = allowed_transitions(list(tags), scheme)
            if lost := unreachable(tags, *allowed):
                problem = f"no legal {scheme} sequence has {', '.join(lost)}: their probability is always 0"
                fix = "add the tags that spans of these kinds begin and end with, or drop them"
                warnings.warn(f"{problem}; {fix}", TrellisworkWarning, stacklevel=2)
            crf.allowed_transitions = torch.tensor(inside)
            crf.allowed_start, crf.allowed_end = torch.tensor(first), torch.tensor(last)
        return crf

    def reset_parameters(self) -> None:
        """Start from small scores, uniform in ±0.1."""
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)

    def __repr__(self) -> str:
        named = "" if self.tags is None else f", tags={list(self.tags)}, scheme={self.scheme!r}"
        return f"{type(self).__name__}(num_tags={self.num_tags}{named})"

    # --- queries ---------------------------------------------------------------------------------------------

    def forward(
        self,
        emissions: Float[Tensor, "n batch c"],
        tags: Int[Tensor, "n batch"],
        mask: Bool[Tensor, "n batch"] | None = None,
        reduction: str = "sum",
        *,
        lengths: Int[Tensor, "batch"] | None = None,
        token_weights: Float[Tensor, "n batch"] | None = None,
        label_weights: Float[Tensor, "c"] | None = None,
    ) -> Tensor:
        """Return the log likelihood of the tags; its negative is the loss.

        `reduction` is "none" (one value per row), "sum", "mean" (over rows) or "token_mean". Weights multiply each
        token's share of the log likelihood, log p(y_t | y_1..y_{t-1}, x), by its own weight and by that of its label;
        the shares sum to the whole, so weights of 1 change nothing.

        Args:
            emissions: Scores of the tags of each position, [batch, n, num_tags] (or [n, batch, num_tags]).
            tags: Gold tags, [batch, n]; -100 stands for an unknown one.
            mask: True at the valid positions, [batch, n] (or [n, batch] as the layer is made); None if all are.
            reduction: Way to combine the rows.
            lengths: Number of valid positions of each row, [batch], instead of the mask.
            token_weights: Weight of each token, [batch, n].
            label_weights: Weight of each tag, [num_tags].

        Returns:
            A scalar, or [batch] without reduction.
        """
        # [S2, log-likelihood; S4.113; S1, loss]
        mask = self._validate(emissions, tags, mask, lengths)
        check_reduction(reduction)
        if token_weights is None and label_weights is None:
            log_prob = self._log_likelihood(emissions, tags, mask)
        else:
            log_prob = self._weighted_log_likelihood(emissions, tags, mask, token_weights, label_weights)
        return reduce(log_prob, reduction, tags.numel if mask is None else mask.sum)

    def decode(
        self,
        emissions: Float[Tensor, "n batch c"],
        mask: Bool[Tensor, "n batch"] | None = None,
        *,
        lengths: Int[Tensor, "batch"] | None = None,
    ) -> list[list[int]]:
        """Return the best tags of each row as lists, valid positions only.

        Args:
            emissions: Scores of the tags of each position, [batch, n, num_tags] (or [n, batch, num_tags]).
            mask: True at the valid positions, [batch, n] (or [n, batch] as the layer is made); None if all are.
            lengths: Number of valid positions of each row, [batch], instead of the mask.

        Returns:
            A list of tags for each row.
        """
        mask = self._validate(emissions, None, mask, lengths)
        return self._distribution(emissions, mask).argmax_lists()

    def viterbi(
        self,
        emissions: Float[Tensor, "n batch c"],
        mask: Bool[Tensor, "n batch"] | None = None,
        *,
        lengths: Int[Tensor, "batch"] | None = None,
    ) -> tuple[Int[Tensor, "n batch"], Float[Tensor, "batch"]]:
        """Return the best tags as a tensor shaped like the mask (0 at invalid positions), and their scores.

        Args:
            emissions: Scores of the tags of each position, [batch, n, num_tags] (or [n, batch, num_tags]).
            mask: True at the valid positions, [batch, n] (or [n, batch] as the layer is made); None if all are.
            lengths: Number of valid positions of each row, [batch], instead of the mask.

        Returns:
            Tags, [batch, n], and scores, [batch].
        """
        chain = self.distribution(emissions, mask, lengths=lengths)
        best = chain.argmax
        return self._rows(best), chain.score(best)

    def marginals(
        self,
        emissions: Float[Tensor, "n batch c"],
        mask: Bool[Tensor, "n batch"] | None = None,
        *,
        lengths: Int[Tensor, "batch"] | None = None,
    ) -> Float[Tensor, "n batch c"]:
        """Return p(tag at t | x), 0 at invalid positions.

        Args:
            emissions: Scores of the tags of each position, [batch, n, num_tags] (or [n, batch, num_tags]).
            mask: True at the valid positions, [batch, n] (or [n, batch] as the layer is made); None if all are.
            lengths: Number of valid positions of each row, [batch], instead of the mask.

        Returns:
            Probabilities, [batch, n, num_tags].
        """
        return self._rows(self.distribution(emissions, mask, lengths=lengths).marginals)

    def top_k(
        self,
        emissions: Float[Tensor, "n batch c"],
        k: int,
        mask: Bool[Tensor, "n batch"] | None = None,
        *,
        lengths: Int[Tensor, "batch"] | None = None,
    ) -> tuple[Int[Tensor, "k n batch"], Float[Tensor, "k batch"]]:
        """Return the k best tag sequences of each row, best first, and their scores.

        Args:
            emissions: Scores of the tags of each position, [batch, n, num_tags] (or [n, batch, num_tags]).
            k: Number of sequences of each row.
            mask: True at the valid positions, [batch, n] (or [n, batch] as the layer is made); None if all are.
            lengths: Number of valid positions of each row, [batch], instead of the mask.

        Returns:
            Tags, [k, batch, n] (or [k, n, batch]), and scores, [k, batch].
        """
        tags, scores = self.distribution(emissions, mask, lengths=lengths).top_k(k)
        return tags if self.batch_first else tags.transpose(1, 2), scores

    def sample(
        self,
        emissions: Float[Tensor, "n batch c"],
        mask: Bool[Tensor, "n batch"] | None = None,
        n_samples: int = 1,
        *,
        lengths: Int[Tensor, "batch"] | None = None,
    ) -> Int[Tensor, "samples n batch"]:
        """Return independent exact samples.

        Args:
            emissions: Scores of the tags of each position, [batch, n, num_tags] (or [n, batch, num_tags]).
            mask: True at the valid positions, [batch, n] (or [n, batch] as the layer is made); None if all are.
            n_samples: Number of samples of each row.
            lengths: Number of valid positions of each row, [batch], instead of the mask.

        Returns:
            Tags, [n_samples, batch, n] (or [n_samples, n, batch]).
        """
        tags = self.distribution(emissions, mask, lengths=lengths).sample((n_samples,))
        return tags if self.batch_first else tags.transpose(1, 2)

    def span_probability(
        self,
        emissions: Float[Tensor, "n batch c"],
        first: int,
        last: int,
        label: str,
        mask: Bool[Tensor, "n batch"] | None = None,
        *,
        lengths: Int[Tensor, "batch"] | None = None,
    ) -> Float[Tensor, "batch"]:
        """Return P(tokens first..last-1 are exactly one `label` span) of each row, of a layer made by `from_tags`.

        Args:
            emissions: Scores of the tags of each position, [batch, n, num_tags] (or [n, batch, num_tags]).
            first: First token of the span.
            last: End of the span, exclusive.
            label: Type of the span.
            mask: True at the valid positions, [batch, n] (or [n, batch] as the layer is made); None if all are.
            lengths: Number of valid positions of each row, [batch], instead of the mask.

        Returns:
            Probabilities, [batch].
        """
        if self.tags is None or self.scheme is None:
            raise ScoreError("span probabilities need the tags' names; make the layer with CRF.from_tags(tags, scheme)")
        chain = self.distribution(emissions, mask, lengths=lengths)
        return chain.span_probability(first, last, label, tags=self.tags, scheme=self.scheme)

    def distribution(
        self,
        emissions: Float[Tensor, "n batch c"],
        mask: Bool[Tensor, "n batch"] | None = None,
        *,
        lengths: Int[Tensor, "batch"] | None = None,
        pair_scores: Float[Tensor, "batch n-1 c c"] | None = None,
    ) -> LinearChain:
        """Return the distribution over tag sequences [batch, n], with every query of `LinearChain`.

        `pair_scores` are added to the transitions: a network's scores of the tags of tokens t and t + 1, batch first
        in every layer.

        Args:
            emissions: Scores of the tags of each position, [batch, n, num_tags] (or [n, batch, num_tags]).
            mask: True at the valid positions, [batch, n] (or [n, batch] as the layer is made); None if all are.
            lengths: Number of valid positions of each row, [batch], instead of the mask.
            pair_scores: Scores added to the transitions, [batch, n - 1, num_tags, num_tags] or what broadcasts to
                it.

        Returns:
            The distribution, batch first.
        """
        mask = self._validate(emissions, None, mask, lengths)
        return self._distribution(emissions, mask, pair_scores)

    # --- parts -----------------------------------------------------------------------------------------------

    def _rows(self, tensor: Tensor) -> Tensor:
        """Transpose from the caller's layout to batch first, or back."""
        return tensor if self.batch_first else tensor.transpose(0, 1)

    def _scores(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return (transitions, start, end) with -inf where the scheme forbids."""
        scores = self._own("transitions"), self._own("start_transitions"), self._own("end_transitions")
        arcs, first, last = map(self._buffers.get, ALLOWED)  # as attributes they take five times as long
        if arcs is None or first is None or last is None:
            return scores
        transitions, start, end = scores
        return torch.where(arcs, transitions, -INF), torch.where(first, start, -INF), torch.where(last, end, -INF)

    def _own(self, name: str) -> Tensor:
        """Return a parameter, or what a parametrization or replica has put in its place. Reading the attribute alone is
        right too, but takes five times as long, and decoding one sentence is a matter of 20 µs."""
        parameter = self._parameters.get(name)
        return getattr(self, name) if parameter is None else parameter

    def _distribution(self, emissions: Tensor, mask: Tensor | None, pair_scores: Tensor | None = None) -> LinearChain:
        rows = None if mask is None else self._rows(mask)
        transitions, start, end = self._scores()
        if pair_scores is not None:
            transitions = transitions + pair_scores
        return LinearChain(self._rows(emissions), transitions, start, end, mask=rows, backend=self.backend)

    def _log_likelihood(self, emissions: Tensor, tags: Tensor, mask: Tensor | None) -> Float[Tensor, "batch"]:
        """Return that of each row; unknown tags are summed over."""
        chain, rows = self._distribution(emissions, mask), self._rows(tags)
        if values_are_hidden():
            log_prob = chain.log_prob_of_set(self._partial(chain, rows))
        else:
            try:
                log_prob = chain.log_prob(rows)
            except ScoreError:  # raised for unknown tags too; looking for them first would cost every batch more
                if not bool((chain.valid & (rows < 0)).any()):
                    raise
                log_prob = chain.log_prob_of_set(self._partial(chain, rows))
        self._check_allowed(log_prob, chain, rows)
        return log_prob

    def _weighted_log_likelihood(
        self,
        emissions: Tensor,
        tags: Tensor,
        mask: Tensor | None,
        token_weights: Tensor | None,
        label_weights: Tensor | None,
    ) -> Float[Tensor, "batch"]:
        """Return Σ_t of each token's share times its weight."""
        chain, rows = self._distribution(emissions, mask), self._rows(tags)
        partial = self._partial(chain, rows)
        weights, shares = self._weights(partial, token_weights, label_weights), chain.token_log_probs(partial)
        self._check_allowed(shares.sum(1), chain, rows)
        return torch.where(weights != 0, shares * weights, 0.0).sum(1)

    def _partial(self, chain: LinearChain, tags: Int[Tensor, "batch n"]) -> Int[Tensor, "batch n"]:
        """Return tags with -100 for unknown; any other negative, at a valid position, is an error."""
        wrong = chain.valid & (tags < 0) & (tags != UNKNOWN)
        if any_seen(wrong):
            row, position = wrong.nonzero()[0].tolist()
            raise ScoreError(
                f"tags must lie in 0..{self.num_tags - 1} or be {UNKNOWN} (unknown); "
                f"got {int(tags[row, position])} at row {row}, position {position}"
            )
        return torch.where(chain.valid, tags, UNKNOWN)

    def _weights(
        self, tags: Int[Tensor, "batch n"], token_weights: Tensor | None, label_weights: Tensor | None
    ) -> Float[Tensor, "batch n"]:
        weights = self.transitions.new_ones(tags.shape) if token_weights is None else self._rows(token_weights)
        if weights.shape != tags.shape:
            raise ScoreError(f"token_weights must be {tuple(tags.shape)} like the tags; got {tuple(weights.shape)}")
        if label_weights is None:
            return weights
        if label_weights.shape != (self.num_tags,):
            raise ScoreError(f"label_weights must be ({self.num_tags},); got {tuple(label_weights.shape)}")
        return weights * torch.where(tags >= 0, label_weights[tags.clamp(min=0)], 1.0)

    def _check_allowed(self, log_likelihood: Tensor, chain: LinearChain, tags: Tensor) -> None:
        """Raise for gold tags that the constraints forbid, instead of training on -inf."""
        forbidden = None if self._buffers[ALLOWED[0]] is None else log_likelihood.detach() == -INF
        if forbidden is None or not any_seen(forbidden):
            return
        row = int(forbidden.nonzero()[0])
        place = self._first_forbidden(tags[row], chain.valid[row])
        raise ConstraintError(
            f"the gold tags of row {row} are forbidden by the {self.scheme} scheme at {place}; "
            "correct the annotation, convert it to the scheme, or use CRF(num_tags) without constraints"
        )

    def _first_forbidden(self, tags: Int[Tensor, "n"], valid: Bool[Tensor, "n"]) -> str:
        """Return where and why a row breaks the scheme: between two known tags, or else across unknown ones."""
        names = [self.tags[tag] if tag >= 0 else "?" for tag in tags[valid].tolist()] if self.tags else []
        for index, why in violations(["O" if name == "?" else name for name in names], self.scheme or ""):
            if "?" not in names[max(index - 1, 0) : index + 1]:
                return f"position {int(valid.nonzero()[index])} ({why})"
        return f"tags {' '.join(names)}"

    def _validate(
        self, emissions: Tensor, tags: Tensor | None, mask: Tensor | None, lengths: Tensor | None
    ) -> Tensor | None:
        """Return the mask, which may be given as lengths, after checks of the shapes."""
        if not (isinstance(emissions, Tensor) and isinstance(tags, KIND) and isinstance(mask, KIND)):
            check_tensors(emissions=emissions, tags=tags, mask=mask)
        if emissions.dim() != 3:
            raise ScoreError(f"emissions must have dimension of 3, got {emissions.dim()}")
        shape, c = emissions.shape[:2], emissions.shape[2]
        if c != self.num_tags:
            raise ScoreError(f"expected last dimension of emissions is {self.num_tags}, got {c}")
        if shape[1 if self.batch_first else 0] == 0:
            raise ScoreError(f"emissions must have n >= 1 positions; got {tuple(emissions.shape)}; drop empty rows")
        for name, other in (("tags", tags), ("mask", mask)):
            if other is not None and other.shape != shape:
                raise ScoreError(
                    f"the first two dimensions of emissions and {name} must match, "
                    f"got {tuple(shape)} and {tuple(other.shape)}"
                )
        if lengths is None:
            return mask
        batch, n = shape if self.batch_first else reversed(shape)
        return self._rows(mask_of(lengths, mask, batch, n, emissions.device))
