"""The contract of the structures on random instances: `python -m tests.trust.oracle --cases 100000`.

A case is one query of one random instance in one number format by one backend, all its rows and values compared with
enumeration in float64. The instances are those of the contracts with other scores (of another scale, with ties, with
more -inf, far away from 0), other lengths and masks, and, for automata, other machines.
"""

from __future__ import annotations

import argparse
import inspect
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tests.contract.base import INF, Instance, StructureContract, judged_by
from tests.contract.machines import random_machine
from tests.contract.test_automata import TestMachine, instance_of
from tests.contract.test_ctc_alignment import TestCTCAlignment
from tests.contract.test_edit_alignment import TestEditAlignment
from tests.contract.test_factor_graph import TestFactorGraph
from tests.contract.test_labelled_trees import TestLabelledProjectiveTree, TestLabelledSpanningTree
from tests.contract.test_linear_chain import TestLinearChain
from tests.contract.test_nary_tree import TestNaryTree
from tests.contract.test_projective_tree import TestProjectiveTree
from tests.contract.test_semi_markov import TestSemiMarkov
from tests.contract.test_span_tree import TestSpanTree
from tests.contract.test_spanning_tree import TestSpanningTree
from tests.contract.test_weighted_cfg import TestWeightedCFG
from tests.trust.ctc_strings import CTCStrings

CONTRACTS: dict[str, type[StructureContract]] = {
    "LinearChain": TestLinearChain,
    "SemiMarkov": TestSemiMarkov,
    "SpanTree": TestSpanTree,
    "SpanTree of any arity": TestNaryTree,
    "WeightedCFG": TestWeightedCFG,
    "ProjectiveTree": TestProjectiveTree,
    "ProjectiveTree with labels": TestLabelledProjectiveTree,
    "SpanningTree": TestSpanningTree,
    "SpanningTree with labels": TestLabelledSpanningTree,
    "CTC": CTCStrings,
    "CTCAlignment": TestCTCAlignment,
    "EditAlignment": TestEditAlignment,
    "Transducer": TestMachine,
    "FactorGraph": TestFactorGraph,
}
NOT_NUMBERS = (  # of the contract, but about shapes and seeds
    "test_samples_come_in_the_shape_asked_for",
    "test_the_same_seed_draws_the_same_samples",
    "test_inputs_are_never_changed",
)
SELDOM = {"test_samples_have_the_right_frequencies": 8, "test_what_is_not_read_changes_nothing": 4}  # 1 instance in
NAMES = {
    "test_score_and_log_prob_of_every_value": "score, log_prob",
    "test_the_gradient_of_log_partition_is_the_marginals": "gradient of log_partition",
    "test_argmax_is_a_best_value": "argmax",
    "test_top_k_is_the_head_of_the_sorted_enumeration": "top_k",
    "test_samples_have_the_right_frequencies": "sample",
    "test_kl_divergence": "kl_divergence",
    "test_kl_divergence_is_infinite_where_the_other_forbids": "kl_divergence, forbidden values",
    "test_kl_divergence_is_infinite_however_improbable_what_is_forbidden_is": "kl_divergence, improbable values",
    "test_entropy_and_divergences_at_an_offset": "entropy, kl_divergence at an offset",
    "test_tempered_divides_every_score": "tempered",
    "test_log_prob_of_a_set": "log_prob_of_set",
    "test_constrain_keeps_exactly_what_agrees": "constrain",
    "test_a_common_shift_moves_log_partition_and_nothing_else": "shift of all scores",
    "test_a_row_by_itself_is_the_row_in_the_batch": "a row by itself",
    "test_what_is_not_read_changes_nothing": "garbage in padding",
    "test_log_partition": "log_partition",
    "test_marginals": "marginals",
    "test_count": "count",
    "test_entropy": "entropy",
}
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}
SHIFTED, OFFSET = 0.1, 1e6  # how many instances have scores far away from 0
SCALES = (0.1, 1.0, 1.0, 5.0, 30.0, 200.0)


@dataclass
class Findings:
    """What was tried, how far apart the answers were, and which cases failed."""

    cases: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)  # structure, query, dtype, backend
    largest: dict[tuple[str, str, str, str], float] = field(default_factory=dict)
    failures: list[dict[str, str]] = field(default_factory=list)

    def by(self, place: int) -> dict[str, dict[str, float]]:
        """Cases and the largest difference for each structure (0), query (1), dtype (2) or backend (3)."""
        found: dict[str, dict[str, float]] = {}
        for key, n in self.cases.items():
            row = found.setdefault(key[place], {"cases": 0, "largest difference": 0.0})
            row["cases"] += n
            row["largest difference"] = max(row["largest difference"], self.largest.get(key, 0.0))
        return found

    def to_dict(self) -> dict[str, Any]:
        kinds = {name: self.by(place) for place, name in enumerate(("structure", "query", "dtype", "backend"))}
        return {"cases": self.cases.total(), "failures": self.failures, **kinds}


def queries_of(contract: type[StructureContract]) -> dict[str, str]:
    """The methods of a contract that compare an answer with enumeration, and what to call them."""
    found, unasked = {}, (*NOT_NUMBERS, *getattr(contract, "unasked", ()))
    for name, method in inspect.getmembers(contract, inspect.isfunction):
        wanted = list(inspect.signature(method).parameters) == ["self", "instance", "backend"]
        if name.startswith("test_") and wanted and name not in unasked:
            found[name] = NAMES.get(name) or name.removeprefix("test_").replace("_", " ")
    return found


# --- random instances ----------------------------------------------------------------------------------------


def varied(contract: StructureContract, source: random.Random) -> Instance:
    """An instance like one of the contract's, with random numbers; each of its rows has a value, the first has two."""
    while True:
        if isinstance(contract, TestMachine):
            instance = instance_of(
                random_machine(source.randrange(2**31), source.randrange(3, 7), source.randrange(4, 14))
            )
        else:
            instance = source.choice(list(contract._instances().values()))
        instance = rescored(instance, source)
        instance = Instance(instance.scores, reshuffled(instance.options, source))
        if source.random() < SHIFTED:
            instance, _ = contract.shifted(instance, OFFSET)
        supports = contract.supports(instance)
        if all(supports) and len(supports[0]) > 1:
            return instance


def rescored(instance: Instance, source: random.Random) -> Instance:
    dtype, scale = source.choice([torch.float64, torch.float32]), source.choice(SCALES)
    ties, forbidden = source.random() < 0.15, source.choice([0.0, 0.0, 0.03])
    generator = torch.Generator().manual_seed(source.randrange(2**31))

    def draw(part: Tensor) -> Tensor:
        numbers = torch.randn(part.shape, generator=generator, dtype=torch.float64)
        numbers = (2 * numbers).round() if ties else scale * numbers
        gone = (part == -INF) | (torch.rand(part.shape, generator=generator) < forbidden)
        return numbers.masked_fill(gone, -INF).to(dtype)

    return instance.mapped(draw)


def reshuffled(options: dict[str, Tensor], source: random.Random) -> dict[str, Tensor]:
    """Other lengths between the shortest and the longest, and the rows of a mask in another order."""
    generator, found = torch.Generator().manual_seed(source.randrange(2**31)), dict(options)
    for name in ("lengths", "target_lengths"):
        given = options.get(name)
        if given is not None and "targets" not in options:
            low, high = int(given.min()), int(given.max())
            found[name] = torch.randint(low, high + 1, given.shape, generator=generator, dtype=given.dtype)
    mask = options.get("mask")
    if mask is not None and mask.dim() > 1:
        rows = mask.reshape(-1, mask.shape[-1])
        found["mask"] = rows[torch.randperm(len(rows), generator=generator)].reshape(mask.shape)
    return found


# --- comparing -----------------------------------------------------------------------------------------------


def magnitude(contract: StructureContract, instance: Instance) -> float:
    """The size of the numbers that are summed on the way: their rounding is what can be asked for."""
    parts = [part[part.isfinite()].abs().double() for part in instance.scores.values()]
    largest = max((float(part.max()) for part in parts if part.numel()), default=1.0)
    values = [abs(score) for support in contract.supports(instance) for score in support.values()]
    return max(1.0, largest, *values)


@dataclass
class Measure:
    """The largest difference of one case, relative to the numbers compared; raises beyond the tolerance."""

    magnitude: float
    largest: float = 0.0

    def __call__(self, found: Tensor, expected: Any, dtype: torch.dtype) -> None:
        wanted = torch.as_tensor(expected, dtype=torch.float64).detach().reshape(found.shape)
        answer = found.detach().double()
        same = answer == wanted  # infinities too
        apart = ((answer - wanted).abs() / wanted.abs().clamp(min=self.magnitude)).masked_fill(same, 0.0)
        worst = float(apart.max()) if apart.numel() else 0.0
        self.largest = max(self.largest, INF if worst != worst else worst)
        if not worst <= self.tolerance(dtype):  # NaN is a difference
            place = int(apart.nan_to_num(nan=INF).argmax())
            got, right = answer.flatten()[place].item(), wanted.flatten()[place].item()
            tolerance = f"{worst:.2g} apart, tolerance {self.tolerance(dtype):g}"
            raise AssertionError(f"expected {right!r}, got {got!r}: {tolerance}")

    def tolerance(self, dtype: torch.dtype) -> float:
        """Posteriors are exp of differences of numbers of this magnitude, whose rounding they have."""
        return max(TOLERANCE[dtype], 8 * torch.finfo(torch.float64).eps * self.magnitude)


def compare(name: str, contract: StructureContract, instance: Instance, n: int, findings: Findings) -> None:
    """Every query of an instance by each backend."""
    size, dtype = magnitude(contract, instance), str(instance.dtype).removeprefix("torch.")
    for method, query in queries_of(type(contract)).items():
        if n % SELDOM.get(method, 1):
            continue
        for backend in contract.backends:
            key, measure = (name, query, dtype, backend), Measure(size)
            problem = _problem(getattr(contract, method), instance, backend, measure)
            findings.cases[key] += 1
            findings.largest[key] = max(findings.largest.get(key, 0.0), measure.largest)
            if problem:
                findings.failures.append(
                    {**dict(zip(("structure", "query", "dtype", "backend"), key, strict=True)), "problem": problem}
                )


def _problem(ask: Callable[[Instance, str], None], instance: Instance, backend: str, measure: Measure) -> str:
    try:
        with judged_by(measure):
            ask(instance, backend)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def run(n_cases: int, seed: int = 0, *, structures: list[str] | None = None) -> Iterator[Findings]:
    """The findings after each round; a round is one random instance of every structure."""
    findings, source, n = Findings(), random.Random(seed), 0
    contracts = {name: kind() for name, kind in CONTRACTS.items() if structures is None or name in structures}
    while findings.cases.total() < n_cases:
        for name, contract in contracts.items():
            compare(name, contract, varied(contract, source), n, findings)
        n += 1
        if n % 20 == 0:
            forget()
        yield findings


def forget() -> None:
    """Instances are enumerated once for all their queries, and then never seen again."""
    for name in ("_log_zs", "_probabilities", "_values", "_enumerated_marginals"):
        getattr(StructureContract, name).cache_clear()
    for name, module in list(sys.modules.items()):
        if name.startswith(("tests.contract.", "tests.trust.")):
            for each in list(vars(module).values()):
                if hasattr(each, "cache_clear"):
                    each.cache_clear()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--structures", nargs="*", choices=CONTRACTS)
    parser.add_argument("--out", type=Path, default=Path("runs/trust/oracle.json"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    report: dict[str, Any] = {}
    for n, findings in enumerate(run(args.cases, args.seed, structures=args.structures)):
        if n % 20 == 0 or findings.cases.total() >= args.cases:
            report = {"seed": args.seed, "seconds": round(time.process_time()), **findings.to_dict()}
            args.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
            print(f"{report['cases']:,} cases, {len(report['failures'])} failed", file=sys.stderr, flush=True)
    print(json.dumps({**report, "failures": report["failures"][:20]}, indent=1))
    return 1 if report["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
