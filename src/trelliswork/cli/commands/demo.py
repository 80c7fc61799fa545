"""`trelliswork demo`: train, score, decode and explain on the built-in corpus."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from trelliswork.cli.kernels import announce_compiling
from trelliswork.cli.options import Threads
from trelliswork.cli.report import report_page
from trelliswork.cli.showing import progress_for
from trelliswork.cli.story import PIN, Corpus, Outcome, examine, train_tagger, write_data
from trelliswork.cli.writers import marked_text
from trelliswork.data import atomic_write
from trelliswork.errors import OutputError
from trelliswork.models import Confidences
from trelliswork.models.storage import check_output
from trelliswork.runtime.threads import use_threads


def demo(
    out: Annotated[
        str, typer.Option(metavar="DIR", help="Directory for the model, the data and the report.")
    ] = "demo-output",
    seed: Annotated[int, typer.Option(help="Random seed for training.")] = 0,
    epochs: Annotated[int, typer.Option(min=1, help="Number of epochs.")] = 12,
    sentences: Annotated[int, typer.Option(min=40, help="Number of training sentences.")] = 2000,
    threads: Threads = 1,
) -> None:
    """Train, evaluate and explain a tagger on the built-in corpus.

    Trains a named-entity tagger, compares it with a baseline, shows how
    confident it is on an ambiguous sentence, and writes an HTML report.
    Takes about half a minute.

    \b
    Example:
      trelliswork demo --out demo-output
    """
    began = time.perf_counter()
    use_threads(threads)
    folder = Path(out)
    check_output(folder / "model")
    _make_folder(folder / "data")
    n_held_out = max(20, 3 * sentences // 20)
    corpus = write_data(folder / "data", (sentences, n_held_out, n_held_out))
    print(_introduction(corpus), flush=True)
    announce_compiling()
    tagger, result = train_tagger(corpus, folder / "model", seed=seed, epochs=epochs, progress=progress_for())
    if result.interrupted:
        raise typer.Exit(130)
    outcome = examine(tagger, corpus, result.history)
    pages = {"report.html": report_page(outcome), "trellis.svg": outcome.explained.trellis().svg}
    for name, page in pages.items():
        with atomic_write(folder / name) as file:
            file.write(page)
    print(_results(outcome))
    print(_one_sentence(outcome))
    print(_where(folder, time.perf_counter() - began))


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise OutputError(f"{folder}: expected a folder, got a file; choose another --out") from error
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made: {error.strerror}; choose another --out") from error


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
