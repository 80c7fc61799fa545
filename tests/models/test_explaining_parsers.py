"""Explanations of parsers: votes of words and rules that sum to differences between the scores of trees."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import pytest
import torch

from tests.models.test_biaffine_parser import CROSSING, trees_of
from tests.models.test_biaffine_parser import SMALL as SMALL_BIAFFINE
from tests.models.test_biaffine_parser import TRAIN as ARCS
from tests.models.test_explaining_networks import is_complete, wide
from tests.models.test_span_parser import SMALL as SMALL_SPANS
from tests.models.test_span_parser import TRAIN as BRACKETS
from tests.models.test_treebank_grammar import AMBIGUOUS, WHOLE
from tests.models.test_treebank_grammar import TRAIN as TREES
from trelliswork.data import Sentence
from trelliswork.models.parsers.constituency.config import SpanConfig
from trelliswork.models.parsers.constituency.pcfg import TreebankGrammar
from trelliswork.models.parsers.constituency.span_cky import SpanParser
from trelliswork.models.parsers.dependency.biaffine import BiaffineParser
from trelliswork.models.parsers.dependency.config import ParserConfig, TransitionConfig
from trelliswork.models.parsers.dependency.transition import TransitionParser
from trelliswork.models.votes import Reason

WORDS = Sentence(("she", "sings", "it"))


@pytest.mark.parametrize("decoding", ["best", "expected"])
@pytest.mark.parametrize("projective", [False, True])
def test_arcs_are_compared_with_the_best_tree_without_them(projective: bool, decoding: str) -> None:
    """Against all trees with all labels: the best one with the arc, and the best one with another."""
    config = ParserConfig(**SMALL_BIAFFINE, decoding=decoding)
    model = wide(BiaffineParser.from_data(ARCS if projective else [*ARCS, CROSSING], config)).eval()
    (found,), trees = model.explain([WORDS]), model.distribution([WORDS])
    labels = range(len(model.labels))
    every = [
        list(zip(heads, of, strict=True))
        for heads in trees_of(3, projective) for of in itertools.product(labels, repeat=3)
    ]  # fmt: skip
    scores = trees.score(torch.tensor(every)[:, None])[:, 0].tolist()
    for i, arc in enumerate(found.arcs):
        own = (arc.head, model.labels.index(arc.label))
        kept, rival = (
            max(range(len(every)), key=lambda k: scores[k] if (every[k][i] == own) is has else -math.inf)
            for has in (True, False)
        )
        reason = found.reasons[i]
        assert reason.difference == pytest.approx(scores[kept] - scores[rival], abs=1e-4)
        assert is_complete(reason)
        head, label = every[rival][i]
        assert reason.rival == f"{model.labels[label]} of " + (f"{head} {WORDS.words[head - 1]}" if head else "(root)")
    best = sorted(range(len(every)), key=lambda k: -scores[k])[:3]
    assert [each.value for each in found.best] == [[(h, model.labels[y]) for h, y in every[k]] for k in best]
    record = json.loads(json.dumps(found.record(2)))
    assert record["arcs"][0]["reason"]["difference"] == found.reasons[0].difference
    assert "compared with" in str(found) and 'class="why"' in found._repr_html_()


@pytest.mark.parametrize("cell", ["feed-forward", "lstm"])
def test_decisions_are_compared_with_the_strongest_other_one(cell: str) -> None:
    config = TransitionConfig(encoder="lstm", hidden=6, word_dim=5, state_dim=8, cell=cell)
    model = wide(TransitionParser.from_data(ARCS, config)).eval()
    (found,) = model.explain([WORDS])
    reasons = 0
    for step in found.steps:
        if step.others:
            assert step.reason is not None and is_complete(step.reason)
            share = math.log(step.taken.probability) - math.log(step.others[0].probability)
            assert step.reason.difference == pytest.approx(share, abs=1e-3)
            assert step.reason.rival == found.text_of(step.others[0])
            reasons += 1
    assert reasons > 2
    record = json.loads(json.dumps(found.record(1)))
    assert [step["taken"]["probability"] for step in record["decisions"]] == [s.taken.probability for s in found.steps]
    assert "compared with" in str(found) and 'class="why"' in found._repr_html_()


@pytest.mark.parametrize("decoding", ["best", "expected"])
def test_brackets_are_compared_with_the_best_tree_without_them(decoding: str) -> None:
    model = wide(SpanParser.from_data(BRACKETS, SpanConfig(**{**SMALL_SPANS, "decoding": decoding}))).eval()
    sentence = Sentence(("the", "old", "dog", "sees"))
    (found,), trees = model.explain([sentence]), model.distribution([sentence])
    values, scores = trees.top_k(300)
    ranked = [({tuple(node) for node in values[k][0]}, float(scores[k, 0])) for k in range(300)]
    checked = 0
    for each in found.spans:
        start, end = each.brackets[0].start, each.brackets[0].end
        label = model.labels.vocabulary.index("+".join(part.label for part in each.brackets))
        kept = next((score for nodes, score in ranked if (start, end, label) in nodes), None)
        rival = next((score for nodes, score in ranked if (start, end, label) not in nodes), None)
        assert each.reason is not None and is_complete(each.reason)
        if kept is not None and rival is not None:
            assert each.reason.difference == pytest.approx(kept - rival, abs=1e-3)
            checked += 1
    assert checked
    assert "compared with" in str(found) and 'class="why"' in found._repr_html_()
    assert len(json.loads(json.dumps(found.record(2)))["spans"]) == len(found.spans)


def test_rules_sum_to_the_difference_between_two_trees() -> None:
    model = TreebankGrammar.fit(TREES, WHOLE)
    (found,) = model.explain([Sentence(AMBIGUOUS)])
    best = model.grammar.top_k(model.charts(AMBIGUOUS, best=True), 50)
    ranked = [(set(model._split_nodes(nodes)[1]), score) for nodes, score in best]
    compared = [each for each in found.spans if each.reason is not None]
    for each in compared:
        own = {(part.start, part.end, part.label) for part in each.brackets}
        kept = next(score for brackets, score in ranked if own <= brackets)
        rival = next(score for brackets, score in ranked if not own <= brackets)
        reason: Any = each.reason
        assert sum(vote.score for vote in reason.votes) == pytest.approx(kept - rival)
        assert all(" -> " in vote.words for vote in reason.votes)
    assert compared and isinstance(compared[0].reason, Reason)
    assert [each.probability for each in found.best] == sorted((b.probability for b in found.best), reverse=True)
    assert json.loads(json.dumps(found.record(2)))["best"][0]["value"].startswith("(S ")
