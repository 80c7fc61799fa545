"""CPU kernel of the beam search without a language model, or with n-grams of labels: `beam.beam_search` over arrays.

A label string is a node of a tree of all strings that were ever kept: `tree[node]` has its parent, its last label, its
first child, the next child of its parent and its place in the beam (-1: none). A candidate of a frame is a number:
place s for a string of the beam that stays, n + s * c + label for one that the string in place s goes on to. Labels are
tried from the best of the frame down, until the beam is full of better strings. n-grams never add to a score, so that
the bound holds with them too; what they say of a label after a string is looked up when it is first asked for, and kept
as long as the string is in the beam.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trelliswork.runtime.arrays import NEG_INF, Array
from trelliswork.runtime.compilation import EXACT, kernel
from trelliswork.runtime.kernel_math import log_add
from trelliswork.structures.frontier_kernels import offer, prune, sort_heap

PARENT, LABEL, CHILD, SIBLING, PLACE = range(5)
NODE_FIELDS = 5
BLANK, LAST, ANY, EXTRA = range(4)  # log weights of a string's paths by how they end, together; what is added to them
WEIGHTS = 4


class LabelNgrams(NamedTuple):
    """n-gram arrays (`automata/ngram_arrays.py`) as kernels read them, and the number of each label in them.

    `states` has the longest suffix of each n-gram that tells about the next label. Without any n-grams nothing is said.
    """

    word: Array  # int32 [node]
    first: Array  # int32 [history + 1]
    suffix: Array  # int32 [node]
    log_prob: Array  # [node]
    log_backoff: Array  # [history]
    states: Array  # int32 [node]
    numbers: Array  # int32 [c + 1]; -1 for a label that the model does not have; the last is the end of a string


@kernel(EXACT)
def ngram_step(lm, state, label):
    """Return log p(label | state) and the state behind it; -inf for a label that the model does not have.

    Args:
        lm: the n-grams.
        state: the n-gram that is the state.
        label: number of the label.
    """
    word, total, low, high = lm.numbers[label], 0.0, 0, 0
    if word < 0:
        return NEG_INF, 0
    while state > 0:
        low, high = 0, 0
        if state < len(lm.log_backoff):
            low, high = lm.first[state], lm.first[state + 1]
        end = high
        while low < high:
            middle = (low + high) // 2
            if lm.word[middle] < word:
                low = middle + 1
            else:
                high = middle
        if low < end and lm.word[low] == word:
            return total + lm.log_prob[low], lm.states[low]
        if state < len(lm.log_backoff):
            total += lm.log_backoff[state]
        state = lm.suffix[state]
    return total + lm.log_prob[word + 1], lm.states[word + 1]


@kernel(EXACT)
def beam_strings(scores, blank, width, threshold, bonus, lm, start, lm_weight):
    """Return (tree, nodes, weights): the nodes in the beam behind the last frame, best first, and their weights.

    Args:
        scores: scores of the symbols of each frame, float64 [t, c].
        blank: number of the blank.
        width: how many strings the beam holds.
        threshold: strings that score more than this below the best are dropped.
        bonus: what each label adds.
        lm: n-grams of labels, or none.
        start: the state of the n-grams before the first label.
        lm_weight: what their scores are multiplied by; 0 without n-grams.
    """
    n_frames, c = scores.shape
    fused = len(lm.word) > 0
    tree, nodes, weights = np.empty((64, NODE_FIELDS), np.int64), np.empty(1, np.int64), np.empty((1, WEIGHTS))
    n_nodes, nodes[0] = _plant(tree, 0, -1, -1), 0
    tree[0, PLACE] = 0
    weights[0, BLANK], weights[0, LAST], weights[0, ANY], weights[0, EXTRA] = 0.0, NEG_INF, 0.0, 0.0
    states, said = np.full(1, start, np.int64), np.full((1, c if fused else 0), np.nan)
    room = c - 1 if fused or c - 1 < width + 1 else width + 1
    label_scores, labels = np.empty(room), np.empty(room, np.int64)
    for t in range(n_frames):
        n, size = len(nodes), len(nodes) * c
        stayed, known = np.empty((n, WEIGHTS)), np.zeros((n, c), np.bool_)
        _stay(scores[t], blank, tree, nodes, weights, stayed, known)
        best = np.empty(size if size < width else width)
        codes = np.empty(len(best), np.int64)
        n_labels = _best_labels(scores[t], blank, label_scores, labels)
        beam = tree, nodes, weights, states
        offered, fusion = (n_labels, labels, label_scores), (lm, lm_weight, said)
        size = _best(offered, bonus, beam, stayed, known, fusion, best, codes)
        size, _ = prune(best, codes, size, width, threshold)
        kept, new_weights = np.empty(size, np.int64), np.empty((size, WEIGHTS))
        new_states, new_said = np.zeros(size, np.int64), np.full((size, said.shape[1]), np.nan)
        for place in range(n):
            tree[nodes[place], PLACE] = -1
        for place in range(size):
            if n_nodes == len(tree):
                tree = _grown(tree)
            parent, label = (codes[place] - n) // c, (codes[place] - n) % c
            if parent < 0:
                kept[place] = nodes[codes[place]]
                for i in range(WEIGHTS):
                    new_weights[place, i] = stayed[codes[place], i]
                new_states[place] = states[codes[place]]
                for i in range(said.shape[1]):
                    new_said[place, i] = said[codes[place], i]
            else:
                kept[place] = _child(tree, nodes[parent], label, n_nodes)
                n_nodes += kept[place] == n_nodes
                extra = weights[parent, EXTRA] + bonus
                if fused:
                    extra += said[parent, label]
                    new_states[place] = ngram_step(lm, states[parent], label)[1]
                new_weights[place, BLANK], new_weights[place, EXTRA] = NEG_INF, extra
                new_weights[place, LAST] = new_weights[place, ANY] = best[place] - extra
            tree[kept[place], PLACE] = place
        nodes, weights, states, said = kept, new_weights, new_states, new_said
    if fused:
        for place in range(len(nodes)):
            weights[place, EXTRA] += lm_weight * ngram_step(lm, states[place], c)[0]
    return tree, nodes, weights


@kernel(EXACT)
def _plant(tree, node, parent, label):
    """Make a node without children; returns the next free one."""
    tree[node, PARENT], tree[node, LABEL], tree[node, CHILD], tree[node, SIBLING] = parent, label, -1, -1
    return node + 1


@kernel(EXACT)
def _grown(tree):
    """Return the tree with room for twice as many nodes."""
    room = np.empty((2 * len(tree), NODE_FIELDS), np.int64)
    for node in range(len(tree)):
        for i in range(NODE_FIELDS):
            room[node, i] = tree[node, i]
    return room


@kernel(EXACT)
def _child(tree, parent, label, free):
    """Return the node of a string with one more label; node `free` becomes it if there is none."""
    node = tree[parent, CHILD]
    while node >= 0:
        if tree[node, LABEL] == label:
            return node
        node = tree[node, SIBLING]
    _plant(tree, free, parent, label)
    tree[free, SIBLING], tree[parent, CHILD] = tree[parent, CHILD], free
    return free


@kernel(EXACT)
def _onset(weights, place, label, last):
    """Return the weight of paths behind which a label may begin: after a blank only, if it is the last one again."""
    return weights[place, BLANK] if label == last else weights[place, ANY]


@kernel(EXACT)
def _stay(frame, blank, tree, nodes, weights, stayed, known):
    """Fill in strings that stay: by a blank, by their last label again, or from a string of the beam one shorter.

    `known` marks the latter by the shorter string's place and the label.
    """
    for place in range(len(nodes)):
        label, parent, last = tree[nodes[place], LABEL], tree[nodes[place], PARENT], NEG_INF
        if parent >= 0:
            last = weights[place, LAST] + frame[label]
            shorter = tree[parent, PLACE]
            if shorter >= 0:
                known[shorter, label] = True
                last = log_add(last, _onset(weights, shorter, label, tree[parent, LABEL]) + frame[label])
        stayed[place, BLANK], stayed[place, LAST] = weights[place, ANY] + frame[blank], last
        stayed[place, ANY], stayed[place, EXTRA] = log_add(stayed[place, BLANK], last), weights[place, EXTRA]


@kernel(EXACT)
def _best_labels(frame, blank, best, labels):
    """Fill in the best labels of a frame above -inf, best first, and return how many there are.

    There is room for one more than the beam has: of a string and width + 2 labels, all but the last label again are at
    least as good as the string with the worst of them.
    """
    size = 0
    for label in range(len(frame)):
        if label != blank:
            size = offer(best, labels, size, frame[label], label)
    sort_heap(best, labels, size)
    return size


@kernel(EXACT)
def _best(offered, bonus, beam, stayed, known, fusion, best, codes):
    """Fill the heap with the best candidates above -inf; returns how many there are."""
    (n_labels, labels, label_scores), (lm, lm_weight, said) = offered, fusion
    tree, nodes, weights, states = beam
    n, c = known.shape
    size, fused = 0, said.shape[1] > 0
    for place in range(n):
        size = offer(best, codes, size, stayed[place, ANY] + stayed[place, EXTRA], place)
    for place in range(n):
        last, extra = tree[nodes[place], LABEL], weights[place, EXTRA] + bonus
        for rank in range(n_labels):
            label = labels[rank]
            if size == len(best) and weights[place, ANY] + label_scores[rank] + extra < best[0]:
                break
            if not known[place, label]:
                score = _onset(weights, place, label, last) + label_scores[rank] + extra
                if fused:
                    if np.isnan(said[place, label]):
                        said[place, label] = lm_weight * ngram_step(lm, states[place], label)[0]
                    score += said[place, label]
                size = offer(best, codes, size, score, n + place * c + label)
    return size
