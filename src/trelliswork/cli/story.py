"""The demo: a tagger for names, trained on the built-in corpus, compared with a baseline and explained."""

from __future__ import annotations

import datetime
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from trelliswork import ctrl_c
from trelliswork.cli.compiling import announce_compiling, compile_in_background
from trelliswork.cli.inputs import format_to_store
from trelliswork.cli.report import report_page
from trelliswork.cli.training import progress_for
from trelliswork.cli.writers.pretty import marked_text
from trelliswork.data import ColumnFormat, MajorityBaseline, Sentence, atomic_write
from trelliswork.data.corpus import as_sentences, builtin_corpus, write_corpus
from trelliswork.draw import Drawing, trellis
from trelliswork.models import Analysis, Confidences, Tagger, TaggerConfig
from trelliswork.models.examined import Examined, Example
from trelliswork.models.taggers.evaluation import TaggerScores, compare, examined, score
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
        """Return the probability of each tag at each token, and the best sequence."""
        return trellis(self.marginals, self.sentence.words, self.tags, best=self.confidences.tags)


@dataclass(frozen=True)
class Outcome:
    """Results that the demo shows."""

    corpus: Corpus
    history: list[EpochRecord]
    baseline: TaggerScores
    model: TaggerScores
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
    """Return a small tagger, trained and saved in `out`.

    Args:
        corpus: The built-in corpus.
        out: Folder of the model.
        seed: Seed of the run.
        epochs: Number of epochs.
        progress: Who sees how it goes.

    Returns:
        The tagger, and the record of its training.
    """
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
    """Score the tagger and the baseline on the test part, and explain some sentences.

    Args:
        tagger: The trained tagger.
        corpus: The built-in corpus.
        history: Records of the epochs.

    Returns:
        Scores and explained sentences.
    """
    baseline = MajorityBaseline(corpus.train)
    gold = [sentence.tags or () for sentence in corpus.test]
    guessed = [baseline.tag(sentence.words) for sentence in corpus.test]
    position, tag = PIN
    answers = tagger.confidences(corpus.test)
    scores = score(answers, corpus.test, tagger.scheme)
    judged = examined(answers, corpus.test, tagger.scheme, scores.confusion)
    return Outcome(
        corpus,
        history,
        compare(gold, guessed, "IOB2"),
        scores,
        explain(tagger, SENTENCE),
        tagger.confidences([SENTENCE], [{position - 1: tag}])[0],
        judged,
        choose_examples(judged.examples),
    )


def explain(tagger: Tagger, sentence: Sentence, top_k: int = 3) -> Explained:
    """Return tags, confidences, best analyses and all marginals of a sentence.

    Args:
        tagger: The trained tagger.
        sentence: The sentence.
        top_k: Number of analyses.

    Returns:
        What is shown of the sentence.
    """
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
    """Return sentences worth showing: with names, of readable length, the least sure half of them first."""
    readable = [each for each in examples if 6 <= len(each.words) <= 16 and len(each.found) >= 2]
    by_doubt = sorted(readable, key=lambda each: min(each.confidences))
    return [*by_doubt[: n // 2], *by_doubt[-(n - n // 2) :]]


def tell_story(folder: Path, *, sentences: int, seed: int, epochs: int) -> None:
    """Train, score and explain, with all that is printed and written.

    Args:
        folder: Folder of model, data and report.
        sentences: Number of training sentences.
        seed: Seed of corpus and training.
        epochs: Number of epochs.
    """
    began = time.perf_counter()
    compile_in_background("demo")
    n_held_out = max(20, 3 * sentences // 20)
    corpus = write_data(folder / "data", (sentences, n_held_out, n_held_out))
    print(_introduction(corpus), flush=True)
    announce_compiling()
    tagger, result = train_tagger(corpus, folder / "model", seed=seed, epochs=epochs, progress=progress_for())
    if result.interrupted:
        raise typer.Exit(ctrl_c.status())
    outcome = examine(tagger, corpus, result.history)
    pages = {"report.html": report_page(outcome), "trellis.svg": outcome.explained.trellis().svg}
    for name, page in pages.items():
        with atomic_write(folder / name) as file:
            file.write(page)
    print(_results(outcome))
    print(_one_sentence(outcome))
    print(_where(folder, time.perf_counter() - began))


def _introduction(corpus: Corpus) -> str:
    return (
        "Trelliswork demo: finding names (people, firms, places, products, dates)\n\n"
        f"1. Data: {len(corpus.train):,} sentences to train on, {len(corpus.dev):,} to stop on, "
        f"{len(corpus.test):,} to test; {corpus.unseen:.0%} of the test words\n"
        "   are new. Many names are ambiguous: Jordan is a person, a place or a firm; May a month or a woman.\n\n"
        "2. Training a neural network under a linear-chain CRF"
    )


def _results(outcome: Outcome) -> str:
    lines = ["\n3. Results on the test part, in per cent\n", f"{'':32}accuracy  precision  recall     F1"]
    for name, scores in (("most frequent tag of each word", outcome.baseline), ("neural CRF", outcome.model)):
        spans = scores.spans
        if spans is not None:
            ratios = f"{100 * spans.precision:9.2f}  {100 * spans.recall:6.2f}  {100 * spans.f1:5.2f}"
            lines.append(f"   {name:31}{100 * scores.accuracy:6.2f}  {ratios}")
    table = outcome.model.spans.table() if outcome.model.spans is not None else ""
    lines += ["", *(f"   {line}" for line in table.splitlines())]
    if outcome.model.calibration is not None:
        error = 100 * outcome.model.calibration.expected_error
        lines.append(f"\n   The confidences are off by {error:.1f} points on average (expected calibration error).")
    return "\n".join(lines)


def _one_sentence(outcome: Outcome) -> str:
    words = outcome.explained.sentence.words
    lines = [
        "\n4. One sentence, with the probability of each name\n",
        f"   {_shown(words, outcome.explained.confidences)}",
    ]
    lines += ["", "   The three best analyses"]
    for analysis in outcome.explained.analyses:
        tags = " ".join(f"{word}/{tag}" if tag != "O" else word for word, tag in zip(words, analysis.tags, strict=True))
        lines.append(f"   {100 * analysis.probability:5.1f}%  {tags}")
    position, tag = PIN
    lines += [
        "",
        f"   If {words[position - 1]} is known to be a place (--pin {position}={tag}), the name around it goes",
    ]
    lines.append(f"   {_shown(words, outcome.pinned)}")
    return "\n".join(lines)


def _shown(words: tuple[str, ...], answer: Confidences) -> str:
    return marked_text(words, answer.tags, "IOB2", answer.spans)


def _where(folder: Path, seconds: float) -> str:
    text = "echo 'Dr Jordan visited Lincoln on Monday .'"
    return (
        f"\n5. Written in {seconds:.0f} s\n"
        f"   {folder / 'report.html'}  the report: open it in a browser\n"
        f"   {folder / 'model'}        the tagger\n"
        f"   {folder / 'data'}         the corpus\n\n"
        "   Try\n"
        f"   {text} | trelliswork predict {folder / 'model'} - --text --confidence\n"
        f"   trelliswork evaluate {folder / 'model'} {folder / 'data' / 'test.conll'}\n"
        f"   trelliswork check {folder / 'data' / 'train.conll'} {folder / 'data' / 'test.conll'}"
    )
