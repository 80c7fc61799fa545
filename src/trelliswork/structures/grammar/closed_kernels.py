"""CPU kernels of CKY for sparse grammars with unary rules, in scaled exp space.

A chart is [i, j, symbol] of tokens i..j, two of them: `base` before chains of unary rules, `full` with all chains.
Both are divided by exp(scale[i, j]), so that the highest entry of `full` is 1; what is 1e-300 of that or less is lost.
`rules` are (start of each left child, parent, right child, weight), `chains` (start of each child, ancestor, weight of
all chains or of the best one), `math.md`, (11) and (12). `pins` say of each span which chains it may have: 0 all,
ABSENT that it is in no tree, k the chains of list k; then the starts of each list (list 0 is empty), ancestors and
weights.
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.compilation import EXACT, kernel

TINY = 1e-300  # of the highest entry of a span
NOTHING = 1e-18  # a posterior that no digit of a sum of posteriors can show
ABSENT = -1


@kernel(EXACT)
def _close(base, full, chains, alone, best):
    """Compute full = base, if it counts `alone`, and all that chains make of it."""
    starts, ancestors, weights = chains
    full[:] = 0.0
    if alone:
        full[:] = base
    for b in range(base.shape[0]):
        if base[b] > 0.0:
            for c in range(starts[b], starts[b + 1]):
                a, value = ancestors[c], weights[c] * base[b]
                full[a] = max(full[a], value) if best else full[a] + value


@kernel(EXACT)
def _rescale(base, full, actives):
    """Divide by the highest, and list what is left; the logarithm of what was divided by, and how many there are."""
    top, n_active = 0.0, 0
    for a in range(full.shape[0]):
        top = max(top, full[a])
    if top == 0.0:
        return -np.inf, 0
    for a in range(full.shape[0]):
        base[a] /= top  # also below a symbol that is known, where it may count in chains alone
        if full[a] > 0.0:
            full[a] /= top
            if full[a] < TINY:
                base[a] = full[a] = 0.0
            else:
                actives[n_active] = a
                n_active += 1
    return np.log(top), n_active


@kernel(EXACT)
def _combine(left, right, factor, actives, rules, best, base):
    """Add: base += (or max=) left * right * rule, over the rules whose left child is active."""
    starts, parents, rights, weights = rules
    for at in range(actives.shape[0]):
        b = actives[at]
        share = left[b] * factor
        for r in range(starts[b], starts[b + 1]):
            value = share * right[rights[r]] * weights[r]
            if best:
                base[parents[r]] = max(base[parents[r]], value)
            else:
                base[parents[r]] += value


@kernel(EXACT)
def _chains_at(kind, chains, pins):
    _, starts, ancestors, weights = pins
    return (starts[kind], ancestors, weights) if kind > 0 else chains


@kernel(EXACT)
def fill(lexical, rules, chains, pins, best, base, full, scale):
    """Compute the inside recursion of one sentence, with sums or maxima; lexical is [n, symbol].

    Args:
        lexical: weights of the symbols above each word, float64 [n, symbols].
        rules: binary rules: where those of each symbol begin, both other symbols, and weights.
        chains: chains of unary rules: sums over them, or best ones.
        pins: which symbols each span must have, by kinds of spans [n, n].
        best: whether the best tree counts alone, instead of the sum over all.
        base: weights of symbols without unary rules on top, float64 [n, n, symbols], filled in.
        full: weights of symbols with them, float64 [n, n, symbols], filled in.
        scale: logarithm of what each span was divided by, float64 [n, n], filled in.
    """
    (n, size), kinds = lexical.shape, pins[0]
    actives, n_active = np.empty((n, n, size), np.int32), np.zeros((n, n), np.int64)
    for w in range(n):
        for i in range(n - w):
            j, top = i + w, -np.inf
            base[i, j] = 0.0
            if kinds[i, j] == ABSENT:
                continue
            if w == 0:
                base[i, i], top = lexical[i], 0.0
            for k in range(i, j):
                top = max(top, scale[i, k] + scale[k + 1, j])
            for k in range(i, j):
                part = scale[i, k] + scale[k + 1, j]
                if part > -np.inf:
                    mine = actives[i, k, : n_active[i, k]]
                    _combine(full[i, k], full[k + 1, j], np.exp(part - top), mine, rules, best, base[i, j])
            _close(base[i, j], full[i, j], _chains_at(kinds[i, j], chains, pins), kinds[i, j] == 0, best)
            change, n_active[i, j] = _rescale(base[i, j], full[i, j], actives[i, j])
            scale[i, j] = top + change


@kernel(EXACT)
def _open(out, out_base, chains, alone):
    """Compute derivatives by `base` from those by `full`."""
    starts, ancestors, weights = chains
    for b in range(out.shape[0]):
        total = out[b] if alone else 0.0
        for c in range(starts[b], starts[b + 1]):
            total += weights[c] * out[ancestors[c]]
        out_base[b] = total


@kernel(EXACT)
def _share(left, right, factor, rules, live, out_base, out_left, out_right):
    """Pass derivatives by the live symbols of a span on to those of its halves."""
    starts, lefts, rights, weights = rules
    for at in range(live.shape[0]):
        a = live[at]
        for r in range(starts[a], starts[a + 1]):
            one, other = left[lefts[r]], right[rights[r]]
            if one > 0.0 and other > 0.0:
                amount = out_base[a] * weights[r] * factor
                out_left[lefts[r]] += amount * other
                out_right[rights[r]] += amount * one


@kernel(EXACT)
def outside(roots, rules, chains, pins, base, full, scale, out):
    """Derivatives of log Z by entries of `full`; `out` comes as zeros. An entry times its derivative is a posterior.

    `rules` are by parent here. Symbols whose posterior is below NOTHING pass nothing on.

    Args:
        roots: weights of root symbols, float64 [symbols].
        rules: binary rules: where those of each symbol begin, both other symbols, and weights.
        chains: chains of unary rules: sums over them, or best ones.
        pins: which symbols each span must have, by kinds of spans [n, n].
        base: weights of symbols without unary rules on top, float64 [n, n, symbols].
        full: weights of symbols with them, float64 [n, n, symbols].
        scale: logarithm of what each span was divided by, float64 [n, n].
        out: float64 [n, n, symbols]; comes as zeros, filled in.
    """
    n, size, kinds = full.shape[0], full.shape[2], pins[0]
    out_base, live, z = np.empty(size), np.empty(size, np.int64), 0.0
    for a in range(size):
        z += roots[a] * full[0, n - 1, a]
    for a in range(size):
        out[0, n - 1, a] = roots[a] / z
    for w in range(n - 1, 0, -1):
        for i in range(n - w):
            j, n_live = i + w, 0
            if scale[i, j] == -np.inf:
                continue
            _open(out[i, j], out_base, _chains_at(kinds[i, j], chains, pins), kinds[i, j] == 0)
            for a in range(size):
                if base[i, j, a] * out_base[a] > NOTHING:
                    live[n_live] = a
                    n_live += 1
            for k in range(i, j if n_live > 0 else i):
                part = scale[i, k] + scale[k + 1, j]
                if part > -np.inf:
                    factor = np.exp(part - scale[i, j])
                    mine, halves = live[:n_live], (out[i, k], out[k + 1, j])
                    _share(full[i, k], full[k + 1, j], factor, rules, mine, out_base, halves[0], halves[1])


@kernel(EXACT)
def posteriors(full, out, chains, chart):
    """chart[i, j, a]: how often symbol a is expected above tokens i..j, in a chain or alone.

    Args:
        full: weights of symbols with them, float64 [n, n, symbols].
        out: derivatives of log Z by entries of `full`, float64 [n, n, symbols].
        chains: chains of unary rules: sums over them, or best ones.
        chart: float64 [n, n, symbols], filled in.
    """
    n, out_all = full.shape[0], np.empty(full.shape[2])
    for i in range(n):
        for j in range(i, n):
            _open(out[i, j], out_all, chains, True)
            for a in range(full.shape[2]):
                chart[i, j, a] = full[i, j, a] * out_all[a]


@kernel(EXACT)
def open_span(i, j, chains, pins, out, out_base):
    """Compute derivatives by the entries of `base` of one span.

    Args:
        i: first token of the span.
        j: its last token.
        chains: chains of unary rules: sums over them, or best ones.
        pins: which symbols each span must have, by kinds of spans [n, n].
        out: derivatives of log Z by entries of `full`, float64 [n, n, symbols].
        out_base: float64 [symbols], filled in.
    """
    kind = pins[0][i, j]
    _open(out[i, j], out_base, _chains_at(kind, chains, pins), kind == 0)


@kernel(EXACT)
def log_weights(rules, chains, pins, base, full, scale, out):
    """Return the expected logarithm of the weights of the binary rules of a tree; `rules` are by parent.

    Args:
        rules: binary rules: where those of each symbol begin, both other symbols, and weights.
        chains: chains of unary rules: sums over them, or best ones.
        pins: which symbols each span must have, by kinds of spans [n, n].
        base: weights of symbols without unary rules on top, float64 [n, n, symbols].
        full: weights of symbols with them, float64 [n, n, symbols].
        scale: logarithm of what each span was divided by, float64 [n, n].
        out: derivatives of log Z by entries of `full`, float64 [n, n, symbols].
    """
    starts, lefts, rights, weights = rules
    n, size, total = full.shape[0], full.shape[2], 0.0
    out_base = np.empty(size)
    for i in range(n):
        for j in range(i + 1, n):
            if scale[i, j] == -np.inf:
                continue
            open_span(i, j, chains, pins, out, out_base)
            for k in range(i, j):
                factor = np.exp(scale[i, k] + scale[k + 1, j] - scale[i, j])
                for a in range(size if factor > 0.0 else 0):
                    if base[i, j, a] * out_base[a] > NOTHING:
                        for r in range(starts[a], starts[a + 1]):
                            share = full[i, k, lefts[r]] * full[k + 1, j, rights[r]] * factor * out_base[a] * weights[r]
                            total += share * np.log(weights[r])
    return total
