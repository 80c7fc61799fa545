"""The gradients of [S3], [S1] and [S0] written out by hand: plain torch arithmetic, no autograd.

Nothing trains with these; they are the derivations, readable and tested equal to autograd. One sentence at a
time, one row per position: `f [n, c]` is the transpose of the matrix of [S3], whose columns are positions.
Where a printed formula is wrong, the corrected form stands here and the erratum is named.

    >>> f, transitions, start = torch.randn(5, 3), torch.randn(3, 3), torch.randn(3)
    >>> gradient = sentence_cost_gradient(f, transitions, start, tags=torch.tensor([0, 2, 2, 1, 0]))
    >>> gradient.f.shape, gradient.transitions.shape, gradient.start.shape
    (torch.Size([5, 3]), torch.Size([3, 3]), torch.Size([3]))
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from trelliswork.runtime.arrays import Float, Int

# The layers of [S3], each with its backward beside it ----------------------------------------------


def lookup(table: Float[Tensor, "v d"], words: Int[Tensor, " n"]) -> Float[Tensor, "n d"]:
    """Lookup Table Layer: row n of the result is W_(w_n) [S3, Lookup Table Layer]."""
    return table[words]


def lookup_backward(grad_output: Float[Tensor, "n d"], words: Int[Tensor, " n"], n_rows: int) -> Float[Tensor, "v d"]:
    """dC/dW_i sums the gradient at the positions t with w_t = i, not column i [S3, Lookup Table Layer] (erratum 18)."""
    return grad_output.new_zeros(n_rows, grad_output.shape[1]).index_add(0, words, grad_output)


def linear(
    inputs: Float[Tensor, "n i"], weight: Float[Tensor, "o i"], bias: Float[Tensor, " o"]
) -> Float[Tensor, "n o"]:
    """Linear Layer f^l = W f^(l-1) + b at each position [S3.13]."""
    return inputs @ weight.T + bias


class LinearGradient(NamedTuple):
    inputs: Float[Tensor, "n i"]
    weight: Float[Tensor, "o i"]
    bias: Float[Tensor, " o"]


def linear_backward(
    grad_output: Float[Tensor, "n o"], inputs: Float[Tensor, "n i"], weight: Float[Tensor, "o i"]
) -> LinearGradient:
    """dC/dW = [dC/df^l][f^(l-1)]^T, dC/db = dC/df^l [S3.14]; dC/df^(l-1) = W^T dC/df^l [S3.15]."""
    return LinearGradient(grad_output @ weight, grad_output.T @ inputs, grad_output.sum(0))


def max_over_time(inputs: Float[Tensor, "n d"]) -> tuple[Float[Tensor, " d"], Int[Tensor, " d"]]:
    """The largest value of each feature over positions m, and its position a_i [S3, Max Layer] (erratum 18)."""
    largest = inputs.max(dim=0)
    return largest.values, largest.indices


def max_over_time_backward(
    grad_output: Float[Tensor, " d"], positions: Int[Tensor, " d"], n: int
) -> Float[Tensor, "n d"]:
    """The gradient goes to position a_i, nothing elsewhere [S3, Max Layer]."""
    grad_inputs = grad_output.new_zeros(n, grad_output.shape[0])
    return grad_inputs.scatter(0, positions[None], grad_output[None])


def hardtanh(inputs: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
    """x clipped to [-1, 1] [S3.4]."""
    return inputs.clamp(-1, 1)


def hardtanh_backward(grad_output: Float[Tensor, "n d"], inputs: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
    """The gradient passes where -1 <= x <= 1 [S3, HardTanh Layer]."""
    return torch.where((inputs >= -1) & (inputs <= 1), grad_output, 0.0)


# Sentence-level log-likelihood [S3] ----------------------------------------------------------------


def sentence_score(
    f: Float[Tensor, "n c"],
    transitions: Float[Tensor, "c c"],
    start: Float[Tensor, " c"],
    tags: Int[Tensor, " n"],
) -> Float[Tensor, ""]:
    """s = sum_n A_(t_(n-1), t_n) + f_(t_n, n). `start` is A's row for t_0 (erratum 18) [S3, sentence score]."""
    chained = start[tags[0]] + transitions[tags[:-1], tags[1:]].sum()
    return chained + f[torch.arange(len(tags)), tags].sum()


def delta_recursion(
    f: Float[Tensor, "n c"], transitions: Float[Tensor, "c c"], start: Float[Tensor, " c"]
) -> Float[Tensor, "n c"]:
    """delta_n(t) = f_(t,n) + logadd_v(delta_(n-1)(v) + A_(v,t)), with delta_1 = f_1 + start [S3.9]."""
    delta = [f[0] + start]
    for scores in f[1:]:
        delta.append(scores + torch.logsumexp(delta[-1][:, None] + transitions, dim=0))
    return torch.stack(delta)


def sentence_cost(
    f: Float[Tensor, "n c"],
    transitions: Float[Tensor, "c c"],
    start: Float[Tensor, " c"],
    tags: Int[Tensor, " n"],
) -> Float[Tensor, ""]:
    """C = logadd over all tag sequences - score of the given one [S3, Sentence-Level Log-Likelihood]."""
    log_z = torch.logsumexp(delta_recursion(f, transitions, start)[-1], dim=0)
    return log_z - sentence_score(f, transitions, start, tags)


class SentenceCostGradient(NamedTuple):
    f: Float[Tensor, "n c"]
    transitions: Float[Tensor, "c c"]
    start: Float[Tensor, " c"]


def sentence_cost_gradient(
    f: Float[Tensor, "n c"],
    transitions: Float[Tensor, "c c"],
    start: Float[Tensor, " c"],
    tags: Int[Tensor, " n"],
    *,
    gold_accumulator: float = -1.0,
) -> SentenceCostGradient:
    """dC/df, dC/dA and dC/dstart through the delta recursion [S3, delta gradient].

    The gold path accumulates -1 where [S3] prints +1 (erratum 16): C contains *minus* its score.
    `gold_accumulator=1.0` gives the printed form, for the test that shows it wrong.
    """
    delta = delta_recursion(f, transitions, start)
    grad_f, grad_transitions, grad_start = (torch.zeros_like(x) for x in (f, transitions, start))
    for n, tag in enumerate(tags.tolist()):
        grad_f[n, tag] += gold_accumulator
        if n == 0:
            grad_start[tag] += gold_accumulator
        else:
            grad_transitions[tags[n - 1], tag] += gold_accumulator

    grad_delta = torch.softmax(delta[-1], dim=0)  # dC_logadd / d delta_N
    for n in range(len(f) - 1, 0, -1):
        came_from = torch.softmax(delta[n - 1][:, None] + transitions, dim=0)  # (t, u): sums to 1 over t
        grad_f[n] += grad_delta
        grad_transitions += came_from * grad_delta
        grad_delta = came_from @ grad_delta  # dC_logadd / d delta_(n-1)
    grad_f[0] += grad_delta
    grad_start += grad_delta
    return SentenceCostGradient(grad_f, grad_transitions, grad_start)


# The whole window network: equations 11 and 12 applied layer by layer ------------------------------


class WindowNetwork(NamedTuple):
    """Parameters of lookup -> window -> linear -> HardTanh -> linear -> transitions.

    Row 0 of `table` is the padding outside the sentence.
    """

    table: Float[Tensor, "v d"]
    hidden_weight: Float[Tensor, "h wd"]
    hidden_bias: Float[Tensor, " h"]
    score_weight: Float[Tensor, "c h"]
    score_bias: Float[Tensor, " c"]
    transitions: Float[Tensor, "c c"]
    start: Float[Tensor, " c"]


def window_words(words: Int[Tensor, " n"], window: int) -> Int[Tensor, "n w"]:
    """The words around each position, 0 outside the sentence.

    >>> window_words(torch.tensor([7, 8]), window=3)
    tensor([[0, 7, 8],
            [7, 8, 0]])
    """
    border = words.new_zeros(window // 2)
    return torch.cat([border, words, border]).unfold(0, window, 1)


def window_network_gradient(network: WindowNetwork, words: Int[Tensor, " n"], tags: Int[Tensor, " n"]) -> WindowNetwork:
    """The gradient of the sentence cost for every parameter: forward, then [S3.11-12] from the top down."""
    window = network.hidden_weight.shape[1] // network.table.shape[1]
    around = window_words(words, window)
    tokens = lookup(network.table, around.flatten()).reshape(len(words), -1)
    hidden = linear(tokens, network.hidden_weight, network.hidden_bias)
    squashed = hardtanh(hidden)
    f = linear(squashed, network.score_weight, network.score_bias)

    cost = sentence_cost_gradient(f, network.transitions, network.start, tags)
    top = linear_backward(cost.f, squashed, network.score_weight)
    bottom = linear_backward(hardtanh_backward(top.inputs, hidden), tokens, network.hidden_weight)
    grad_tokens = bottom.inputs.reshape(around.numel(), -1)
    table = lookup_backward(grad_tokens, around.flatten(), len(network.table))
    return WindowNetwork(table, bottom.weight, bottom.bias, top.weight, top.bias, cost.transitions, cost.start)


# The context-window CRF of [S1] --------------------------------------------------------------------


class ContextWeights(NamedTuple):
    """b, W(0), W(-1) and W(+1) of [S1], or their gradients."""

    bias: Float[Tensor, " c"]
    here: Float[Tensor, "c d"]
    previous: Float[Tensor, "c d"]
    following: Float[Tensor, "c d"]


def context_scores(x: Float[Tensor, "n d"], weights: ContextWeights) -> Float[Tensor, "n c"]:
    """a_u(y_k) = b + W(0) x_k + 1[k>1] W(-1) x_(k-1) + 1[k<K] W(+1) x_(k+1) [S1, context factors]."""
    nothing = x.new_zeros(1, len(weights.bias))
    from_previous = torch.cat([nothing, x[:-1] @ weights.previous.T])
    from_following = torch.cat([x[1:] @ weights.following.T, nothing])
    return weights.bias + x @ weights.here.T + from_previous + from_following


def chain_marginals(
    unary: Float[Tensor, "n c"], pairwise: Float[Tensor, "c c"]
) -> tuple[Float[Tensor, "n c"], Float[Tensor, "n-1 c c"]]:
    """p(y_k | X) and p(y_k, y_(k+1) | X) by forward and backward sums [S4.106-107]."""
    log_alpha = delta_recursion(unary, pairwise, torch.zeros_like(unary[0]))
    log_beta = [torch.zeros_like(unary[0])]
    for scores in unary[1:].flip(0):
        log_beta.insert(0, torch.logsumexp(pairwise + scores + log_beta[0], dim=1))
    beta = torch.stack(log_beta)
    log_z = torch.logsumexp(log_alpha[-1], dim=0)
    pairs = log_alpha[:-1, :, None] + pairwise + (unary + beta)[1:, None, :]
    return (log_alpha + beta - log_z).exp(), (pairs - log_z).exp()


def unary_gradient(p: Float[Tensor, "n c"], tags: Int[Tensor, " n"]) -> Float[Tensor, "n c"]:
    """d -log p(y|X) / d a_u(y_k) = -(e(y_k) - p(y_k|X)) [S1, unary gradient]."""
    return -(torch.nn.functional.one_hot(tags, p.shape[1]) - p)


def pairwise_gradient(p: Float[Tensor, "n-1 c c"], tags: Int[Tensor, " n"]) -> Float[Tensor, "n-1 c c"]:
    """d -log p(y|X) / d a_p(y_k, y_(k+1)) = -(1[y_k, y_(k+1)] - p(y_k, y_(k+1)|X)) [S4.115]; [S1] has no such line."""
    gold = torch.zeros_like(p)
    gold[torch.arange(len(p)), tags[:-1], tags[1:]] = 1
    return -(gold - p)


def context_gradient(grad_unary: Float[Tensor, "n c"], x: Float[Tensor, "n d"]) -> ContextWeights:
    """Gradients of b, W(0), W(-1), W(+1): sums over k, over k >= 2 and over k <= K-1 [S1, final forms].

    Each outer product pairs the gradient at k with the input that k saw. The middle forms of [S1] name the
    factors a(-1)(x_k) and a(+1)(x_k), but position k uses a(-1)(x_(k-1)) and a(+1)(x_(k+1)) (erratum 9).
    """
    return ContextWeights(
        bias=grad_unary.sum(0),
        here=grad_unary.T @ x,
        previous=grad_unary[1:].T @ x[:-1],
        following=grad_unary[:-1].T @ x[1:],
    )


def segment_weight_gradient(
    grad_segments: Float[Tensor, "batch n k c"], features: Float[Tensor, "batch n k d"], *, by_length: bool = False
) -> Float[Tensor, "c d"] | Float[Tensor, "k c d"]:
    """dL/dV0 where F(s) = V0 z(s): each segment's gradient times its own features, both by start [S0.9] (erratum 5).

    `by_length` keeps durations apart: one V0 for each.
    """
    return torch.einsum("bidy,bidj->dyj" if by_length else "bidy,bidj->yj", grad_segments, features)


def sgd_step(parameter: Tensor, grad_loss: Tensor, grad_regularizer: Tensor, *, lr: float, strength: float) -> Tensor:
    """theta + alpha Delta with Delta = -grad l - lambda grad Omega; the argument is left alone [S1, SGD]."""
    return parameter + lr * (-grad_loss - strength * grad_regularizer)
