"""Every query of `WeightedCFG` against enumeration: the generic contract, then what only grammars have."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.contract import derivations
from tests.contract.base import BACKENDS, INF, Instance, PartialKnowledge, Plain, StructureContract, close
from trelliswork.distributions import ProbabilisticCFG, WeightedCFG, kl_divergence
from trelliswork.distributions.grammar_inputs import to_tree
from trelliswork.errors import ScoreError
from trelliswork.structures.grammar import dense
from trelliswork.structures.grammar.grammar import Grammar
from trelliswork.structures.grammar.tree import Tree


class TestWeightedCFG(StructureContract):
    gradient_of = "nodes"

    def instances(self) -> dict[str, Instance]:
        return derivations.many()

    def small_instances(self) -> dict[str, Instance]:
        return derivations.small()

    def impossible(self) -> tuple[Instance, int]:
        """No symbol may stand above the second row."""
        return derivations.scored(21, lengths=torch.tensor([3, 2]), forbidden={"nodes": [(1, 0, 1)]}), 1

    def build(self, instance: Instance, backend: str) -> WeightedCFG:
        options = {name: option for name, option in instance.options.items() if name == "lengths"}
        return WeightedCFG(derivations.grammar_of(instance), **instance.scores, **options, backend=backend)  # type: ignore[arg-type]

    def support(self, instance: Instance, row: int) -> dict[Plain, float]:
        return derivations.support(instance, row)

    def n_rows(self, instance: Instance) -> int:
        return len(instance.scores["lexical"])

    def to_plain(self, instance: Instance, value: Any) -> list[Plain]:
        index = derivations.grammar_of(instance).symbol_index
        return [tuple((i, j, index[label]) for i, j, label in tree.spans()) for tree in value]

    def to_value(self, instance: Instance, plain: list[Any]) -> list[Tree]:
        symbols = derivations.grammar_of(instance).symbols
        return [to_tree(list(nodes), symbols, [str(i) for i in range(nodes[0][1])]) for nodes in plain]

    def indicator(self, instance: Instance, row: int, plain: Any) -> Tensor:
        marks = torch.zeros(instance.scores["nodes"].shape[1:], dtype=torch.float64)
        for start, end, symbol in plain:
            marks[start, end - 1, symbol] = 1.0
        return marks

    def partials(self, instance: Instance) -> list[PartialKnowledge]:
        return [self.brackets(instance), self.sets(instance), self.nothing_known(instance)]

    def brackets(self, instance: Instance) -> PartialKnowledge:
        """The second node of each row's best derivation is known; in row 0 without its symbol."""
        bests = [max(found, key=lambda v: found[v]) if found else ((0, 1, 2),) for found in self.supports(instance)]
        second = [nodes[min(1, len(nodes) - 1)] for nodes in bests]  # type: ignore[arg-type,index]
        known = [[(i, j, y if row else None)] for row, (i, j, y) in enumerate(second)]

        def agrees(row: int, value: Any) -> bool:
            ((i, j, y),) = known[row]
            return any(node[:2] == (i, j) and y in (None, node[2]) for node in value)

        return PartialKnowledge(known, agrees)

    def sets(self, instance: Instance) -> PartialKnowledge:
        """The first token comes from the last symbol; what is not read is not allowed."""
        allowed = derivations.read(instance, "nodes")
        last = allowed.shape[-1] - 1
        allowed[:, 0, 0, :last] = False
        return PartialKnowledge(allowed, lambda row, value: any(node == (0, 1, last) for node in value))

    def nothing_known(self, instance: Instance) -> PartialKnowledge:
        return PartialKnowledge([()] * self.n_rows(instance), lambda row, value: True)

    def shifted(self, instance: Instance, by: float) -> tuple[Instance, list[float]]:
        moved = instance.with_scores(lexical=instance.scores["lexical"] + by)
        return moved, [by * length for length in derivations.lengths(instance)]

    def one_row(self, instance: Instance, row: int) -> Instance:
        n = derivations.lengths(instance)[row]
        scores = {"lexical": instance.scores["lexical"][row : row + 1, :n]}
        scores["nodes"] = instance.scores["nodes"][row : row + 1, :n, :n]
        rules, root = instance.scores["rules"], instance.scores["root"]
        scores["rules"] = rules if rules.dim() == 1 else rules[row : row + 1]
        if rules.dim() == 4:
            scores["rules"] = scores["rules"][:, :n, :n]
        scores["root"] = root if root.dim() == 1 else root[row : row + 1]
        return Instance(scores, {"grammar": instance.options["grammar"]})

    def with_garbage(self, instance: Instance, garbage: float) -> Instance:
        names = ["lexical", "nodes", *(["rules"] if instance.scores["rules"].dim() == 4 else [])]
        changed = {
            name: torch.where(derivations.read(instance, name), instance.scores[name], garbage) for name in names
        }
        return instance.with_scores(**changed)

    def forbidding(self, instance: Instance, row: int, plain: Any) -> Instance:
        start, end, symbol = plain[-1]
        nodes = instance.scores["nodes"].clone()
        nodes[row, start, end - 1, symbol] = -INF
        return instance.with_scores(nodes=nodes)

    def test_samples_come_in_the_shape_asked_for(self, instance: Instance, backend: str) -> None:
        sample = self.build(instance, backend).sample((2, 3))
        assert (len(sample), {len(each) for each in sample}) == (2, {3})
        assert all(len(self.to_plain(instance, each)) == self.n_rows(instance) for row in sample for each in row)

    def test_in_an_impossible_row_every_value_has_probability_zero(self, backend: str) -> None:
        """As in the contract; enumeration starts from scores without -inf, whose derivations are many."""
        instance, row = self.impossible()
        relaxed = instance.mapped(torch.zeros_like)
        value = self.to_value(instance, [next(iter(support)) for support in self.supports(relaxed)])
        assert self.build(instance, backend).log_prob(value)[row].item() == -INF

    # --- grammars only ---------------------------------------------------------------------------------------

    def test_expected_counts_and_costs(self, instance: Instance, backend: str) -> None:
        dist, grammar = self.build(instance, backend), derivations.grammar_of(instance)
        counts = torch.zeros(self.n_rows(instance), grammar.n_rules, dtype=torch.float64)
        for row in range(self.n_rows(instance)):
            for value, p in self.probabilities(instance, row).items():
                for _, _, rule in derivations.oracle.rules_of(value):  # type: ignore[arg-type]
                    counts[row, grammar.rule_index[rule]] += p
        close(dist.rule_counts, counts)
        costs = torch.rand(grammar.n_rules, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
        close(dist.expected(rules=costs.to(instance.dtype)), counts @ costs)
        nodes = torch.rand(instance.scores["nodes"].shape, generator=torch.Generator().manual_seed(4))
        close(dist.expected(nodes.to(instance.dtype)), (self.enumerated_marginals(instance) * nodes).flatten(1).sum(1))

    def test_span_probability_and_recognition(self, instance: Instance, backend: str) -> None:
        dist = self.build(instance, backend)
        symbol = derivations.grammar_of(instance).symbols[-1]
        close(dist.span_probability(0, 1, symbol), self.enumerated_marginals(instance)[:, 0, 0, -1])
        close(dist.span_probability(0, 1), torch.ones(self.n_rows(instance)))
        assert dist.recognised.all()

    def test_trees_and_parts_say_the_same(self, instance: Instance, backend: str) -> None:
        dist = self.build(instance, backend)
        for plain, value in self.values(instance)[:3]:
            parts = dist.to_parts(value)
            assert dist.from_parts(parts) == value
            assert torch.equal(
                parts.double(), torch.stack([self.indicator(instance, r, v) for r, v in enumerate(plain)])
            )


@pytest.mark.parametrize("which", [0, 1])
def test_without_scores_of_nodes(which: int) -> None:
    instance = derivations.scored(50, which, n=4, lengths=torch.tensor([4, 3]))
    zeros = instance.with_scores(nodes=torch.zeros_like(instance.scores["nodes"]))
    scores = {name: part for name, part in instance.scores.items() if name != "nodes"}
    grammar, lengths = derivations.grammar_of(instance), torch.tensor([4, 3])
    for backend in BACKENDS:
        plain = WeightedCFG(grammar, **scores, lengths=lengths, backend=backend)  # type: ignore[arg-type]
        full = WeightedCFG(grammar, **zeros.scores, lengths=lengths, backend=backend)  # type: ignore[arg-type]
        close(plain.log_partition, full.log_partition)
        close(plain.marginals, full.marginals)
        assert plain.argmax == full.argmax


@pytest.mark.parametrize("scale", [1.0, 60.0, 1000.0])
def test_products_log_space_and_reference_agree(scale: float) -> None:
    """Scaled weights are used where they keep everything; wider scores fall back to log space."""
    grammar, generator = Grammar.dense(3, 4), torch.Generator().manual_seed(int(scale))
    lexical = scale * torch.randn(3, 9, 4, generator=generator, dtype=torch.float64)
    rules = scale * torch.randn(3, grammar.n_rules, generator=generator, dtype=torch.float64)
    kernel, plain = (
        WeightedCFG(grammar, lexical=lexical, rules=rules, lengths=torch.tensor([9, 2, 7]), backend=each)
        for each in BACKENDS
    )
    assert (kernel._solver.run.scaled is not None) == (scale < 1000)
    close(kernel.log_partition, plain.log_partition)
    close(kernel.marginals, plain.marginals)
    close(kernel.rule_counts, plain.rule_counts)
    assert kernel.argmax == plain.argmax


@pytest.mark.parametrize("widened", [True, False])
@pytest.mark.parametrize("by_node", [True, False])
def test_dense_grammars_whose_phrases_stand_above_words(
    widened: bool, by_node: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Symbols A and B are phrases, B and C lexical; few phrases have a layout of their own."""
    if not widened:
        monkeypatch.setattr(dense, "MOST_TO_WIDEN", 0)
    pairs = [f"{left} {right} 1" for left in "ABC" for right in "ABC"]
    grammar = Grammar.from_rules(f"A -> {' | '.join(pairs)}\nB -> {' | '.join(pairs)} | 'b' 1\nC -> 'c' 1")
    assert grammar.first_lexical < grammar.n_phrases < len(grammar.symbols)
    generator = torch.Generator().manual_seed(5)
    shapes = {"lexical": (4, 7, 2), "rules": (4, grammar.n_rules), "root": (4, 3)}
    if by_node:
        shapes["nodes"] = (4, 7, 7, 3)
    scores = {
        name: torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
        for name, shape in shapes.items()
    }
    lengths, given = torch.tensor([7, 1, 2, 3]), list(scores.values())
    kernel, plain = (WeightedCFG(grammar, **scores, lengths=lengths, backend=each) for each in BACKENDS)  # type: ignore[arg-type]
    assert kernel._solver.run.scaled is not None
    close(kernel.log_partition, plain.log_partition)
    for mine, wanted in zip(
        *(torch.autograd.grad(each.log_partition @ torch.arange(1.0, 5.0).double(), given) for each in (kernel, plain)),
        strict=True,
    ):
        close(mine, wanted)
    close(kernel.score(kernel.argmax), plain.score(plain.argmax))
    if by_node:  # without, trees of the same rules tie up to rounding
        assert kernel.argmax == plain.argmax


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_ties_of_a_dense_grammar_go_to_the_lowest_symbols(n: int) -> None:
    grammar = Grammar.dense(2, 3)
    lexical = torch.zeros(2, n, 3)
    lexical[1, :, 0] = -INF
    root = torch.tensor([0.0, 0.0, *[0.0 if n == 1 else -INF] * 3])
    kernel, plain = (
        WeightedCFG(grammar, lexical=lexical, rules=torch.zeros(grammar.n_rules), root=root, backend=each)
        for each in BACKENDS
    )
    assert kernel.argmax == plain.argmax


def test_two_threads_give_what_one_gives() -> None:
    grammar, generator = Grammar.dense(3, 4), torch.Generator().manual_seed(0)
    lexical = torch.randn(3, 7, 4, generator=generator, dtype=torch.float64)
    cfgs = [WeightedCFG(grammar, lexical=lexical, rules=torch.ones(*lead, grammar.n_rules)) for lead in ((), (3,))]
    found = [(cfg.log_partition, cfg.rule_counts) for cfg in cfgs]
    torch.set_num_threads(2)
    try:
        for cfg, (log_z, counts) in zip(cfgs, found, strict=True):
            again = cfg.constrain()
            close(again.log_partition, log_z)
            close(again.rule_counts, counts)
    finally:
        torch.set_num_threads(1)


def test_a_weight_that_vanishes_in_exp_space_is_found_in_log_space() -> None:
    """The only way to the root leads through a symbol that is far less likely than its rival in every narrow span."""
    grammar = Grammar.dense(2, 2)
    rules = torch.zeros(grammar.n_rules, dtype=torch.float64)
    for (parent, left, right), index in grammar.rule_index.items():
        if parent == 1:
            rules[index] = -400.0
        if parent == 0 and (left == 1 or right == 1):
            rules[index] = -INF
    root = torch.tensor([-INF, 0.0, -INF, -INF], dtype=torch.float64)
    lexical = torch.zeros(1, 5, 2, dtype=torch.float64)
    kernel, plain = (WeightedCFG(grammar, lexical=lexical, rules=rules, root=root, backend=each) for each in BACKENDS)
    close(kernel.log_partition, plain.log_partition)
    close(kernel.marginals, plain.marginals)


def test_half_precision_in_and_out_and_two_backward_passes() -> None:
    grammar = Grammar.dense(2, 3)
    lexical = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(0)).bfloat16().requires_grad_()
    cfg = WeightedCFG(grammar, lexical=lexical)
    assert cfg.log_partition.dtype == cfg.marginals.dtype == cfg.log_prob(cfg.argmax).dtype == torch.bfloat16
    cfg.log_partition.sum().backward()
    cfg.entropy().sum().backward()
    assert lexical.grad is not None and lexical.grad.dtype == torch.bfloat16 and bool(lexical.grad.isfinite().all())


def test_k_best_of_a_longer_row_equals_the_reference() -> None:
    generator = torch.Generator().manual_seed(2)
    lexical = torch.randn(2, 8, 2, generator=generator, dtype=torch.float64)
    rules = torch.randn(derivations.SPARSE.n_rules, generator=generator, dtype=torch.float64)
    kernel, plain = (
        WeightedCFG(derivations.SPARSE, lexical=lexical, rules=rules, lengths=torch.tensor([8, 6]), backend=each)
        for each in BACKENDS
    )
    trees, scores = kernel.top_k(7)
    close(scores, plain.top_k(7)[1])
    close(scores, torch.stack([plain.score(each) for each in trees]))
    assert all(len({str(each[row]) for each in trees}) == 7 for row in range(2)), "ties are different trees"


# --- probabilistic grammars ------------------------------------------------------------------------------------

TINY = Grammar.from_rules("S -> S S 0.4 | 'a' 0.6")


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_inside_probability_is_that_of_the_words(backend: str) -> None:
    """p(a^n) = C_{n-1} 0.4^{n-1} 0.6^n for S -> S S | a, with Catalan's number of trees."""
    for n in range(1, 7):
        cfg = ProbabilisticCFG(TINY, [["a"] * n], backend=backend)
        catalan = math.comb(2 * n - 2, n - 1) // n
        close(cfg.log_partition.exp(), [catalan * 0.4 ** (n - 1) * 0.6**n])
        close(cfg.log_prob(cfg.argmax).exp(), [0.4 ** (n - 1) * 0.6**n])
        close(cfg.posterior.log_prob(cfg.argmax).exp(), [1 / catalan])
        close(cfg.entropy(), [math.log(catalan)])
        assert cfg.count.item() == catalan


def test_rules_must_sum_to_one() -> None:
    with pytest.raises(ScoreError, match=r"those of 'S' sum to 1.2; normalise them, or use WeightedCFG"):
        ProbabilisticCFG(Grammar.from_rules("S -> S S 0.6 | 'a' 0.6"), [["a"]])


def test_logits_become_probabilities() -> None:
    grammar = derivations.SPARSE
    generator = torch.Generator().manual_seed(0)
    rules = torch.randn(2, grammar.n_rules, generator=generator, dtype=torch.float64)
    lexicon = torch.randn(2, grammar.n_lexical, len(grammar.words), generator=generator, dtype=torch.float64)
    totals = grammar.left_hand_totals(*grammar.locally_normalised(rules, lexicon))
    close(totals, torch.zeros_like(totals))


def test_one_step_of_em_raises_the_likelihood() -> None:
    sentences = [["a", "a", "b"], ["a", "b"], ["a", "a", "a", "b"]]
    grammar = derivations.SPARSE
    rules, lexicon = grammar.locally_normalised(grammar.rule_scores, grammar.lexicon)
    before = -INF
    for _ in range(4):
        lexical = torch.stack([torch.zeros(4, grammar.n_lexical, dtype=torch.float64) for _ in sentences])
        columns = torch.zeros(3, 4, len(grammar.words), dtype=torch.float64)
        for row, sentence in enumerate(sentences):
            for i, word in enumerate(sentence):
                lexical[row, i] = lexicon[:, grammar.words.index(word)]
                columns[row, i, grammar.words.index(word)] = 1
        cfg = ProbabilisticCFG(grammar, sentences, lexical=lexical, rules=rules)
        after = float(cfg.log_partition.sum())
        assert after > before
        before = after
        words = torch.einsum("bnt,bnw->tw", cfg.lexical_marginals, columns)
        rules, lexicon = grammar.locally_normalised(cfg.rule_counts.sum(0).log(), words.log())


# --- what cannot be ------------------------------------------------------------------------------------------

CFG = WeightedCFG(derivations.SPARSE, [["a", "b"], ["a", "a", "b"]])
GOOD = CFG.argmax


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: WeightedCFG(derivations.SPARSE), "give sentences, or lexical scores"),
        (lambda: WeightedCFG(derivations.SPARSE, "ab"), "lists of words"),
        (lambda: WeightedCFG(derivations.SPARSE, [[]]), "at least one word"),
        (lambda: WeightedCFG(derivations.SPARSE, [["c"]]), "'c' of sentence 0 is not in the lexicon"),
        (lambda: WeightedCFG(derivations.SPARSE, lexical=torch.zeros(1, 3, 5)), r"\[batch, n, 2\]"),
        (lambda: WeightedCFG(derivations.SPARSE, [["a"]], rules=torch.zeros(9)), "rules must have one of the shapes"),
        (lambda: WeightedCFG(derivations.SPARSE, [["a"]], root=torch.zeros(9)), "root must be"),
        (lambda: WeightedCFG(derivations.SPARSE, [["a"]], nodes=torch.zeros(1, 1)), "nodes must be"),
        (lambda: WeightedCFG(derivations.SPARSE, lexical=torch.full((1, 2, 2), math.nan)), r"got nan at \[0, 0, 0\]"),
        (lambda: WeightedCFG(derivations.SPARSE, [["a"]], rules=torch.full((4,), INF)), r"rules must be finite"),
        (lambda: CFG.log_prob(GOOD[:1]), "a list of 2 trees"),
        (lambda: CFG.log_prob(GOOD[::-1]), r"must stand above \['a', 'b'\]"),
        (lambda: CFG.log_prob([Tree("X", GOOD[0].children), GOOD[1]]), "'X' at row 0 is not a symbol"),
        (lambda: CFG.log_prob([Tree("S", ("a", "b")), GOOD[1]]), "one word or two nodes"),
        (lambda: CFG.top_k(0), "k must be at least 1"),
        (lambda: CFG.span_probability(0, 4), r"within 0..3"),
        (lambda: CFG.span_probability(0, 1, "X"), "one of the grammar's; got 'X'"),
        (lambda: CFG.constrain([[]]), "one list a row"),
        (lambda: CFG.constrain([[(0, 1, "X")], []]), "'X' at row 0 is not a symbol"),
        (lambda: CFG.constrain(torch.ones(2, 2).bool()), "allowed nodes must be bool"),
        (lambda: kl_divergence(CFG, WeightedCFG(derivations.SPARSE, [["a"]])), "KL needs the same grammar"),
    ],
)
def test_what_cannot_be_is_explained(ask: Any, message: str) -> None:
    with pytest.raises(ScoreError, match=message):
        ask()


def test_a_tree_with_a_rule_that_the_grammar_lacks_has_probability_zero() -> None:
    wrong = Tree("B", (Tree("A", ("a",)), Tree("B", ("b",))))
    assert CFG.log_prob([wrong, GOOD[1]])[0].item() == -INF


def test_known_symbols_by_name_and_whole_trees() -> None:
    close(CFG.log_prob_of_set(GOOD), CFG.log_prob(GOOD))
    assert CFG.constrain([[(0, 1, "A")], [(0, 2, None)]]).count.tolist() == [1, 1]
    assert CFG.constrain([[], [(0, 2, "S")]]).count.tolist() == [1, 0]


def test_an_unknown_word_scores_what_is_given() -> None:
    scores = torch.tensor([-1.0, -2.0], dtype=torch.float64)
    cfg = WeightedCFG(derivations.SPARSE, [["zebra"]], unknown=scores, root=torch.zeros(3, dtype=torch.float64))
    close(cfg.log_partition, [math.log(math.exp(-1) + math.exp(-2))])
