"""The demo's substance: a tagger for names, trained on the built-in corpus and compared with a baseline."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trelliswork.cli.inputs import format_to_store
from trelliswork.data import ColumnFormat, MajorityBaseline, Sentence
from trelliswork.data.corpus import as_sentences, builtin_corpus, write_corpus
from trelliswork.draw import Drawing, trellis
from trelliswork.models import Analysis, Confidences, Tagger, TaggerConfig
from trelliswork.models.examined import Examined, Example
from trelliswork.models.taggers.scores import Scores, compare, examined, score
from trelliswork.training import EpochRecord, TrainingConfig, TrainingResult, train
from trelliswork.training.progress import Progress

SENTENCE = Sentence(("In", "May", ",", "May", "Lincoln", "left", "Chase", "for", "Austin", "."), file="demo")
PIN = (5, "B-LOC")  # what happens to the rest if "Lincoln" is known to be a place
LAYOUT = ColumnFormat("\t", 4, word_column=1, tag_column=4, feature_columns=(), scheme="IOB2")


@dataclass(frozen=True)
class Corpus:
    """The three parts, words and entity tags alone."""

    train: list[Sentence]
    dev: list[Sentence]
    test: list[Sentence]

    @property
    def unseen(self) -> float:
        """The share of test tokens that the training part lacks."""
        known = {word for sentence in self.train for word in sentence.words}
        words = [word for sentence in self.test for word in sentence.words]
        return sum(word not in known for word in words) / len(words)


@dataclass(frozen=True)
class Explained:
    """One sentence with everything that the model says about it."""

    sentence: Sentence
    confidences: Confidences
    analyses: list[Analysis]
    tags: list[str]
    marginals: list[list[float]]  # [token][tag]

    def trellis(self) -> Drawing:
        """The probability of each tag at each token, and the best sequence."""
        return trellis(self.marginals, self.sentence.words, self.tags, best=self.confidences.tags)


@dataclass(frozen=True)
class Outcome:
    """What the demo shows."""

    corpus: Corpus
    history: list[EpochRecord]
    baseline: Scores
    model: Scores
    explained: Explained
    pinned: Confidences
    examined: Examined
    examples: list[Example]


def write_data(folder: Path, sizes: tuple[int, int, int]) -> Corpus:
    """Generate the corpus, leave its files in `folder`, and return it with words alone as input."""
    corpus = builtin_corpus(sizes=sizes)
    write_corpus(corpus, folder)
    parts = {name: [replace(each, features=()) for each in as_sentences(part)] for name, part in corpus.items()}
    return Corpus(**parts)


def train_tagger(
    corpus: Corpus, out: Path, *, seed: int, epochs: int, progress: Progress
) -> tuple[Tagger, TrainingResult]:
    """A small tagger, trained and saved in `out`."""
    config = TaggerConfig(word_dim=32, affix_dim=12, hidden=128, dropout=0.15)
    tagger = Tagger.from_data(corpus.train, config, scheme="IOB2", seed=seed)
    tagger.metrics["data"] = {
        "date": datetime.date.today().isoformat(),
        "train": "built-in corpus",
        "train_sentences": len(corpus.train),
        "dev_sentences": len(corpus.dev),
        "format": format_to_store(LAYOUT),
    }
    result = train(
        tagger, corpus.train, corpus.dev, TrainingConfig(epochs=epochs, seed=seed), out=out, progress=progress
    )
    return tagger, result


def examine(tagger: Tagger, corpus: Corpus, history: list[EpochRecord]) -> Outcome:
    """Score the tagger and the baseline on the test part, and explain some sentences."""
    baseline = MajorityBaseline(corpus.train)
    gold = [sentence.tags or () for sentence in corpus.test]
    guessed = [baseline.tag(sentence.words) for sentence in corpus.test]
    position, tag = PIN
    answers = tagger.confidences(corpus.test)
    found = score(answers, corpus.test, tagger.scheme)
    judged = examined(answers, corpus.test, tagger.scheme, found.confusion)
    return Outcome(
        corpus,
        history,
        compare(gold, guessed, "IOB2"),
        found,
        explain(tagger, SENTENCE),
        tagger.confidences([SENTENCE], [{position - 1: tag}])[0],
        judged,
        choose_examples(judged.examples),
    )


def explain(tagger: Tagger, sentence: Sentence, top_k: int = 3) -> Explained:
    """Tags, confidences, best analyses and all marginals of a sentence."""
    labels = tagger.labels
    tags = labels.data_tags
    groups = [sorted({i for label in labels.meaning(tag) for i in labels.same_tag[label]}) for tag in tags]
    marginals = tagger.distribution([sentence]).marginals[0].tolist()
    return Explained(
        sentence,
        tagger.confidences([sentence])[0],
        tagger.analyses([sentence], top_k)[0],
        tags,
        [[min(sum(row[i] for i in group), 1.0) for group in groups] for row in marginals],
    )


def choose_examples(examples: Sequence[Example], n: int = 6) -> list[Example]:
    """Sentences worth showing: with names, of readable length, the least sure half of them first."""
    readable = [each for each in examples if 6 <= len(each.words) <= 16 and len(each.found) >= 2]
    by_doubt = sorted(readable, key=lambda each: min(each.confidences))
    return [*by_doubt[: n // 2], *by_doubt[-(n - n // 2) :]]
