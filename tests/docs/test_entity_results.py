"""The page of the entity figures says what its file holds; sentences are read as the page says."""

from __future__ import annotations

import json

from benchmarks.entities import SETTINGS, TRAINING, as_read, best_threshold, page
from benchmarks.report import RESULTS

from trelliswork.data import Sentence, cut_tokens
from trelliswork.models import Tagger, TaggerConfig
from trelliswork.training import TrainingConfig


def test_the_page_is_made_of_the_file() -> None:
    record = json.loads((RESULTS / "entities.json").read_text("utf-8"))
    assert (RESULTS / "entities.md").read_text("utf-8") == page(record)
    assert (record["settings"], record["training"]) == (SETTINGS, TRAINING)
    TaggerConfig(**SETTINGS), TrainingConfig(**TRAINING)


def test_marks_and_links() -> None:
    tweet = cut_tokens(Sentence(("RT", "@ann_b", ":", "#Rome!", "http://t.co/x1")), "IOB2")
    assert as_read(tweet).words == ("RT", "@", "@ann", "_", "b", ":", "#", "#Rome", "!", "http")


def test_the_threshold_is_the_best_on_dev_data() -> None:
    dev = [Sentence(("Ann", "sings"), ("B-PER", "O")), Sentence(("Bob", "sings"), ("B-PER", "O"))]
    tagger = Tagger.from_data(dev, TaggerConfig(hidden=8), seed=1)
    chosen = best_threshold([(tagger, dev[:1]), (tagger, dev[1:])])
    scores = {t: tagger.evaluate(dev, threshold=t)["f1"] for t in (0.1, 0.15, 0.2, 0.3, 0.5)}
    assert tagger.evaluate(dev, threshold=chosen)["f1"] == max(scores.values())
