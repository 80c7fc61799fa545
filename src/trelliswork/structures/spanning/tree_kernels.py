"""CPU kernels that pick spanning trees: the best (Chu-Liu/Edmonds), samples."""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.compilation import EXACT, kernel
from trelliswork.runtime.kernel_random import draw

NEG_INF = -np.inf
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
    """Every arc between words and from the root as a weight, with the arc of the input that it stands for."""
    counts, scores, arc_heads, arc_words = tables
    for m in range(n + 1):
        for h in range(n + 1):
            counts[m, h], scores[m, h] = 0, arcs[h, m] if m > 0 else NEG_INF
            arc_heads[m, h], arc_words[m, h] = h, m
        counts[m, 0] = -1 if single_root else 0


@kernel(EXACT)
def _best_head(node, alive, n_alive, counts, scores):
    """The best arc into a node from another one; -1 if there is none."""
    best, best_count, best_score = -1, 0, NEG_INF
    for i in range(n_alive):
        h = alive[i]
        if h != node and _better(counts[h], scores[h], best_count, best_score):
            best, best_count, best_score = h, counts[h], scores[h]
    return best


@kernel(EXACT)
def _contract(cycle, new, alive, n_alive, parent, chosen, tables):
    """A cycle becomes one node: an arc into it replaces the cycle's own arc there, an arc out of it is the best one.

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
    """Chu-Liu/Edmonds in O(n²): grow a path along best heads, contract each cycle it closes. False if no tree."""
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
    _expand(n, n_nodes, parent, chosen, state, tables, heads)
    return not single_root or _count_zeros(heads, n) == 1


@kernel(EXACT)
def _expand(n, n_nodes, parent, chosen, state, tables, heads):
    """From the last contraction to the first: the arc that enters a node also enters the member that holds its word.

    DONE is then the state of the nodes whose own best arcs are in the tree.
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
    for m in range(1, n + 1):
        heads[m - 1] = into_head[m]


@kernel(EXACT)
def _count_zeros(heads, n):
    count = 0
    for m in range(n):
        count += heads[m] == 0
    return count


@kernel(EXACT)
def _work(size):
    """Tables of counts, scores and the arcs that they stand for; lists of nodes."""
    shape, wide = (2 * size, 2 * size), 2 * size
    tables = np.empty(shape, np.int64), np.empty(shape), np.empty(shape, np.int64), np.empty(shape, np.int64)
    nodes = (
        np.empty(wide, np.int64), np.empty(wide, np.int64), np.empty(wide, np.int64), np.empty(wide, np.int64),
        np.empty(wide, np.int64),
    )  # fmt: skip
    return tables, nodes


@kernel(EXACT)
def best_trees(first, last, arcs, lengths, single_root, heads, possible):
    """The best tree of each row, the true single-root optimum included."""
    tables, nodes = _work(arcs.shape[1])
    for b in range(first, last):
        possible[b] = _best_tree(arcs[b], lengths[b], single_root, tables, nodes, heads[b])
        if not possible[b]:
            heads[b] = 0


# --- the second best tree ------------------------------------------------------------------------------------


@kernel(EXACT)
def _descendants(heads, n, stack):
    """[node, node]: whether the second is the first or hangs below it; the root is not looked at."""
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
    """
    n = arcs.shape[0] - 1
    tables, nodes = _work(n + 1)
    if not _best_tree(arcs, n, single_root, tables, nodes, heads):
        return -1
    counts, scores, arc_heads, arc_words = tables
    parent, chosen, state, path, _ = nodes
    below, least, found = _descendants(heads, n, path), np.inf, 0
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
                    least, found = loss, entered
            count, score, node = count + own_count, score + own_score, parent[node]
    return found


# --- samples -------------------------------------------------------------------------------------------------


@kernel(EXACT)
def _log_add(a, b):
    if a < b:
        a, b = b, a
    return a if b == NEG_INF else a + np.log1p(np.exp(b - a))


@kernel(EXACT)
def _eliminate_log(work, n, log_d):
    """Nodes n..1 of a graph with root 0, as in `structure.py`; rows and columns keep what they held."""
    for v in range(n, 0, -1):
        log_d[v] = NEG_INF
        for h in range(v):
            log_d[v] = _log_add(log_d[v], work[h, v])
        for h in range(v):
            for m in range(1, v):
                if h != m and work[h, v] > NEG_INF and work[v, m] > NEG_INF:
                    work[h, m] = _log_add(work[h, m], work[h, v] + work[v, m] - log_d[v])


@kernel(EXACT)
def _way(arcs, work, log_d, n, h, m, level, log_weights, state):
    """Which eliminated node an arc h -> m of the graph of nodes 0..level-1 goes through last; 0 if it is direct."""
    log_weights[0] = arcs[h, m]
    for v in range(1, n + 1):
        log_weights[v] = work[h, v] + work[v, m] - log_d[v] if v >= level else NEG_INF
    return draw(log_weights, n + 1, state)


@kernel(EXACT)
def _hangs_below(node, through, into, v):
    """Whether a node's way to the root, in the graph of nodes below v, meets an arc that goes through v."""
    while node != 0:
        if through[node] == v:
            return True
        node = into[node]
    return False


@kernel(EXACT)
def _sample_tree(arcs, work, log_d, n, into, through, log_weights, state):
    """A tree on nodes 0..n with root 0, from the smallest graph to the whole: `math.md`, equation (9)."""
    for v in range(1, n + 1):
        for h in range(v):
            log_weights[h] = NEG_INF if _hangs_below(h, through, into, v) else work[h, v]
        head = draw(log_weights, v, state)
        for m in range(1, v):
            if through[m] == v:
                into[m] = v
                through[m] = _way(arcs, work, log_d, n, v, m, v + 1, log_weights, state)
        into[v] = head
        through[v] = _way(arcs, work, log_d, n, head, v, v + 1, log_weights, state)


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
    """Exact, independent samples in O(n³) a row and root word, then about O(n²) each, however wide the scores.

    A single root word is drawn from its posterior; below it, the tree is one over the other words.
    """
    n_samples, size = seeds.shape[0], arcs.shape[1]
    graph, work, log_d = np.empty((size, size)), np.empty((size, size)), np.empty(size)
    order, into, through = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    log_weights, states = np.empty(size), np.empty((n_samples, 1), np.uint64)
    drawn = np.zeros(n_samples, np.int64)
    for b in range(first, last):
        n = lengths[b]
        log_roots = np.log(roots[b])
        for s in range(n_samples):
            states[s, 0] = np.uint64(seeds[s, b])
            if single_root:
                drawn[s] = max(draw(log_roots, n + 1, states[s]), 1)
        for root in range(1 if single_root else 0, n + 1 if single_root else 1):
            ready, n_below = False, 0
            for s in range(n_samples):
                if drawn[s] != root:
                    continue
                if not ready:
                    n_below = _rooted(arcs[b], n, root, order, graph)
                    for i in range(n_below + 1):
                        for j in range(n_below + 1):
                            work[i, j] = graph[i, j]
                    _eliminate_log(work, n_below, log_d)
                    ready = True
                into[:] = 0
                through[:] = 0
                _sample_tree(graph, work, log_d, n_below, into, through, log_weights, states[s])
                for i in range(1, n_below + 1):
                    heads[s, b, order[i] - 1] = order[into[i]]
