"""What notebooks show: every distribution, answer, model and report, as well-formed HTML in which nothing is code."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

import pytest
import torch

import trelliswork as tw
from trelliswork import metrics
from trelliswork.distributions.registry import STRUCTURES, example_of
from trelliswork.draw.notebook import MOST_ROWS, Piece, Rich, Table
from trelliswork.models import LearningConfig, TaggedData
from trelliswork.models.base import Alternative, Answer, PartProbability, Report
from trelliswork.structures.record import Structure
from trelliswork.training import EpochRecord, TrainingResult

BAD = '<script>alert("&")</script>'


def cells(shown: Rich) -> list[str]:
    """The texts of all cells and sentences, in order; a picture has none."""
    return [each.text or "" for each in html(shown).iter() if each.tag in ("th", "td", "div", "pre", "b")]


def html(shown: Rich) -> ElementTree.Element:
    return ElementTree.fromstring(shown._repr_html_())


def n_pictures(shown: Rich) -> int:
    return len([each for each in html(shown).iter() if each.tag.endswith("}svg")])


@pytest.mark.parametrize("structure", STRUCTURES, ids=lambda structure: structure.name)
def test_a_distribution_shows_its_sizes_and_log_z(structure: Structure) -> None:
    torch.manual_seed(0)
    found = example_of(structure, torch.randn)
    shown = cells(found)
    assert shown[1] == type(found).__name__
    values = dict(pairwise(shown))
    assert values["log Z"].split(", ")[0] == f"{float(found.log_partition.reshape(-1)[0]):.6g}"
    assert values["batch"] == ", ".join(map(str, found.batch_shape)) and values["over"].startswith(found._noun)
    assert n_pictures(found) == (structure.name == "automata")


def test_what_cannot_be_summed_says_why() -> None:
    endless = tw.fst.Acceptor([(0, 0, "a")], [1.0], final=0, symbols=["a"])
    with pytest.raises(tw.TrellisworkError) as caught:
        endless.log_partition  # noqa: B018
    assert str(caught.value) in cells(endless)


def test_an_hmm_shows_its_sizes() -> None:
    model = tw.HMM.from_scores(torch.zeros(2), torch.zeros(2, 2), torch.zeros(2, 3))
    assert cells(model)[2:] == ["n states", "2", "n symbols", "3"]


TAGS = Answer(
    ["B-PER", "O"], 0.9, [BAD, "left"], [PartProbability(0, 1, "B-PER", 0.95), PartProbability(1, 2, "O", 0.97)],
    [PartProbability(0, 1, "PER", 0.95)], [Alternative(["B-PER", "O"], 0.9), Alternative(["O", "O"], 0.04)],
)  # fmt: skip
ARCS = Answer([(2, "nsubj"), (0, "root")], 0.8, ["Ann", "left"], columns={"HEAD": ["2", "0"]})
TREE = Answer(tw.Tree.parse("(S (NP Ann) (VP left))"), None, ["Ann", "left"], search="beam")
STRING = Answer("K AE T", 0.7, ["c", "a", "t"], [PartProbability(i, i + 1, each, 0.9) for i, each in enumerate("KAT")])


def test_an_answer_shows_its_picture_and_the_alternatives() -> None:
    assert cells(TAGS)[-4:] == ["90%", "B-PER O", "4%", "O O"]
    assert cells(ARCS)[-2:] == ["80%", "2:nsubj 0:root"]
    assert cells(TREE)[-3:] == ["chosen part by part", "(S (NP Ann) (VP left))", "beam"]
    assert cells(STRING)[-2:] == ["70%", "K AE T"]
    assert [n_pictures(each) for each in (TAGS, ARCS, TREE, STRING)] == [1, 1, 1, 1]
    both = Answer({"ner": ["O"], "pos": ["NN"]}, None, ["Ann"], tasks={"ner": TAGS, "pos": ARCS})
    assert n_pictures(both) == 2 and "pos" in cells(both)


def test_nothing_is_code() -> None:
    shown = TAGS._repr_html_()
    assert "<script" not in shown and "&lt;script" in shown
    sentence = tw.Sentence((BAD,), (BAD,), ((BAD,),))
    assert "<script" not in sentence._repr_html_() and cells(sentence).count(BAD) == 3


def test_a_model_describes_itself() -> None:
    sentences = [tw.Sentence((BAD, "left"), ("B-<i>", "O"))] * 3
    tagger = tw.FeatureTagger.fit(TaggedData(sentences), LearningConfig(max_iterations=2))
    shown = cells(tagger)
    assert shown[1:5] == ["FeatureTagger", "kind", tagger.describe().kind, "size"]
    assert any("B-<i>" in each for each in shown)
    assert cells(Report("F1  50.00\nP   <b>", {}))[-1] == "F1  50.00\nP   <b>\n"


def test_reports_of_scores_are_tables() -> None:
    gold, found = [["B-PER", "O", "B-LOC"]], [["B-PER", "O", "O"]]
    report = metrics.span_scores(gold, found, "IOB2")
    assert cells(report)[2:7] == ["", "precision", "recall", "F1", "support"]
    assert cells(report)[-5:] == ["all", "100.00", "50.00", "66.67", "2"]
    assert cells(report.overall)[2:4] == ["correct", "1"] and "0.6667" in cells(report.overall)
    assert cells(metrics.confusion(gold, found))[-4:] == ["O", "0", "0", "1"]
    assert cells(metrics.calibration([(0.75, True), (0.75, False)]))[-4:] == ["0.7 to 0.8", "2", "0.75", "0.5"]
    assert "las" in cells(metrics.attachment([[(0, "root")]], [[(0, "root")]]))
    assert "p value" in cells(metrics.paired_bootstrap([report.overall], [report.overall], n_samples=3))


def test_a_run_shows_its_epochs_and_a_tree_itself() -> None:
    run = TrainingResult([EpochRecord(1, 0.5, 0.25, "F1", 10.0, 2.0)], best_epoch=1)
    assert cells(run)[-8:] == ["epoch", "loss", "F1", "seconds", "1", "0.5", "0.25", "2"]
    assert n_pictures(tw.Tree.parse("(S a)")) == 1


def test_a_long_table_is_cut() -> None:
    class Long(Rich):
        def _shown(self) -> list[Piece]:
            return [Table([(i, i) for i in range(MOST_ROWS + 7)])]

    assert cells(Long())[-1] == "and 7 more" and len(cells(Long())) == 2 * MOST_ROWS + 3
