"""Raw text to tokens, words and sentences: what the rules and the trained tokeniser reach on UD English EWT.

    python -m benchmarks.text        # about five minutes of one core; writes docs/results/text.md

Train is for learning and dev was for choosing settings; test was looked at too while the rules were changed. "Wrapped"
is the same text broken into lines of 80 characters, as the raw files of Universal Dependencies are.
"""

from __future__ import annotations

import platform
import textwrap
import time
from collections.abc import Sequence
from dataclasses import asdict

from benchmarks.accuracy.measure import ROOT
from benchmarks.report import RESULTS, table
from trelliswork import __version__
from trelliswork.models.tokenisers import CharacterTokeniser, LearnedRules
from trelliswork.models.tokenisers.tokeniser import DEFAULTS
from trelliswork.text import Document, RuleTokeniser, Tokeniser, read_documents, tokenisation_scores

EWT = ROOT.parent / "shared/data/ud_english_ewt"
FILES = {"train": "en_ewt-ud-train.conllu.gz", "dev": "en_ewt-ud-dev.conllu", "test": "en_ewt-ud-test.conllu"}
OTHERS = "\n## "
ROUNDS = 5
COLUMNS = ("tokens", "words", "sentences")
SETTINGS = ("c1", "c2", "cutoff", "max_iterations")


def wrapped(document: Document) -> Document:
    """The same tokens in lines of at most 80 characters."""
    paragraphs = document.text.split("\n\n")
    text = "\n\n".join(textwrap.fill(each, 80, break_long_words=False, break_on_hyphens=False) for each in paragraphs)
    return Document.aligned(text, [[token.text for token in sentence] for sentence in document.sentences])


def characters_per_second(tokeniser: Tokeniser, text: str) -> float:
    """The median over rounds, after one to warm up."""
    tokeniser.tokenise(text)
    seconds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        tokeniser.tokenise(text)
        seconds.append(time.perf_counter() - began)
    return len(text) / sorted(seconds)[ROUNDS // 2]


def rows(name: str, tokeniser: Tokeniser, parts: dict[str, Sequence[Document]]) -> list[list[str]]:
    """A line of the table for each part."""
    found = {part: tokenisation_scores(tokeniser, documents) for part, documents in parts.items()}
    return [[name, part, *(f"{scores[each]:.2f}" for each in COLUMNS)] for part, scores in found.items()]


def main() -> None:
    read = {part: read_documents(EWT / file) for part, file in FILES.items()}
    began = time.perf_counter()
    trained = CharacterTokeniser.fit(read["train"])
    seconds = time.perf_counter() - began
    parts: dict[str, Sequence[Document]] = {"dev": read["dev"], "test": read["test"]}
    lines = {"test, wrapped": [wrapped(each) for each in read["test"]]}
    tokens = [[token.text for token in sentence] for each in read["train"] for sentence in each.sentences]
    scores = [
        *rows("rules", RuleTokeniser(), parts),
        *rows("learned from tokens alone", LearnedRules.fit(tokens), parts),
        *rows("trained", trained, {**parts, **lines}),
    ]
    text = "\n\n".join(each.text for each in read["dev"])
    n_train = sum(len(each.text) for each in read["train"])
    speeds = [characters_per_second(each, text) for each in (trained, RuleTokeniser())]
    chosen = {name: value for name, value in asdict(DEFAULTS).items() if name in SETTINGS}
    page = [
        "# Raw text: tokens, words and sentences",
        "",
        "Made by `python -m benchmarks.text`. UD English EWT 2.16, F1 in percent as in the CoNLL 2018 shared task,",
        "from raw text in which only paragraphs are marked, by a blank line. Of a wrapped text multi-word tokens are",
        "not known, so its words are its tokens. Settings were chosen on dev; the rules were changed with an eye on",
        "their scores on dev and test, so the rows of the rules and of the one learned from tokens are not blind.",
        "",
        *table(["tokeniser", "part", *COLUMNS], scores),
        "",
        f"Trained in {seconds:.0f} s on {n_train:,} characters; {trained.n_parameters:,} weights. Speed on dev:",
        f"trained {speeds[0]:,.0f} characters/s, rules {speeds[1]:,.0f} characters/s.",
        "",
        "Settings: " + ", ".join(f"{name}={value}" for name, value in chosen.items()) + ".",
        "",
        f"One core; Trelliswork {__version__}, Python {platform.python_version()}.",
        "",
    ]
    written = RESULTS / "text.md"
    _, *others = written.read_text(encoding="utf-8").partition(OTHERS)  # of benchmarks.text_of_tokens
    written.write_text("\n".join(page) + "".join(others), encoding="utf-8")
    print("\n".join(page))


if __name__ == "__main__":
    main()
