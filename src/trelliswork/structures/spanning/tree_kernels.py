"""CPU kernels that pick spanning trees: the best (Chu-Liu/Edmonds), samples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trelliswork.runtime.arrays import NEG_INF, Array
from trelliswork.runtime.compilation import EXACT, kernel
from trelliswork.runtime.kernel_random import draw, draw_weight
from trelliswork.structures.spanning import log_kernels
from trelliswork.structures.spanning.kernels import FINE, eliminate, exp_weights, room_of, start_from

NONE, OPEN, DONE = 0, 1, 2

# --- the best tree -------------------------------------------------------------------------------------------
# A weight is a pair (minus the number of root arcs, score), compared like a word in a dictionary. With it, a tree with
# one root word beats every tree with more: the single-root optimum needs no second search and no large constant.
# Tables are [node, head]: what enters a node lies in one row.


@kernel(EXACT, inline=True)
def _better(count, score, best_count, best_score):
    return score > NEG_INF and (
        best_score == NEG_INF or count > best_count or (count == best_count and score > best_score)
    )


@kernel(EXACT)
def _prepare(arcs, n, single_root, tables):
    """Write every arc between words and from the root as a weight, with the arc of the input that it stands for."""
    counts, scores, arc_heads, arc_words = tables
    for m in range(n + 1):
        for h in range(n + 1):
            counts[m, h], scores[m, h] = 0, arcs[h, m] if m > 0 else NEG_INF
            arc_heads[m, h], arc_words[m, h] = h, m
        counts[m, 0] = -1 if single_root else 0


@kernel(EXACT)
def _best_head(node, alive, n_alive, counts, scores):
    """Return the best arc into a node from another one; -1 if there is none."""
    best, best_count, best_score = -1, 0, NEG_INF
    for i in range(n_alive):
        h = alive[i]
        if h != node and _better(counts[h], scores[h], best_count, best_score):
            best, best_count, best_score = h, counts[h], scores[h]
    return best


@kernel(EXACT)
def _contract(cycle, new, alive, n_alive, parent, chosen, tables):
    """Contract a cycle: an arc into the new node replaces the cycle's own arc there, an arc out of it is the best one.

    Returns how many nodes are left.
    """
    counts, scores, arc_heads, arc_words = tables
    for member in cycle:
        parent[member] = new
    n_left = 0
    for i in range(n_alive):
        u = alive[i]
        if parent[u] < 0:
            alive[n_left] = u
            n_left += 1
            counts[new, u], scores[new, u] = 0, NEG_INF
            counts[u, new], scores[u, new] = 0, NEG_INF
    for y in cycle:
        own_count, own_score = counts[y, chosen[y]], scores[y, chosen[y]]
        for i in range(n_left):
            u = alive[i]
            count, score = counts[y, u] - own_count, scores[y, u] - own_score
            if _better(count, score, counts[new, u], scores[new, u]):
                counts[new, u], scores[new, u] = count, score
                arc_heads[new, u], arc_words[new, u] = arc_heads[y, u], arc_words[y, u]
            if _better(counts[u, y], scores[u, y], counts[u, new], scores[u, new]):
                counts[u, new], scores[u, new] = counts[u, y], scores[u, y]
                arc_heads[u, new], arc_words[u, new] = arc_heads[u, y], arc_words[u, y]
    alive[n_left] = new
    return n_left + 1


@kernel(EXACT)
def _best_tree(arcs, n, single_root, tables, nodes, heads):
    """Run Chu-Liu/Edmonds in O(n²): grow a path along best heads, contract each cycle it closes. False if no tree."""
    parent, chosen, state, path, alive = nodes  # `alive`: those that are not contracted
    _prepare(arcs, n, single_root, tables)
    parent[:] = -1
    state[:] = NONE
    state[0], n_nodes, n_alive = DONE, n + 1, n + 1
    for node in range(n + 1):
        alive[node] = node
    for start in range(1, n + 1):
        node = start
        while parent[node] >= 0:
            node = parent[node]
        if state[node] == DONE:
            continue
        path[0], n_path, state[node] = node, 1, OPEN
        while True:
            node = path[n_path - 1]
            head = _best_head(node, alive, n_alive, tables[0][node], tables[1][node])
            if head < 0:
                return False
            chosen[node] = head
            if state[head] == DONE:
                break
            if state[head] == NONE:
                path[n_path], state[head] = head, OPEN
                n_path += 1
                continue
            begin = n_path - 1
            while path[begin] != head:
                begin -= 1
            n_alive = _contract(path[begin:n_path], n_nodes, alive, n_alive, parent, chosen, tables)
            path[begin], state[n_nodes] = n_nodes, OPEN
            n_nodes, n_path = n_nodes + 1, begin + 1
        for i in range(n_path):
            state[path[i]] = DONE
    n_roots = _expand(n, n_nodes, parent, chosen, state, tables, heads)
    return not single_root or n_roots == 1


@kernel(EXACT)
def _expand(n, n_nodes, parent, chosen, state, tables, heads):
    """From the last contraction to the first: the arc that enters a node also enters the member that holds its word.

    DONE is then the state of the nodes whose own best arcs are in the tree. Returns how many root words there are.
    """
    _, _, arc_heads, arc_words = tables
    into_head, into_word = np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64)
    for node in range(1, n_nodes):
        state[node] = DONE
        into_head[node], into_word[node] = arc_heads[node, chosen[node]], arc_words[node, chosen[node]]
    for node in range(n_nodes - 1, n, -1):
        member = into_word[node]
        while member != node:
            into_head[member], into_word[member], state[member] = into_head[node], into_word[node], NONE
            member = parent[member]
    n_roots = 0
    for m in range(1, n + 1):
        heads[m - 1] = into_head[m]
        n_roots += into_head[m] == 0
    return n_roots


@kernel(EXACT)
def _work(size):
    """Return tables of counts, scores and the arcs that they stand for; lists of nodes."""
    table, line = np.empty((2 * size, 2 * size), np.int64), np.empty(2 * size, np.int64)
    nodes = line, line.copy(), line.copy(), line.copy(), line.copy()
    return (table, np.empty(table.shape), table.copy(), table.copy()), nodes


@kernel(EXACT)
def best_trees(first, last, arcs, lengths, single_root, heads, possible):
    """Compute the best tree of each row, the true single-root optimum included.

    Args:
        first: the first row.
        last: the row behind the last.
        arcs: scores of arcs, float64 [batch, n+1, n+1], indexed [head, dependent].
        lengths: words of each row, int64 [batch].
        single_root: whether a single word may depend on the root.
        heads: head of each word, int64 [batch, n], filled in.
        possible: whether a row has a tree, bool [batch], filled in.
    """
    tables, nodes = _work(arcs.shape[1])
    for b in range(first, last):
        possible[b] = _best_tree(arcs[b], lengths[b], single_root, tables, nodes, heads[b])
        if not possible[b]:
            heads[b] = 0


# --- the second best tree ------------------------------------------------------------------------------------


@kernel(EXACT)
def _descendants(heads, n, stack):
    """Return [node, node]: whether the second is the first or hangs below it; the root is not looked at."""
    below = np.zeros((n + 1, n + 1), np.bool_)
    for word in range(1, n + 1):
        node, waiting = word, 0
        while node != 0 and not below[node, node]:
            stack[waiting], waiting, node = node, waiting + 1, heads[node - 1]
        while waiting > 0:
            waiting -= 1
            node = stack[waiting]
            for above in range(1, n + 1):
                below[above, node] = below[above, heads[node - 1]]
            below[node, node] = True
    return below


@kernel(EXACT)
def second_tree(arcs, others, single_root, heads):
    """The best tree of one row, and a word at which the second best differs: 0 if there is no other, -1 if no tree.

    `others` are the scores of the arcs with their second best labels; another label makes another tree. Of all arcs
    into a node whose own arc is in the tree, from where no descendant is, the second best of some node leads to the
    second best tree: `math.md`, (10). They are compared by what they score less than the arc that they replace.

    Args:
        arcs: scores of one row, float64 [n+1, n+1].
        others: scores of the arcs with their second best labels, float64 [n+1, n+1].
        single_root: whether a single word may depend on the root.
        heads: head of each word, int64 [n], filled in.
    """
    n = arcs.shape[0] - 1
    tables, nodes = _work(n + 1)
    if not _best_tree(arcs, n, single_root, tables, nodes, heads):
        return -1
    counts, scores, arc_heads, arc_words = tables
    parent, chosen, state, path, _ = nodes
    below, least, word_of_second = _descendants(heads, n, path), np.inf, 0
    for word in range(1, n + 1):
        node, count, score = word, 0, 0.0  # the weight of the arcs that one into this word would replace further down
        while node >= 0:
            own_count, own_score = counts[node, chosen[node]], scores[node, chosen[node]]
            entered, own_head = arc_words[node, chosen[node]], arc_heads[node, chosen[node]]
            for head in range(n + 1 if state[node] == DONE else 0):
                arc = others[head, word] if head == own_head and word == entered else arcs[head, word]
                loss = own_score - (arc - score)
                more_roots = own_count - ((-1 if single_root and head == 0 else 0) - count)
                if loss < least and more_roots == 0 and not below[entered, head]:
                    least, word_of_second = loss, entered
            count, score, node = count + own_count, score + own_score, parent[node]
    return word_of_second


# --- samples -------------------------------------------------------------------------------------------------


class Graph(NamedTuple):
    """Arcs of a graph with root 0, what elimination made of them, and what led into each node when it left: weights, or
    scores if in log space."""

    arcs: Array
    work: Array
    d: Array
    n: int
    is_log: bool


@kernel(EXACT)
def _eliminate(scores, n, numbers, tops, order):
    """Return the graph of nodes 0..n with these scores, eliminated: in log space if weights are too wide."""
    work, weights, d = numbers[0], numbers[1], numbers[3]
    _, wide = exp_weights(scores, n, False, work, tops)
    start_from(numbers, order)
    status, _ = eliminate(numbers, numbers, False, n, 0, order)
    if status == FINE and not wide:
        return Graph(weights, work, d, n, False)
    for h in range(n + 1):
        for m in range(n + 1):
            work[h, m] = scores[h, m]
    log_kernels.eliminate(work, n, 0, order, d, tops)
    return Graph(scores, work, d, n, True)


@kernel(EXACT)
def _way(graph, h, m, level, choices, state):
    """Return the last eliminated node on an arc h -> m of the graph of nodes 0..level-1; 0 if the arc is direct."""
    arcs, work, d, n, is_log = graph
    choices[0] = arcs[h, m]
    for v in range(level, n + 1):
        way = work[h, v] + work[v, m] - d[v] if is_log else work[h, v] * work[v, m] / d[v]
        choices[v - level + 1] = way
    n_ways = n + 2 - level
    chosen = draw(choices, n_ways, state) if is_log else draw_weight(choices, n_ways, state)
    return chosen + level - 1 if chosen > 0 else 0


@kernel(EXACT)
def _hangs_below(node, through, into, v):
    """Return whether a node's way to the root, in the graph of nodes below v, meets an arc that goes through v."""
    while node != 0:
        if through[node] == v:
            return True
        node = into[node]
    return False


@kernel(EXACT)
def _sample_tree(graph, into, through, choices, state):
    """Draw a tree on nodes 0..n with root 0, from the smallest graph to the whole: `math.md`, equation (9)."""
    nothing = NEG_INF if graph.is_log else 0.0
    into[:] = 0
    through[:] = 0
    for v in range(1, graph.n + 1):
        for h in range(v):
            choices[h] = nothing if _hangs_below(h, through, into, v) else graph.work[h, v]
        head = draw(choices, v, state) if graph.is_log else draw_weight(choices, v, state)
        for m in range(1, v):
            if through[m] == v:
                into[m] = v
                through[m] = _way(graph, v, m, v + 1, choices, state)
        into[v] = head
        through[v] = _way(graph, head, v, v + 1, choices, state)


@kernel(EXACT)
def _rooted(arcs, n, root, order, graph):
    """The graph whose root is `root`: for a word, the others in order and without arcs into it. Returns its size."""
    order[0], size = root, 0
    for word in range(1, n + 1):
        if word != root:
            size += 1
            order[size] = word
    for i in range(size + 1):
        for j in range(1, size + 1):
            graph[i, j] = arcs[order[i], order[j]] if i != j else NEG_INF
    return size


@kernel(EXACT)
def sample_trees(first, last, arcs, lengths, single_root, roots, seeds, heads):
    """Draw exact, independent samples in O(n³) a row and root word, then about O(n²) each, however wide the scores.

    A single root word is drawn from its posterior; below it, the tree is one over the other words.

    Args:
        first: the first row.
        last: the row behind the last.
        arcs: scores of arcs, float64 [batch, n+1, n+1], indexed [head, dependent].
        lengths: words of each row, int64 [batch].
        single_root: whether a single word may depend on the root.
        roots: probability of each word as the root word, float64 [batch, n+1].
        seeds: a seed for each sample, int64 [samples, batch].
        heads: int64 [samples, batch, n], filled in.
    """
    n_samples, size = seeds.shape[0], arcs.shape[1]
    scores, numbers, tops, choices = np.empty((size, size)), room_of(size), np.empty(size), np.empty(size)
    order, into, through = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    places, states, drawn = np.empty(size, np.int64), np.empty((n_samples, 1), np.uint64), np.zeros(n_samples, np.int64)
    for b in range(first, last):
        n, n_drawn = lengths[b], np.zeros(size, np.int64)
        for s in range(n_samples):
            states[s, 0] = np.uint64(seeds[s, b])
            if single_root:
                drawn[s] = max(draw_weight(roots[b], n + 1, states[s]), 1)
            n_drawn[drawn[s]] += 1
        for root in range(n + 1):
            if n_drawn[root] == 0:
                continue
            graph = _eliminate(scores, _rooted(arcs[b], n, root, order, scores), numbers, tops, places)
            for s in range(n_samples):
                if drawn[s] == root:
                    _sample_tree(graph, into, through, choices, states[s])
                    for i in range(1, graph.n + 1):
                        heads[s, b, order[i] - 1] = order[into[i]]
