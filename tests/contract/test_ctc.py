"""`CTC` over label strings, against all paths of small frames collapsed one by one."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from tests.contract.base import BACKENDS, INF, chi_square_fits, close, log_sum
from tests.oracles.ctc import collapsed, strings
from trelliswork.distributions import CTC, CTCAlignment, kl_divergence
from trelliswork.errors import ConstraintError, ScoreError
from trelliswork.structures.ctc.beam import Lexicon
from trelliswork.structures.ctc.strings import count_strings

LENGTHS = torch.tensor([5, 1, 4])


def frames(seed: int, t: int = 5, c: int = 3, scale: float = 1.5, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (scale * torch.randn(3, t, c, generator=generator, dtype=torch.float64)).log_softmax(-1).to(dtype)


def cases() -> dict[str, tuple[Tensor, int]]:
    forbidden = frames(1)
    forbidden[0, 2, 1] = forbidden[2, 0, 0] = -INF
    return {
        "plain": (frames(0), 0),
        "forbidden": (forbidden.log_softmax(-1), 0),
        "blank 2": (frames(2), 2),
        "scores that are not normalised": (frames(3) + 2.5 * torch.arange(5)[:, None], 0),
        "ties": (torch.zeros(3, 5, 3, dtype=torch.float64), 0),
        "float32": (frames(4, dtype=torch.float32), 1),
    }


CASES = cases()
every_case = pytest.mark.parametrize(("scores", "blank"), list(CASES.values()), ids=list(CASES))


def log_probs_of(scores: Tensor, blank: int) -> list[dict[tuple[int, ...], float]]:
    """log p of every possible label string of each row."""
    found = [strings(row[:n], blank) for row, n in zip(scores, LENGTHS.tolist(), strict=True)]
    totals = [log_sum(list(each.values())) for each in found]
    return [{string: w - z for string, w in each.items()} for each, z in zip(found, totals, strict=True)]


@every_case
@pytest.mark.parametrize("backend", BACKENDS)
def test_log_prob_of_every_string(scores: Tensor, blank: int, backend: str) -> None:
    dist, wanted = CTC(scores, lengths=LENGTHS, blank=blank, backend=backend), log_probs_of(scores, blank)
    lists = [list(each) for each in wanted]
    for i in range(max(map(len, lists))):
        batch = [row[i % len(row)] for row in lists]
        found = dist.log_prob([list(string) for string in batch])
        assert found.dtype == scores.dtype
        assert (found <= 0).all()
        close(found, [each[string] for each, string in zip(wanted, batch, strict=True)])
    close(
        dist.log_partition,
        [log_sum(list(strings(r[:n], blank).values())) for r, n in zip(scores, LENGTHS, strict=True)],
    )


@every_case
def test_top_k_is_the_head_of_the_sorted_enumeration(scores: Tensor, blank: int) -> None:
    dist, wanted = CTC(scores, lengths=LENGTHS, blank=blank), log_probs_of(scores, blank)
    for k in (1, 4, 9):
        values, found = dist.top_k(k)
        for row, each in enumerate(wanted):
            best = sorted(each.values(), reverse=True)[:k]
            log_probs = found[:, row] - dist.log_partition[row]
            close(log_probs, [*best, *[-INF] * (k - len(best))])
            kept = [tuple(values[r][row]) for r in range(len(best))]
            assert len(set(kept)) == len(kept)
            close(log_probs[: len(best)], [each[string] for string in kept])


@every_case
def test_argmax_is_the_most_probable_string(scores: Tensor, blank: int) -> None:
    dist, wanted = CTC(scores, lengths=LENGTHS, blank=blank), log_probs_of(scores, blank)
    assert dist.argmax == dist.mode == dist.prefix_search()
    best = [each[tuple(string)] for each, string in zip(wanted, dist.argmax, strict=True)]
    close(torch.tensor(best, dtype=torch.float64), [max(each.values()) for each in wanted], scores.dtype)


def test_the_best_path_may_miss_the_best_string() -> None:
    """Two frames of 0.6 blank: the best path is silent, yet most paths hold the label."""
    dist = CTC(torch.tensor([[[0.6, 0.4], [0.6, 0.4]]]).log())
    assert dist.best_path() == [[]]
    assert dist.prefix_search() == [[1]]


@every_case
def test_best_path_collapses_the_best_symbols(scores: Tensor, blank: int) -> None:
    found = CTC(scores, lengths=LENGTHS, blank=blank).best_path()
    for row, n, string in zip(scores, LENGTHS.tolist(), found, strict=True):
        assert tuple(string) == collapsed(row[:n].argmax(-1).tolist(), blank)


def test_sections_between_blanks_are_solved_one_by_one_and_joined() -> None:
    for seed in range(10):
        generator = torch.Generator().manual_seed(seed)
        scores = torch.randn(1, 9, 3, generator=generator, dtype=torch.float64)
        quiet = torch.rand(9, generator=generator) < 0.3
        scores[0, quiet, 1:] = -40.0
        joined: list[int] = []
        for is_quiet, places in itertools.groupby(range(9), key=quiet.tolist().__getitem__):
            joined += [] if is_quiet else CTC(scores[:, list(places)]).prefix_search()[0]
        assert CTC(scores).prefix_search(threshold=0.9999) == [joined]


def test_sections_are_not_exact_where_blanks_are_uncertain() -> None:
    dist = CTC(torch.tensor([[[0.6, 0.4], [0.6, 0.4]]]).log())
    assert dist.prefix_search(threshold=0.5) == [[]]


def test_prefix_search_says_when_it_gives_up() -> None:
    with pytest.raises(ScoreError, match=r"no more than limit=50 prefixes.*beam_search"):
        CTC(torch.zeros(1, 30, 5)).prefix_search(limit=50)


@every_case
def test_samples_have_the_right_frequencies(scores: Tensor, blank: int) -> None:
    dist = CTC(scores, lengths=LENGTHS, blank=blank)
    samples = dist.sample((3000,), generator=torch.Generator().manual_seed(5))
    for row, log_probs in enumerate(log_probs_of(scores, blank)):
        counts = Counter(tuple(sample[row]) for sample in samples)
        probabilities = {string: math.exp(value) for string, value in log_probs.items()}
        assert counts.keys() <= probabilities.keys()
        assert chi_square_fits(counts, probabilities)


def test_samples_come_in_the_shape_asked_for() -> None:
    dist = CTC(frames(6))
    assert dist.sample((0,)) == []
    assert [len(dist.sample()), len(dist.sample((2,))), len(dist.sample((2, 4))[1])] == [3, 2, 4]
    first, second = (dist.sample((5,), generator=torch.Generator().manual_seed(1)) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("c", [2, 3, 4])
def test_the_number_of_strings(c: int) -> None:
    for t in range(1, 6):
        assert CTC(torch.zeros(1, t, c)).count.tolist() == [len(strings(torch.zeros(t, c), 0))]
    assert CTC(torch.zeros(2, 3, c), lengths=[0, 1]).count.tolist() == [1, c]


@every_case
@pytest.mark.parametrize("backend", BACKENDS)
def test_entropy_and_divergence(scores: Tensor, blank: int, backend: str) -> None:
    other = scores + frames(11).to(scores.dtype)
    p, q = (CTC(each, lengths=LENGTHS, blank=blank, backend=backend) for each in (scores, other))
    mine, its = log_probs_of(scores, blank), log_probs_of(other, blank)
    assert p.count.tolist() == [len(row) for row in mine]
    close(p.entropy(), [-sum(math.exp(x) * x for x in row.values()) for row in mine])
    pairs = list(zip(mine, its, strict=True))
    close(kl_divergence(p, q), [sum(math.exp(x) * (x - b[s]) for s, x in a.items()) for a, b in pairs])
    forbidding = q.constrain(torch.tensor([[blank, -1, -1, -1, -1]] * 3))
    assert (kl_divergence(p, forbidding) == INF).tolist() == [len(row) > 1 for row in mine]


@pytest.mark.parametrize("backend", BACKENDS)
def test_divergence_is_infinite_however_improbable_what_is_forbidden_is(backend: str) -> None:
    scores = torch.tensor([[[0.0, -2000.0], [0.0, -2000.0]]], dtype=torch.float64)
    p, q = CTC(scores, backend=backend), CTC(scores, backend=backend).constrain(torch.tensor([[0, 0]]))  # type: ignore[arg-type]
    assert p.log_prob([[1]]).item() < -1000 and kl_divergence(p, q).item() == INF
    assert kl_divergence(q, p).item() == 0.0


def test_derivatives_of_the_entropy() -> None:
    scores = frames(8, t=3).requires_grad_()
    assert gradcheck(lambda each: CTC(each).entropy(), scores)
    assert gradgradcheck(lambda each: CTC(each).entropy(), scores, fast_mode=True)


@pytest.mark.parametrize("seed", range(20))
def test_strings_are_counted_once_where_symbols_are_forbidden(seed: int) -> None:
    scores = frames(seed, t=6, c=3 + seed % 2)
    scores = torch.where(torch.rand(scores.shape, generator=torch.Generator().manual_seed(seed)) < 0.4, -INF, scores)
    assert CTC(scores, blank=seed % 3).count.tolist() == [len(strings(row, seed % 3)) for row in scores]


# --- derivatives ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_first_and_second_derivatives(backend: str) -> None:
    scores = frames(7, 4).requires_grad_()

    def log_prob(scores: Tensor) -> Tensor:
        return CTC(scores, lengths=[4, 2, 3], backend=backend).log_prob([[1, 1], [2], []])

    assert gradcheck(log_prob, (scores,))
    assert gradgradcheck(log_prob, (scores,), fast_mode=True)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_gradient_is_occupancy_less_probability(backend: str) -> None:
    scores = frames(8).requires_grad_()
    dist, targets = CTC(scores, lengths=LENGTHS, backend=backend), [[1, 2], [2], [1, 1]]
    (gradient,) = torch.autograd.grad(dist.log_prob(targets).sum(), scores)
    close(gradient, (dist.occupancies(targets) - dist.marginals).detach())


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_string_that_does_not_fit_has_probability_zero_and_gradient_zero(backend: str) -> None:
    scores = frames(9).requires_grad_()
    found = CTC(scores, lengths=LENGTHS, backend=backend).log_prob([[1, 1, 1], [1, 2], [1, 1]])
    assert found.tolist()[1] == -INF
    assert math.isfinite(found[0].item())
    found.sum().backward()
    assert scores.grad is not None
    assert (scores.grad[1] == 0).all()
    assert scores.grad.isfinite().all()


def test_function_transforms_go_to_the_reference() -> None:
    scores = frames(19, 4)

    def log_prob(scores: Tensor) -> Tensor:
        return CTC(scores, lengths=[4, 2, 3]).log_prob([[1, 1], [2], []]).sum()

    leaf = scores.clone().requires_grad_()
    log_prob(leaf).backward()
    assert leaf.grad is not None
    close(torch.func.grad(log_prob)(scores), leaf.grad)
    _, tangent = torch.func.jvp(log_prob, (scores,), (torch.ones_like(scores),))
    close(tangent, leaf.grad.sum())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_in_and_out(dtype: torch.dtype) -> None:
    half = frames(10).to(dtype).requires_grad_()
    dist = CTC(half, lengths=LENGTHS)
    found = dist.log_prob([[1, 2], [1], []])
    assert found.dtype == dtype
    exact = CTC(half.double(), lengths=LENGTHS).log_prob([[1, 2], [1], []])
    torch.testing.assert_close(found.double(), exact, rtol=1e-2, atol=1e-2)
    found.sum().backward()
    assert half.grad is not None
    assert half.grad.dtype == dtype
    assert dist.argmax == CTC(half.double(), lengths=LENGTHS).argmax


# --- over paths ----------------------------------------------------------------------------------------------


def test_questions_about_all_paths() -> None:
    scores = frames(11) + 1.0
    dist = CTC(scores, lengths=LENGTHS)
    costs = torch.randn(3, 5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    wanted, squares, entropies = [], [], []
    for row, n in enumerate(LENGTHS.tolist()):
        p = scores[row, :n].softmax(-1)
        wanted.append((p * costs[row, :n]).sum().item())
        squares.append(((p * costs[row, :n] ** 2).sum(-1) - (p * costs[row, :n]).sum(-1) ** 2).sum().item())
        entropies.append(-(p * p.log()).sum().item())
    close(dist.expected(costs), wanted)
    close(dist.variance(costs), squares)
    close(dist.path_entropy(), entropies)
    assert (dist.marginals[1, 1:] == 0).all()
    close(dist.marginals[0], scores[0].softmax(-1))


def test_constraints_keep_the_paths_that_agree() -> None:
    scores = frames(12)
    dist = CTC(scores, lengths=LENGTHS)
    known = torch.full((3, 5), -100)
    known[:, 0] = 1
    kept = dist.constrain(known)
    close(dist.log_prob_of_set(known), (scores[:, 0, 1]).tolist())
    assert all(string[0] == 1 for string in kept.argmax)
    rest = scores[0].clone()
    rest[0, [0, 2]] = -INF
    wanted = strings(rest, 0)
    total = log_sum(list(wanted.values()))
    close(kept.log_prob([[1, 2], [1], [1]])[0], [wanted[1, 2] - total])


# --- forced alignment ----------------------------------------------------------------------------------------


def test_align_gives_paths_spans_and_scores() -> None:
    frame = torch.full((1, 6, 3), -3.0)
    for t, symbol in enumerate([1, 1, 0, 1, 2, 2]):
        frame[0, t, symbol] = -0.5
    found = CTC(frame).align([[1, 1, 2]])
    assert found.paths.tolist() == [[1, 1, 0, 1, 2, 2]]
    assert found.spans == [[(0, 2, 1, -0.5), (3, 4, 1, -0.5), (4, 6, 2, -0.5)]]
    assert found.scores.tolist() == [-3.0]
    with pytest.raises(ConstraintError, match=r"row 0 has no alignment .* above -inf; allow more frames"):
        CTC(frame).align([[1, 1, 1, 1]])


def test_count_alignments_and_given() -> None:
    dist = CTC(torch.zeros(2, 5, 3))
    assert dist.count_alignments([[1, 1], [1, 2]]).tolist() == [math.comb(6, 4), math.comb(7, 4)]
    assert isinstance(dist.given([[1], [2]]), CTCAlignment)


# --- beam search ---------------------------------------------------------------------------------------------


class Bigram:
    """A language model over symbols for the tests: log p(symbol | the one before)."""

    def __init__(self, seed: int, symbols: list[Any]):
        generator = torch.Generator().manual_seed(seed)
        n = len(symbols) + 1
        self.log_p = torch.randn(n, n, generator=generator, dtype=torch.float64).log_softmax(-1).tolist()
        self.place = {symbol: i for i, symbol in enumerate(symbols)}

    def start(self) -> int:
        return len(self.place)

    def score(self, state: int, symbol: Any) -> tuple[float, int]:
        return self.log_p[state][self.place[symbol]], self.place[symbol]

    def final(self, state: int) -> float:
        return self.log_p[state][len(self.place)]

    def of(self, symbols: Any) -> float:
        state, total = self.start(), 0.0
        for symbol in symbols:
            log_p, state = self.score(state, symbol)
            total += log_p
        return total + self.final(state)


EVERYTHING = 10_000  # wider than there are strings: the search is exact


def assert_best(found: list[Any], wanted: dict[tuple[int, ...], float]) -> None:
    """The strings found are the best of all, with their scores."""
    best = sorted(wanted.values(), reverse=True)[: len(found)]
    close(torch.tensor([score for _, score in found], dtype=torch.float64), best)
    close(torch.tensor([wanted[tuple(labels)] for labels, _ in found], dtype=torch.float64), best)


@every_case
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_wide_beam_finds_the_best_strings(scores: Tensor, blank: int, backend: str) -> None:
    dist = CTC(scores, lengths=LENGTHS, blank=blank, backend=backend)
    for row, wanted in enumerate(log_probs_of(scores, blank)):
        found = dist.beam_search(EVERYTHING, k=3)[row]
        assert len(found) == min(3, len(wanted))
        assert_best([(labels, round(score, 12)) for labels, score in found], wanted)


@pytest.mark.parametrize("width", [1, 3, 20])
@pytest.mark.parametrize("bonus", [0.0, 0.4])
def test_the_kernel_keeps_the_strings_that_the_plain_beam_keeps(width: int, bonus: float) -> None:
    """Strings leave the beam and come back, and longer ones outlive them; the tree of the kernel has to grow."""
    scores = frames(19, t=40, c=4)
    scores[:, ::7, 1] = scores[:, 3, 0] = -INF
    kernel, plain = (CTC(scores, backend=backend) for backend in BACKENDS)
    for fast, slow in zip(
        *(each.beam_search(width, k=width, label_bonus=bonus) for each in (kernel, plain)), strict=True
    ):
        assert [labels for labels, _ in fast] == [labels for labels, _ in slow]
        assert [score for _, score in fast] == pytest.approx([score for _, score in slow], rel=1e-12)


def collapsed_beam(
    scores: Tensor, width: int, symbol_threshold: float, beam_threshold: float
) -> list[tuple[tuple[int, ...], float]]:
    """The pruned search by its definition: the weights of each string's paths, ending in a blank or not."""
    beam = {(): (1.0, 0.0)}
    for frame in scores.exp().tolist():
        tried = [x for x, p in enumerate(frame) if p >= math.exp(symbol_threshold) * sum(frame) or p == max(frame)]
        new: dict[tuple[int, ...], list[float]] = {}
        for labels, (in_blank, in_label) in beam.items():
            for x in tried:
                if x == 0:
                    new.setdefault(labels, [0.0, 0.0])[0] += (in_blank + in_label) * frame[x]
                elif labels and x == labels[-1]:
                    new.setdefault(labels, [0.0, 0.0])[1] += in_label * frame[x]
                    new.setdefault((*labels, x), [0.0, 0.0])[1] += in_blank * frame[x]
                else:
                    new.setdefault((*labels, x), [0.0, 0.0])[1] += (in_blank + in_label) * frame[x]
        ranked = sorted(new.items(), key=lambda each: -sum(each[1]))[:width]
        floor = sum(ranked[0][1]) * math.exp(-beam_threshold)
        beam = {labels: (weights[0], weights[1]) for labels, weights in ranked if sum(weights) >= max(floor, 1e-300)}
    return [(labels, math.log(sum(weights))) for labels, weights in beam.items()]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("width", "symbols", "strings"), [(8, -2.0, 3.0), (30, -1.0, INF), (30, -INF, 2.0), (9, 0.0, 0.0)]
)
def test_a_pruned_beam_is_that_of_its_definition(backend: str, width: int, symbols: float, strings: float) -> None:
    scores = frames(20, t=25, c=5)
    scores[:, ::7, 1] = -INF
    dist = CTC(scores, lengths=torch.tensor([25, 1, 12]), backend=backend)
    for row, found in enumerate(dist.beam_search(width, k=width, symbol_threshold=symbols, beam_threshold=strings)):
        real = scores[row, : int(dist.lengths[row])]
        wanted = collapsed_beam(real, width, symbols, strings)
        assert sorted(tuple(labels) for labels, _ in found) == sorted(labels for labels, _ in wanted)
        log_z = float(real.logsumexp(-1).sum())
        close(torch.tensor([score for _, score in found], dtype=torch.float64), [score - log_z for _, score in wanted])


def test_pruning_leaves_the_best_symbol_and_cuts_the_beam() -> None:
    scores = torch.tensor([[[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]]).log()
    assert CTC(scores).beam_search(9, symbol_threshold=0.0) == [[([2], pytest.approx(math.log(0.35)))]]
    assert len(CTC(scores).beam_search(9, k=9)[0]) > len(CTC(scores).beam_search(9, k=9, beam_threshold=1.0)[0]) > 1


def test_both_beams_keep_the_same_strings_among_ties() -> None:
    """The kernel tries labels from the best of the frame down, the plain beam in their order."""
    scores = torch.zeros(1, 2, 7)
    scores[..., 2] = scores[..., 5] = 1.0
    fast, slow = (CTC(scores, backend=backend).beam_search(5, k=5)[0] for backend in BACKENDS)
    assert [labels for labels, _ in fast] == [labels for labels, _ in slow]
    assert len({score for _, score in fast}) < 5


def test_a_language_model_over_labels() -> None:
    scores = frames(13)
    model = Bigram(0, [1, 2])
    dist = CTC(scores, lengths=LENGTHS)
    for row, log_probs in enumerate(log_probs_of(scores, 0)):
        wanted = {s: p + 1.7 * model.of(s) + 0.4 * len(s) for s, p in log_probs.items()}
        assert_best(dist.beam_search(EVERYTHING, k=4, scorer=model, scorer_weight=1.7, label_bonus=0.4)[row], wanted)


SPELLINGS = {"a": [1], "ab": [1, 2], "bb": [2, 2]}


def test_a_lexicon_with_a_separator_and_a_word_model() -> None:
    """Symbols: 0 blank, 1 a, 2 b, 3 between words."""
    scores = frames(14, c=4, scale=0.5)
    lexicon, model = Lexicon(SPELLINGS, separator=3), Bigram(1, list(SPELLINGS))
    dist = CTC(scores, lengths=LENGTHS)
    for row, log_probs in enumerate(log_probs_of(scores, 0)):
        parsed = {string: lexicon.words_of(string) for string in log_probs}
        spelt = {string: words for string, words in parsed.items() if None not in words}
        plain = {string: log_probs[string] for string in spelt}
        assert_best(dist.beam_search(EVERYTHING, k=3, lexicon=lexicon)[row], plain)
        scored = {string: log_probs[string] + 0.8 * model.of(words) for string, words in spelt.items()}
        found = dist.beam_search(EVERYTHING, k=3, lexicon=lexicon, word_scorer=model, word_weight=0.8)[row]
        assert_best(found, scored)


def test_a_lexicon_without_a_separator_allows_one_word() -> None:
    scores = frames(15)
    dist, lexicon = CTC(scores, lengths=LENGTHS), Lexicon(SPELLINGS)
    for row, log_probs in enumerate(log_probs_of(scores, 0)):
        wanted = {s: p for s, p in log_probs.items() if not s or list(s) in SPELLINGS.values()}
        assert_best(dist.beam_search(EVERYTHING, k=9, lexicon=lexicon)[row], wanted)


def test_a_narrow_beam_finds_strings_with_their_own_scores() -> None:
    scores = frames(16)
    for row, (found,) in enumerate(CTC(scores, lengths=LENGTHS).beam_search(1)):
        assert found.score <= log_probs_of(scores, 0)[row][tuple(found.labels)] + 1e-12


def test_words_of_a_string() -> None:
    lexicon = Lexicon(SPELLINGS, separator=3)
    assert lexicon.words_of([]) == []
    assert lexicon.words_of([1, 3, 2, 2]) == ["a", "bb"]
    assert lexicon.words_of([2, 3, 1]) == [None, "a"]
    assert lexicon.words_of([1, 3]) == ["a", None]


# --- what cannot be ------------------------------------------------------------------------------------------

DIST, MANY = CTC(torch.zeros(1, 3, 3)), CTC(torch.zeros(1, 30, 5))
FORBIDDING = (frames(7)[0] > -1.5).numpy()


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: MANY.entropy(), r"needs every one of them: at most 4096 a row; got 5\.86e\+15; ask given"),
        (lambda: kl_divergence(MANY, MANY), r"the divergence of label strings needs every one of them"),
        (lambda: kl_divergence(DIST, MANY), "KL needs the same shape, lengths and blank"),
        (lambda: count_strings(FORBIDDING, 0, 1), "leave more than 1 kinds of label strings to count; loosen"),
        (lambda: DIST.top_k(0), "k must be at least 1"),
        (lambda: DIST.beam_search(0), "width and k must be at least 1"),
        (lambda: DIST.beam_search(symbol_threshold=0.1), "symbol_threshold must be a log probability.*got 0.1 and inf"),
        (lambda: DIST.beam_search(beam_threshold=math.nan), "beam_threshold a difference of scores.*got -inf and nan"),
        (lambda: DIST.beam_search(word_scorer=Bigram(0, ["a"])), "got no lexicon"),
        (lambda: DIST.prefix_search(threshold=1.5), "threshold must be a probability"),
        (lambda: DIST.expected(torch.zeros(3, 3)), r"costs must be \(1, 3, 3\)"),
        (lambda: DIST.log_prob([[0]]), "not be the blank"),
        (lambda: DIST.constrain([[1]]), "must be a tensor; got list"),
        (lambda: CTC(torch.full((1, 2, 2), math.nan)), "got nan at row 0, frame 0, symbol 0"),
        (lambda: CTC(torch.zeros(1, 2, 2), lengths=torch.tensor([3])), r"lengths must lie in 0..2; got 3 at row 0"),
        (lambda: Lexicon({}), "at least one word"),
        (lambda: Lexicon({"a": []}), r"a word needs labels.*got \[\] for 'a'"),
        (lambda: Lexicon({"a": [1], "b": [1]}), "words must differ in their labels; got 'a' and 'b'"),
    ],
)
def test_questions_without_an_answer_are_explained(ask: Any, message: str) -> None:
    with pytest.raises(ScoreError, match=message):
        ask()


@pytest.mark.parametrize("query", ["prefix_search", "best_path", "sample", "beam_search"])
def test_a_row_without_strings_is_named(query: str) -> None:
    scores = torch.zeros(2, 3, 3)
    scores[1, 2] = -INF
    with pytest.raises(ConstraintError, match=r"row 1 has no label string .* above -inf; allow"):
        getattr(CTC(scores), query)()


def test_no_batch_and_two_batch_axes() -> None:
    scores = frames(17)
    single = CTC(scores[0])
    assert single.argmax == CTC(scores).argmax[0]
    close(single.log_prob([1, 2]), [CTC(scores).log_prob([[1, 2], [1], [1]])[0].item()])
    wide = CTC(scores).expand((2, 3))
    assert wide.best_path() == [CTC(scores).best_path()] * 2
    targets = torch.tensor([1]).expand(2, 3, 1)
    close(wide.log_prob(targets), CTC(scores).log_prob([[1], [1], [1]]).expand(2, 3))


def test_every_string_of_a_batch_of_strings_sums_to_one() -> None:
    scores = frames(18, t=4)
    everything = {collapsed(path, 0) for path in itertools.product(range(3), repeat=4)}
    dist = CTC(scores)
    total = sum(dist.log_prob([list(string)] * 3).exp() for string in everything)
    close(total, torch.ones(3))


@pytest.mark.parametrize("targets", [3, None, [1, 2], [[1.5], [2]], [["a"], [2]], [[[1]], [[2]]]])
def test_lists_that_are_no_label_strings_are_named(targets: Any) -> None:
    with pytest.raises(ScoreError, match=r"one list of whole numbers for each of the rows \(2,\); got"):
        CTC(torch.zeros(2, 4, 3)).log_prob(targets)


def test_what_is_no_tensor_is_named() -> None:
    with pytest.raises(ScoreError, match="log_probs must be a tensor; got list"):
        CTC([[0.0, 1.0]])  # type: ignore[arg-type]
    with pytest.raises(ScoreError, match=r"lengths must be whole numbers of shape \(2,\); got \[\[3\], 1\]"):
        CTC(torch.zeros(2, 4, 3), lengths=[[3], 1])  # type: ignore[list-item]


def test_an_empty_batch_has_k_best_and_spans() -> None:
    empty = CTC(torch.zeros(0, 4, 3), lengths=[])
    values, scores = empty.top_k(2)
    assert values == [[], []] and scores.shape == (2, 0)
    alignments = empty.given([])
    assert alignments.log_prob(alignments.sample((2,))).shape == (2, 0)
    assert alignments.spans(alignments.argmax) == []


def test_spans_of_several_samples_are_refused() -> None:
    alignments = CTC(torch.zeros(2, 4, 3)).given([[1], [2]])
    with pytest.raises(ScoreError, match="spans takes one path for each row; got 3 samples"):
        alignments.spans(alignments.sample((3,)))


@pytest.mark.parametrize("label", [0, 7, -1])
def test_a_lexicon_must_spell_with_the_labels_of_the_frames(label: int) -> None:
    with pytest.raises(ScoreError, match=rf"labels in 0\.\.2, not with the blank, 0; got {label}"):
        CTC(torch.zeros(1, 4, 3)).beam_search(8, lexicon=Lexicon({"ab": [1, 2], "x": [label]}))
