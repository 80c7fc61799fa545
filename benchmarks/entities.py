"""WNUT-17 entities with GloVe: what each part of the recipe gives.

    python -m benchmarks.entities --work FOLDER --seeds 5      # trains what FOLDER lacks, then writes the page

The text is noisy, the entities are new, and the training tweets are split into words in another way than dev and test
data. The recipe: tokens cut as in dev data, parts of speech from a tagger trained on EWT as a column, spans above a
threshold instead of the best tags, several seeds together, at last dev data to train on. FOLDER keeps the models; the
page is docs/results/entities.md.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.accuracy.measure import ROOT
from benchmarks.accuracy.runs import EWT, VECTORS, WNUT17, Corpus
from benchmarks.report import RESULTS, table
from trelliswork import __version__
from trelliswork.data import Sentence, WordVectors, cut_tokens, open_conll, read_vectors
from trelliswork.metrics import span_scores
from trelliswork.models import Ensemble, SentenceTagger, Tagger, TaggerConfig
from trelliswork.models.taggers.span_choice import choose_spans
from trelliswork.tags.schemes import tags_of
from trelliswork.training import TrainingConfig, train

SETTINGS = {
    "encoder": "lstm", "hidden": 100, "characters": "cnn", "dropout": 0.4, "hidden_dropout": 0.4, "min_count": 2,
    "unknown_dropout": 0.3,
}  # fmt: skip
POS_SETTINGS = {**SETTINGS, "word_dim": 32}
POS_TRAINING = {"epochs": 5, "batch_tokens": 1500}
TRAINING = {"epochs": 6, "batch_tokens": 500, "lr": 3e-3}
THRESHOLDS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
CHOOSING = 3  # models without dev data, to choose by
LINK = re.compile(r"(?:https?:|www\.)\S+")

Record = dict[str, Any]


def read_parts(corpus: Corpus, data: Path) -> list[list[Sentence]]:
    """The sentences to train on, to choose by and to test on."""
    return [list(open_conll(data / part)[1]) for part in (corpus.train, corpus.dev, corpus.test)]


def as_read(sentence: Sentence) -> Sentence:
    """Links all alike; the mark of a name or topic, which stands before it, on it too: @ ann becomes @ @ann."""
    words = ["http" if LINK.fullmatch(word) else word for word in sentence.words]
    for i, before in enumerate(sentence.words[:-1], 1):
        if before in ("@", "#") and words[i][:1].isalnum():
            words[i] = before + words[i]
    return replace(sentence, words=tuple(words))


class Reader:
    """From the sentences of the files to those that the models see; the parts of speech come from `pos`."""

    def __init__(self, pos: Tagger) -> None:
        self.pos = pos

    def __call__(self, sentences: Sequence[Sentence]) -> list[Sentence]:
        tags = self.pos.tag([replace(sentence, features=()) for sentence in sentences])
        return [as_read(replace(sentence, features=(tuple(of),))) for sentence, of in zip(sentences, tags, strict=True)]


def pos_tagger(folder: Path, data: Path, vectors: WordVectors) -> Tagger:
    """A tagger of parts of speech for tokens that are cut as finely."""
    if not (folder / "config.json").exists():
        learn, dev, _ = ([cut_tokens(sentence, "plain") for sentence in part] for part in read_parts(EWT, data))
        model = Tagger.from_data(learn, TaggerConfig(**POS_SETTINGS), vectors=vectors)
        train(model, learn, dev, TrainingConfig(**POS_TRAINING), out=folder)
    return Tagger.load(folder)


def member(folder: Path, learn: Sequence[Sentence], vectors: WordVectors, seed: int) -> Tagger:
    """The model of one seed, after the last epoch; trained if the folder is empty."""
    if not (folder / "config.json").exists():
        print(f"training {folder}", flush=True)
        model = Tagger.from_data(learn, TaggerConfig(**SETTINGS), vectors=vectors, seed=seed)
        train(model, learn, None, TrainingConfig(seed=seed, **TRAINING), out=folder)
    return Tagger.load(folder)


def f1(tagger: SentenceTagger, sentences: Sequence[Sentence], threshold: float | None = None) -> float:
    """Strict F1 of spans in per cent."""
    gold = [sentence.tags or () for sentence in sentences]
    return 100 * span_scores(gold, tagger.tag(sentences, threshold=threshold), "IOB2", "strict").f1


def best_threshold(parts: Sequence[tuple[SentenceTagger, Sequence[Sentence]]]) -> float:
    """The threshold with the best F1 on all parts, each tagged by its own model."""
    dev = [sentence for _, part in parts for sentence in part]
    gold = [sentence.tags or () for sentence in dev]
    likely = [spans for tagger, part in parts for spans in tagger.likely_spans(part, min(THRESHOLDS))]

    def score(threshold: float) -> float:
        chosen = [choose_spans(spans, len(sentence), threshold) for spans, sentence in zip(likely, dev, strict=True)]
        spans = [[(each.start, each.end, each.label) for each in row] for row in chosen]
        tags = [tags_of(row, len(sentence), "IOB2") for row, sentence in zip(spans, dev, strict=True)]
        return span_scores(gold, tags, "IOB2", "strict").f1

    return max(THRESHOLDS, key=score)


def crossed(
    work: Path, learn: Sequence[Sentence], dev: Sequence[Sentence], vectors: WordVectors
) -> list[tuple[SentenceTagger, Sequence[Sentence]]]:
    """Each half of the dev data with a model that was trained on the other half too."""
    middle = (len(dev) + 1) // 2
    first, second = dev[:middle], dev[middle:]
    return [
        (member(work / "first", [*learn, *first], vectors, 0), second),
        (member(work / "second", [*learn, *second], vectors, 0), first),
    ]


def rows_of(
    trained_on: str, taggers: Sequence[Tagger], threshold: float, dev: Sequence[Sentence], test: Sequence[Sentence]
) -> list[Record]:
    """Single models by best tags and by threshold, all together by threshold; dev scores only where dev is new."""
    alone, above = f"mean of {len(taggers)} models, each alone", f"spans from {threshold}"
    answers: list[tuple[str, str, Sequence[SentenceTagger], float | None]] = [
        (alone, "best tags", taggers, None),
        (alone, above, taggers, threshold),
        (f"{len(taggers)} models together", above, [Ensemble(taggers)], threshold),
    ]
    return [
        {
            "trained_on": trained_on, "models": models, "answer": answer,
            "dev": [f1(tagger, dev, least) for tagger in chosen] if trained_on == "train" else [],
            "test": [f1(tagger, test, least) for tagger in chosen],
        }
        for models, answer, chosen, least in answers
    ]  # fmt: skip


NOTE = """
# Entities in noisy text: WNUT-17

Made by `python -m benchmarks.entities`; what was tried on the way is in
[decision 20](../decisions/0020-entities-in-noisy-text.md). Strict F1 of spans in per cent, GloVe vectors (100
dimensions, 60,000 words). All choices were made on dev data. The threshold of the models that are trained on dev data
too is the best for models that are trained on one half of it, scored on the other. The plain BiLSTM-CRF + GloVe is in
[accuracy.md](accuracy.md).
"""


def page(record: Record) -> str:
    """docs/results/entities.md."""
    lines = [
        [row["trained_on"], row["models"], row["answer"], _mean(row["dev"]), f"**{_mean(row['test'])}**"]
        for row in record["rows"]
    ]
    told = ", ".join(f"{key}={value}" for key, value in {**record["settings"], **record["training"]}.items())
    head = ["trained on", "models", "answer", "dev", "test"]
    text = [NOTE.strip(), "", *table(head, lines), "", f"Settings: {told}.", "", f"One core; {record['versions']}.", ""]
    return "\n".join(text)


def _mean(scores: Sequence[float]) -> str:
    spread = f" ± {statistics.stdev(scores):.2f}" if len(scores) > 1 else ""
    return f"{statistics.fmean(scores):.2f}{spread}" if scores else "—"


def measure(work: Path, data: Path, seeds: Sequence[int]) -> Record:
    """Train what is missing; score everything."""
    vectors = read_vectors(data / VECTORS)
    learn, dev, test = read_parts(WNUT17, data)
    read = Reader(pos_tagger(work / "pos", data, vectors))
    learn, dev, test = read([cut_tokens(sentence, "IOB2") for sentence in learn]), read(dev), read(test)
    parts = {"train": learn, "train and dev": [*learn, *dev]}
    wanted = {"train": seeds[:CHOOSING], "train and dev": seeds}
    taggers = {
        name: [member(work / name.replace(" ", "-") / f"seed-{seed}", part, vectors, seed) for seed in wanted[name]]
        for name, part in parts.items()
    }
    thresholds = {
        "train": best_threshold([(Ensemble(taggers["train"]), dev)]),
        "train and dev": best_threshold(crossed(work / "halves", learn, dev, vectors)),
    }
    rows = [row for name, models in taggers.items() for row in rows_of(name, models, thresholds[name], dev, test)]
    versions = f"Trelliswork {__version__}, Python {platform.python_version()}, torch {torch.__version__}"
    return {
        "rows": rows, "seeds": list(seeds), "settings": SETTINGS, "training": TRAINING,
        "versions": versions,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.entities", description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the corpora")
    parser.add_argument("--work", type=Path, required=True, help="folder of the models")
    parser.add_argument("--seeds", type=int, default=5, help="how many")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of entities.json and entities.md")
    options = parser.parse_args()
    torch.set_num_threads(1)
    record = measure(options.work, options.data, range(options.seeds))
    (options.results / "entities.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    (options.results / "entities.md").write_text(page(record), encoding="utf-8")
    print(page(record))


if __name__ == "__main__":
    main()
