"""Operations on machines against enumeration of all their paths, and machines with cycles against series."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from tests.contract.base import chi_square_fits
from tests.contract.machines import Strings, enumerated, leaves, random_machine, summed
from tests.oracles import automata as oracle
from trelliswork.distributions import kl_divergence
from trelliswork.errors import ScoreError
from trelliswork.fst import Acceptor, Symbols, Transducer, lehmann, real_closure
from trelliswork.semirings import Boolean, Counting, Expectation, KBest, Log, Max, Real, Semiring, Tropical
from trelliswork.structures.automata import passes, search, structure
from trelliswork.structures.automata.compose import compose
from trelliswork.structures.automata.determinise import determinise, minimise, push
from trelliswork.structures.automata.epsilon import remove_epsilon
from trelliswork.structures.automata.rational import concatenate, project, star, union
from trelliswork.structures.automata.structure import Machine

INF = float("inf")
SEEDS = range(12)


def same(found: dict[Strings, float], wanted: dict[Strings, float]) -> None:
    assert found.keys() == wanted.keys()
    assert all(math.isclose(found[key], wanted[key], abs_tol=1e-9) for key in wanted)


# --- operations ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("connect", [True, False])
def test_composition_joins_every_pair_of_paths_once(seed: int, connect: bool) -> None:
    first, second = random_machine(seed), random_machine(seed + 100)
    wanted: dict[Strings, list[float]] = {}
    for (x, y), scores in enumerated(first).items():
        for (also_y, z), others in enumerated(second).items():
            if y == also_y:
                wanted.setdefault((x, z), []).extend(s + t for s in scores for t in others)
    found = enumerated(compose(first, second, connect=connect))
    assert found.keys() == wanted.keys()
    for pair, scores in wanted.items():
        np.testing.assert_allclose(sorted(found[pair]), sorted(scores))


def test_composition_has_something_to_filter() -> None:
    """Epsilon on both sides of the joint: a naive product would count these paths three times."""
    first = Transducer([(0, 1, "a", None)], final=1, output_symbols=["x"])
    second = Transducer([(0, 1, None, "b")], final=1, input_symbols=["x"])
    assert first.compose(second).count == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_union_concatenation_reversal_and_projection(seed: int) -> None:
    a, b = random_machine(seed), random_machine(seed + 50)
    left, right = summed(a), summed(b)
    both = {key: float(np.logaddexp(left.get(key, -INF), right.get(key, -INF))) for key in {*left, *right}}
    same(summed(union(a, b)), both)
    joined: dict[Strings, float] = {}
    for (x, y), s in left.items():
        for (u, v), t in right.items():
            joined[x + u, y + v] = float(np.logaddexp(joined.get((x + u, y + v), -INF), s + t))
    same(summed(concatenate(a, b)), joined)
    same(summed(structure.reverse(a)), {(x[::-1], y[::-1]): s for (x, y), s in left.items()})
    outputs: dict[Strings, float] = {}
    for (_, y), s in left.items():
        outputs[y, y] = float(np.logaddexp(outputs.get((y, y), -INF), s))
    same(summed(project(a, "output")), outputs)


def test_star_is_any_number_of_rounds() -> None:
    """Z(a*) = 1 / (1 - Z(a)), and strings of the star are sequences of strings."""
    machine = Acceptor([(0, 1, "a"), (0, 1, "b")], torch.tensor([0.3, 0.2], dtype=torch.float64).log(), final=1)
    again = machine.star()
    assert again.log_partition.item() == pytest.approx(-math.log(1 - 0.5))
    assert again.score("aba").item() == pytest.approx(math.log(0.3 * 0.2 * 0.3))
    assert again.score("").item() == pytest.approx(0.0)
    assert again.count.item() == INF


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("semiring", [Log(), Max()], ids=["log", "max"])
def test_epsilon_removal_determinisation_and_minimisation_keep_strings(seed: int, semiring: Log | Max) -> None:
    machine = random_machine(seed, n=6, arcs=14, acceptor=True)
    join = np.logaddexp.reduce if isinstance(semiring, Log) else max
    wanted = {pair: float(join(scores)) for pair, scores in enumerated(machine).items()}

    def strings(found: Machine) -> dict[Strings, float]:
        return {pair: float(join(scores)) for pair, scores in enumerated(found).items()}

    quiet = remove_epsilon(machine, semiring)
    assert (quiet.input > 0).all()
    same(strings(quiet), wanted)
    single = determinise(quiet, semiring)
    assert all(len(scores) == 1 for scores in enumerated(single).values())
    same(strings(single), wanted)
    least = minimise(single, semiring)
    assert least.n_states <= single.n_states
    same(strings(least), wanted)


@pytest.mark.parametrize("seed", range(6))
def test_transducers_are_determinised_by_pairs(seed: int) -> None:
    dist = Transducer.from_machine(random_machine(seed, n=6, arcs=14))
    single = dist.determinise()
    same(summed(single.machine), summed(dist.machine))
    least = single.minimise()
    same(summed(least.machine), summed(dist.machine))
    assert least.n_states <= single.n_states
    moves = list(zip(single.machine.source, single.machine.input, single.machine.output, strict=True))
    assert len(set(moves)) == len(moves)


def test_minimisation_joins_equal_endings() -> None:
    words = ["walked", "talked", "walks", "talks"]
    tree = Acceptor.from_strings(words)
    least = tree.minimise()
    assert (tree.n_states, least.n_states) == (15, 7)  # after w or t, a, l, k and e; start and end
    assert sorted("".join(x) for x in least.top_k_strings(9)[0]) == sorted(words)


def test_minimal_machines_of_random_languages_are_minimal() -> None:
    """As many states as there are different sets of endings (with their weights, here all alike)."""
    random = np.random.default_rng(0)
    for _ in range(10):
        words = {tuple(random.integers(1, 3, random.integers(1, 5)).tolist()) for _ in range(6)}
        least = Acceptor.from_strings(sorted(words)).minimise(Max())
        prefixes = {word[:i] for word in words for i in range(len(word) + 1)}
        endings = {frozenset(w[len(p) :] for w in words if w[: len(p)] == p) for p in prefixes}
        assert least.n_states == len(endings)


@pytest.mark.parametrize("seed", SEEDS)
def test_pushed_weights_are_probabilities(seed: int) -> None:
    machine = random_machine(seed)
    pushed = push(machine)
    same(summed(pushed), summed(machine))
    leaving = torch.zeros(pushed.n_states, dtype=torch.float64)
    leaving.index_add_(0, torch.from_numpy(pushed.source), pushed.weights.exp())
    torch.testing.assert_close(leaving + pushed.final.exp(), torch.ones_like(leaving))


def test_determinisation_beyond_its_limit_is_an_error() -> None:
    """Two loops of different weight on the same symbol owe ever more: there is no finite deterministic machine."""
    twins = Acceptor([(0, 1, "a"), (0, 2, "a"), (1, 1, "b"), (2, 2, "b"), (1, 3, "c"), (2, 3, "d")],
                     [0.0, 0.0, -1.0, -2.0, 0.0, 0.0], final=3)  # fmt: skip
    with pytest.raises(ScoreError, match="more than 50 states"):
        twins.determinise(limit=50)


# --- sums over paths ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_totals_over_every_semiring(seed: int) -> None:
    machine = random_machine(seed)
    scores = sorted((score for _, score in oracle.paths(machine)), reverse=True)
    log_z = float(np.logaddexp.reduce(scores))
    assert structure.total(machine, Real()).item() == pytest.approx(math.exp(log_z))
    assert structure.total(machine, Max()).item() == pytest.approx(scores[0])
    assert structure.total(machine, Tropical()).item() == pytest.approx(-scores[0])
    assert structure.total(machine, Counting()).item() == len(scores)
    assert structure.total(machine, Boolean()).item() is True
    best = structure.total(machine, KBest(3)).tolist()
    assert best[: len(scores)] == pytest.approx(scores[:3])
    assert structure.total(machine, Expectation())[0].item() == pytest.approx(log_z)


@pytest.mark.parametrize("seed", SEEDS)
def test_cycles_converge_to_the_closure(seed: int) -> None:
    """log Z = log α^T (I - W)^-1 β, and paths up to some length approach it from below."""
    machine = random_machine(seed, cyclic=True)
    n = machine.n_states
    matrix = torch.zeros(n, n, dtype=torch.float64)
    matrix.index_put_((torch.from_numpy(machine.source), torch.from_numpy(machine.target)), machine.weights.exp(), True)
    z = machine.initial.exp() @ real_closure(matrix) @ machine.final.exp()
    assert structure.log_partition(machine).item() == pytest.approx(z.log().item(), abs=1e-10)
    torch.testing.assert_close(lehmann(matrix, Real()), real_closure(matrix))
    partly = np.logaddexp.reduce([score for _, score in oracle.paths(machine, 8)])
    assert partly <= z.log().item() + 1e-12
    assert partly == pytest.approx(z.log().item(), abs=1e-3)


@pytest.mark.parametrize("semiring", [Log(), Max()], ids=["log", "max"])
def test_the_closure_by_kernel_is_that_of_the_reference(semiring: Log | Max) -> None:
    generator = torch.Generator().manual_seed(3)
    for m in (1, 2, 7):
        matrix = torch.randn(m, m, generator=generator, dtype=torch.float64) - 4
        matrix[torch.rand(m, m, generator=generator) < 0.3] = -INF
        reference = lehmann(matrix.requires_grad_(), semiring)  # a derivative is wanted: no kernel
        torch.testing.assert_close(lehmann(matrix.detach(), semiring), reference.detach())
    with pytest.raises(ScoreError, match="does not converge"):
        lehmann(torch.ones(1, 1, dtype=torch.float64), semiring)


def test_long_and_wide_machines() -> None:
    """10,000 positions, scores a thousand apart, and an arc that only a distant one makes worth while."""
    generator = torch.Generator().manual_seed(0)
    emissions = torch.randn(10_000, 3, generator=generator, dtype=torch.float64) * 300
    emissions[5] = torch.tensor([0.0, -1e3, -1e3])
    found = Acceptor.from_emissions(emissions)
    assert found.log_partition.item() == pytest.approx(emissions.logsumexp(1).sum().item(), rel=1e-12)
    torch.testing.assert_close(found.marginals.reshape(-1, 3), emissions.softmax(1), atol=1e-10, rtol=0)
    late = Acceptor([(0, 1, "a"), (0, 2, "b"), (1, 3, "c"), (2, 3, "d")], [0.0, -900.0, 0.0, 1800.0], final=3)
    assert late.marginals.tolist() == [0.0, 1.0, 0.0, 1.0]
    assert late.argmax.input == ("b", "d")


@pytest.mark.parametrize("seed", SEEDS)
def test_kernel_and_reference_agree_with_cycles(seed: int) -> None:
    machine = random_machine(seed, cyclic=True)
    fast_one, fast_leaves = leaves(machine)
    slow_one, slow_leaves = leaves(machine)
    found, wanted = passes.log_partition(fast_one), structure.log_partition(slow_one)
    torch.testing.assert_close(found, wanted)
    found.backward()
    wanted.backward()
    for mine, other in zip(fast_leaves, slow_leaves, strict=True):
        torch.testing.assert_close(mine.grad, other.grad)
    for mine, other in zip(passes.marginals(machine), structure.marginals(machine), strict=True):
        torch.testing.assert_close(mine, other)


@pytest.mark.parametrize("seed", range(4))
def test_cycles_best_paths_strings_and_samples(seed: int) -> None:
    machine = random_machine(seed, cyclic=True, acceptor=True)
    scores = sorted((score for _, score in oracle.paths(machine, 9)), reverse=True)
    found = search.best_paths(machine, 5)
    assert [score for *_, score in found] == pytest.approx(scores[:5])
    assert len({(first, tuple(arcs)) for first, arcs, _ in found}) == 5
    dist = Acceptor.from_machine(machine)
    log_z = dist.log_partition.item()
    drawn = dist.sample((2000,), torch.Generator().manual_seed(1))
    frequent = {path: math.exp(s - log_z) for path, s in oracle.paths(machine, 6) if math.exp(s - log_z) > 0.003}
    counts = Counter((path.first, path.arcs) for path in drawn)
    rest = 1 - sum(frequent.values())
    grouped = Counter({path: counts[path] for path in frequent})
    grouped["else"] = 2000 - sum(grouped.values())
    assert chi_square_fits(grouped, {**frequent, "else": rest})


def test_a_cycle_that_does_not_lose_weight_is_an_error() -> None:
    loop = Acceptor([(0, 0, "a")], [0.0], final=0)
    with pytest.raises(ScoreError, match="spectral radius >= 1"):
        _ = loop.log_partition
    assert loop.argmax.arcs == ()
    gaining = Acceptor([(0, 0, "a")], [0.1], final=0)
    with pytest.raises(ScoreError, match="no best path"):
        _ = gaining.argmax
    assert Acceptor([(0, 0, "a"), (1, 2, "a")], [5.0, -1.0], initial=1, final=2).log_partition.item() == -1.0
    with pytest.raises(ScoreError, match=r"spectral radius below 1; got 1\.5"):
        real_closure(torch.tensor([[0.0, 1.5], [1.5, 0.0]]))


@pytest.mark.parametrize("cyclic", [False, True])
def test_first_and_second_derivatives(cyclic: bool) -> None:
    machine = random_machine(3, n=4, arcs=8, cyclic=cyclic)
    finite = [each > -INF for each in machine.scores]

    def rebuilt(*free: Tensor) -> Machine:
        parts = zip(machine.scores, finite, free, strict=True)
        return machine.with_scores(*(torch.full_like(s, -INF).masked_scatter(m, f) for s, m, f in parts))

    def log_z(*free: Tensor) -> Tensor:
        return passes.log_partition(rebuilt(*free))

    def squared(*free: Tensor) -> Tensor:
        again = rebuilt(*free)
        joint = compose(union(again, again), star(again)) if not cyclic else again
        return structure.trim(joint).weights.sum() + passes.marginals(again)[0].pow(2).sum()

    free = [s[m].clone().requires_grad_() for s, m in zip(machine.scores, finite, strict=True)]
    assert gradcheck(log_z, free)
    assert gradgradcheck(log_z, free)
    assert gradcheck(squared, free)


def test_weights_stay_differentiable_through_operations() -> None:
    """d log Z of a composition = expected uses of each arc, by finite differences."""
    first, second = random_machine(2, n=4, arcs=7), random_machine(9, n=4, arcs=7)
    finite = first.weights > -INF

    def log_z(free: Tensor) -> Tensor:
        again = first.with_scores(torch.full_like(first.weights, -INF).masked_scatter(finite, free), *first.scores[1:])
        closed = push(remove_epsilon(project(compose(again, second), "input")))
        return passes.log_partition(concatenate(closed, union(closed, closed)))

    free = first.weights[finite].clone().requires_grad_()
    assert gradcheck(log_z, (free,))
    assert gradgradcheck(log_z, (free,))


def test_torch_func_and_forward_derivatives() -> None:
    arcs, weights = [(0, 1, "a"), (0, 1, "b"), (1, 1, "a")], torch.tensor([0.1, 0.2, -1.0], dtype=torch.float64)

    def log_z(weights: Tensor) -> Tensor:
        return Acceptor(arcs, weights, final=1).log_partition

    marginals = Acceptor(arcs, weights, final=1).marginals
    torch.testing.assert_close(torch.func.grad(log_z)(weights), marginals)
    _, slope = torch.func.jvp(log_z, (weights,), (torch.ones(3, dtype=torch.float64),))
    torch.testing.assert_close(slope, marginals.sum())
    with pytest.raises(ScoreError, match=r"torch\.vmap over its weights"):
        torch.vmap(log_z)(weights[None])


# --- strings ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("how", ["summed", "best"])
def test_the_k_best_strings_have_no_duplicates(seed: int, how: str) -> None:
    machine = random_machine(seed, n=6, arcs=14, acceptor=True)
    join = np.logaddexp.reduce if how == "summed" else max
    wanted = {pair[0]: float(join(scores)) for pair, scores in enumerated(machine).items()}
    dist = Acceptor.from_machine(machine)
    strings, scores = dist.top_k_strings(4, summed=how == "summed")
    assert len(set(strings)) == len(strings) == min(4, len(wanted))
    assert scores.tolist() == pytest.approx(sorted(wanted.values(), reverse=True)[:4])
    assert [wanted[string] for string in strings] == pytest.approx(scores.tolist())


def test_strings_of_a_machine_with_cycles() -> None:
    """Geometric: a^n has probability 0.4 0.6^n in all."""
    weights = torch.tensor([0.2, 0.4, 0.4], dtype=torch.float64).log()
    machine = Acceptor([(0, 0, "a"), (0, 0, "a"), (0, 1, None)], weights, final=1)
    strings, scores = machine.top_k_strings(3)
    assert strings == [(), ("a",), ("a", "a")]
    assert scores.exp().tolist() == pytest.approx([0.4, 0.24, 0.144])


@pytest.mark.parametrize("seed", SEEDS)
def test_conditional_probabilities_sum_over_paths(seed: int) -> None:
    """p(y | x) = Z(x, y) / Z(x) for every pair; over all y they sum to 1."""
    machine = random_machine(seed)
    pairs, dist = summed(machine), Transducer.from_machine(machine)
    log_z = float(np.logaddexp.reduce(list(pairs.values())))
    for (x, y), score in list(pairs.items())[:6]:
        reading = float(np.logaddexp.reduce([s for (u, _), s in pairs.items() if u == x]))
        assert dist.log_prob(y, given=x).item() == pytest.approx(score - reading)
        assert dist.log_prob((x, y)).item() == pytest.approx(score - log_z)
        assert dist.score((x, y)).item() == pytest.approx(score)
        total = sum(dist.log_prob(v, given=x).exp().item() for u, v in pairs if u == x)
        assert total == pytest.approx(1.0)
    assert dist.log_prob((2, 2, 2, 2, 2, 2, 2), given=x).item() == -INF


def test_the_best_outputs_of_an_input() -> None:
    machine = Transducer([(0, 0, "a", "x"), (0, 0, "a", "y"), (0, 0, "a", "x")], [0.0, 0.5, 0.1], final=0)
    (best, *_), scores = machine.top_k_strings(2, given="a")
    assert best == ("x",)  # its two paths together beat the better path of y
    assert scores[0].item() == pytest.approx(math.log(1 + math.exp(0.1)))
    assert machine.top_k_strings(1, given="a", summed=False)[0] == [("y",)]


def test_arc_probability_counts_a_path_once() -> None:
    """Uses of a loop are expected r / (1 - r) times, but the probability of any is r."""
    loop = Acceptor([(0, 0, "a")], torch.tensor([0.6], dtype=torch.float64).log(), final=0)
    assert loop.marginals.item() == pytest.approx(1.5)
    assert loop.arc_probability(0).item() == pytest.approx(0.6)


def test_a_language_counts_whatever_its_weights_and_ambiguity() -> None:
    words = Acceptor.from_strings(["ab", "ba", "bb"], torch.tensor([0.5, 0.25, 0.25]).log())
    starts_with_b = Acceptor([(0, 1, "b"), (0, 1, "b"), (1, 1, "a"), (1, 1, "b")], [3.0, 1.0, 1.0, 1.0], final=1)
    assert words.log_prob_of_set(starts_with_b).exp().item() == pytest.approx(0.5)
    assert words.constrain(starts_with_b).count == 2


# --- building and bad input ---------------------------------------------------------------------------------------


def test_emissions_and_transitions_make_a_chain() -> None:
    """A lattice of emissions intersected with a machine of transitions is the linear chain."""
    from trelliswork import LinearChain

    generator = torch.Generator().manual_seed(0)
    emissions, transitions = (torch.randn(n, 3, generator=generator, dtype=torch.float64) for n in (4, 3))
    arcs = [(i, j, "xyz"[j - 1]) for i in range(4) for j in range(1, 4)]
    weights = torch.cat([torch.zeros(3, dtype=torch.float64), transitions.reshape(-1)])
    lattice = Acceptor.from_emissions(emissions, symbols="xyz")
    chain = lattice & Acceptor(arcs, weights, final=[1, 2, 3], symbols="xyz")
    expected = LinearChain(emissions[None], transitions, backend="torch")
    assert chain.log_partition.item() == pytest.approx(expected.log_partition.item())
    assert ["xyz".index(y) for y in chain.argmax.input] == expected.argmax[0].tolist()
    assert chain.entropy().item() == pytest.approx(expected.entropy().item())


def test_tables_of_symbols_are_joined() -> None:
    either = Acceptor.from_string("ab") | Acceptor.from_string("cb")
    assert either.symbols is not None and list(either.symbols) == ["<eps>", "a", "b", "c"]
    assert (either & Acceptor.from_string("cb")).argmax.input == ("c", "b")
    assert either.score("cb").item() == 0.0
    upper = Transducer([(0, 0, "c", "C"), (0, 0, "b", "B"), (0, 0, "a", "A")], final=0)
    assert (Acceptor.from_string("cab") @ upper).project("output").argmax.input == ("C", "A", "B")
    assert upper.invert().log_prob("b", given="B").item() == 0.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Acceptor([(0, 1, "a")], [float("nan")], final=1), "weights must be finite numbers or -inf"),
        (lambda: Acceptor([(0, 1, "a")], [float("inf")], final=1), r"got inf at \[0\]"),
        (lambda: Acceptor([(0, 1, "a")], [0.0, 1.0], final=1), r"weights must be one number each, \[1\]"),
        (lambda: Acceptor([(0, -1, "a")], final=1), "states must be whole numbers from 0"),
        (lambda: Acceptor([("p", 1, "a")], final=1), "states must be whole numbers from 0"),  # type: ignore[list-item]
        (lambda: Acceptor([(0, 1)], final=1), r"an arc must be \(source, target, label\)"),  # type: ignore[list-item]
        (lambda: Acceptor([(0, 1, "a")], ["x"], final=1), "one number for each arc"),  # type: ignore[list-item]
        (lambda: Acceptor([(0, 1, "a")], final=1).score(5), "expected a string"),
        (lambda: Acceptor([(0, 1, "a")], final=1).constrain(5), "expected a string"),
        (lambda: Acceptor([(0, 1, "a")], final=1).arc_probability(7), r"numbered 0\.\.0"),
        (lambda: Acceptor([(0, 1, "a")], final=1).expected(torch.ones(3)), "costs must be shaped"),
        (lambda: Acceptor([(0, 1, "a")], final=1).top_k_strings(0), "k must be at least 1"),
        (lambda: Acceptor([(0, 5, "a")], final=1, n_states=2), r"states must lie in 0\.\.1"),
        (lambda: Acceptor([(0, 1, -1)], final=1), "labels must be 0"),
        (lambda: Acceptor([(0, 1, "a")], final=1, symbols="b"), "not in the symbol table"),
        (lambda: Acceptor([(0, 1, "a")], final=1).score("b"), "not in the symbol table"),
        (lambda: Acceptor([(0, 1, 1)], final=1) | Acceptor([(0, 1, "a")], final=1), "plain numbers"),
        (lambda: Acceptor([(0, 1, "a")], final=1).top_k(0), "k must be at least 1"),
        (lambda: Acceptor([(0, 1, "a")], final=1).path(1, [0]), "follow one another"),
        (lambda: Acceptor([(0, 1, "a")], final=1).constrain(torch.ones(3, dtype=torch.bool)), "allowed arcs"),
        (lambda: Acceptor([(0, 1, "a"), (0, 1, "a")], final=1).minimise(), "deterministic"),
        (lambda: Transducer([(0, 1, 1, 2)], final=1).score("a"), "pair"),
        (lambda: Transducer([(0, 1, 1, 2)], final=1).project("both"), "side must be"),
        (lambda: Transducer([(0, 1, 1, 2)], final=1) | Acceptor([(0, 1, 1)], final=1), "another Transducer"),
    ],
)  # fmt: skip
def test_bad_input_is_explained(make: object, message: str) -> None:
    with pytest.raises(ScoreError, match=message):
        make()  # type: ignore[operator]


def test_a_closure_of_too_many_states_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trelliswork.structures.automata.levels.MOST_ON_CYCLES", 2)
    ring = Acceptor([(0, 1, "a"), (1, 2, "b"), (2, 0, "c")], [-1.0] * 3, final=0)
    with pytest.raises(ScoreError, match="3 states lie on cycles"):
        _ = ring.log_partition
    assert ring.argmax.arcs == ()


def test_kl_needs_the_same_arcs() -> None:
    one, two = Acceptor([(0, 1, 1)], final=1), Acceptor([(0, 1, 2)], final=1)
    with pytest.raises(ScoreError, match="same states and arcs"):
        torch.distributions.kl_divergence(one, two)


def test_arcs_and_ends_may_come_from_anywhere() -> None:
    machine = Acceptor(((0, 1, x) for x in "ab"), final=(q for q in [np.int64(1)]))
    assert machine.n_arcs == 2 and machine.final_states == [1]
    assert Acceptor([(0, 1, "a")], final=np.int64(1)).final_states == [1]  # type: ignore[arg-type]


@pytest.mark.parametrize("final", [None, 1.0, "x", {"a": 0.0}])
def test_ends_that_are_no_states_are_named(final: object) -> None:
    with pytest.raises(ScoreError, match="final must be a state, several, a dictionary"):
        Acceptor([(0, 1, "a")], final=final)  # type: ignore[arg-type]


def test_what_is_no_label_string_or_machine_is_named() -> None:
    machine = Acceptor([(0, 1, "a")], final=1)
    with pytest.raises(ScoreError, match=r"a label must be a symbol, a whole number or None for epsilon; got 1.5"):
        Acceptor([(0, 1, 1.5)], final=1)  # type: ignore[list-item]
    with pytest.raises(ScoreError, match="arcs must be a list of"):
        Acceptor(None, final=1)  # type: ignore[arg-type]
    with pytest.raises(ScoreError, match=r"compose\(\) takes an acceptor or a transducer; got str"):
        machine.compose("a")  # type: ignore[arg-type]
    with pytest.raises(ScoreError, match="expected a string or a list of symbols; got int"):
        Acceptor.from_string(5)  # type: ignore[arg-type]
    with pytest.raises(ScoreError, match="symbols must be strings; got 1"):
        Symbols([1, 2])  # type: ignore[list-item]
    assert float(Acceptor.from_strings(["a", "b"], [0.0, 0.0]).log_partition) == pytest.approx(math.log(2))


def test_divergence_from_a_machine_without_paths_is_infinite() -> None:
    arcs = [(0, 1, "a"), (1, 1, "b")]
    some, none = (Acceptor(arcs, [weight, -1.0], final=1) for weight in (0.0, -INF))
    assert float(kl_divergence(some, none)) == INF


@pytest.mark.parametrize("semiring", [Counting(), Real(), Tropical(), Boolean()])
def test_only_log_scores_are_joined(semiring: Semiring) -> None:
    machine = Acceptor([(0, 1, "a"), (0, 1, "a")], final=1)
    for query in (machine.determinise, machine.minimise, machine.push, machine.remove_epsilon):
        with pytest.raises(ScoreError, match=r"takes the semiring Log\(\) or Max\(\)"):
            query(semiring)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_minimisation_keeps_the_dtype(dtype: torch.dtype) -> None:
    machine = Acceptor([(0, 1, "a"), (0, 2, "b")], torch.zeros(2, dtype=dtype), final=[1, 2]).minimise()
    assert {each.dtype for each in machine.machine.scores} == {dtype} and machine.n_states == 2


@pytest.mark.parametrize("backend", ["torch", "kernel"])
def test_arcs_on_no_path_have_a_gradient_of_zero(backend: str) -> None:
    weights = torch.tensor([0.5, -1.0], dtype=torch.float64, requires_grad=True)
    machine = Acceptor([(0, 1, "a"), (2, 0, "b")], weights, final={0: 0.25}, backend=backend)
    machine.log_partition.sum().backward()
    assert machine.log_partition.item() == 0.25
    assert weights.grad is not None and weights.grad.tolist() == [0.0, 0.0]
