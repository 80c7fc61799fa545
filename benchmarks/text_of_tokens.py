"""How many gold entities a tokeniser cuts in raw text, when all it has seen are the columns of a training file.

    python -m benchmarks.text_of_tokens ned.train ned.testb
    python -m benchmarks.text_of_tokens de_gsd-ud-train.conllu de_gsd-ud-test.conllu --columns 2 4
    python -m benchmarks.text_of_tokens esp.train esp.testb --moses es --spacy es

The text of the test file is that of its `# text` lines if it is CoNLL-U; else the tokens are put together by
`trelliswork.text.spacing`, or with `--moses` by the detokeniser of sacremoses, which knows nothing of ours. An entity
is cut if it does not begin and end where tokens do, or a sentence ends inside it; "glued" are those among them in which
the file has a full stop glued to a word that is not the last (`Minas. Energía` for "Minas y Energía"). It is split
inside if its borders are right and its tokens are not those of the file. Of CoNLL-U (`--columns 2 4`), runs of proper
nouns count as entities. Prints a table.
"""

from __future__ import annotations

import argparse
import time
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from benchmarks.report import table
from trelliswork.data import Choices
from trelliswork.data.readers import open_tagged
from trelliswork.tags.schemes import spans_of
from trelliswork.text import Document, RuleTokeniser, Token, Tokeniser, read_documents, tokenisation_scores
from trelliswork.text.first_rules import FirstRules
from trelliswork.text.habits import Habits, HabitTokeniser
from trelliswork.text.spacing import plausible_text

Spans = list[tuple[int, int]]  # first token and one behind the last
COLUMNS = ("tokeniser", "entities", "cut", "%", "of them glued", "split inside", "F1 of tokens", "of sentences")
FEW = 20  # entities that are shown


def read(path: str, columns: Sequence[int]) -> tuple[list[list[str]], list[Spans]]:
    """The tokens of each sentence, and its entities; a token of several words has the tag of the first."""
    word, tag = columns or (None, None)
    sentences = list(open_tagged(path, Choices(word_column=word, tag_column=tag))[1])
    tokens: Any = [[Token(form, 0, 0) for form in sentence.words] for sentence in sentences]
    if is_conllu(path):
        tokens = [each for document in read_documents(path) for each in document.sentences]
    spans = []
    for sentence, known in zip(sentences, tokens, strict=True):
        firsts = [0, *accumulate(len(token.words) for token in known)][:-1]
        spans.append(entities_in([(sentence.tags or ())[first] for first in firsts]))
    return [[token.text for token in each] for each in tokens], spans


def is_conllu(path: str) -> bool:
    return path.endswith((".conllu", ".conllu.gz"))


def entities_in(tags: Sequence[str]) -> Spans:
    """The entities of BIO tags, or the runs of PROPN."""
    if "PROPN" in tags or not any("-" in tag for tag in tags):
        tags = ["I-PROPN" if tag == "PROPN" else "O" for tag in tags]
    return [(start, end) for start, end, _ in spans_of(tags, "IOB1")]


def moses(sentences: Sequence[Sequence[str]], language: str) -> Document:
    """The text of the tokens as sacremoses puts them together."""
    from sacremoses import MosesDetokenizer

    detokeniser = MosesDetokenizer(lang=language)
    lines = [detokeniser.detokenize(list(words), unescape=False) for words in sentences]
    return Document.aligned(" ".join(lines), sentences)


class Spacy:
    """The blank pipeline of a language with spaCy's sentence splitter."""

    def __init__(self, language: str) -> None:
        import spacy

        self.pipeline = spacy.blank(language)
        self.pipeline.add_pipe("sentencizer")
        self.pipeline.max_length = 10**9

    def tokenise(self, text: str) -> list[list[Token]]:
        """The sentences of a text."""
        found = []
        for paragraph, start in _paragraphs(text):
            for sentence in self.pipeline(paragraph).sents:
                tokens = [(each.text, start + each.idx) for each in sentence if not each.is_space]
                found.append([Token(form, place, place + len(form)) for form, place in tokens])
        return [each for each in found if each]


def _paragraphs(text: str) -> list[tuple[str, int]]:
    place, found = 0, []
    for part in text.split("\n\n"):
        found.append((part, place))
        place += len(part) + 2
    return found


class Cut(NamedTuple):
    """Counts of entities, and the text of those that are cut or split."""

    n_entities: int
    n_cut: int
    n_glued: int
    n_split: int
    texts: list[str]


def cut(tokeniser: Tokeniser, document: Document, entities: Sequence[Spans]) -> Cut:
    """Count the entities whose borders are no borders of tokens, or that a sentence ends in, and those split inside."""
    sentences = tokeniser.tokenise(document.text)
    places = {(token.start, token.end) for sentence in sentences for token in sentence}
    starts, ends = {start for start, _ in places}, {end for _, end in places}
    last = sorted(sentence[-1].end for sentence in sentences)
    n = n_cut = n_glued = n_split = 0
    texts = []
    for sentence, spans in zip(document.sentences, entities, strict=True):
        for first, behind in spans:
            gold = sentence[first:behind]
            start, end = gold[0].start, gold[-1].end
            is_cut = start not in starts or end not in ends or last[bisect_left(last, start + 1)] < end
            is_split = not is_cut and any((token.start, token.end) not in places for token in gold)
            glued = is_cut and any(len(token.text) > 2 and token.text.endswith(".") for token in gold[:-1])
            n, n_cut, n_glued, n_split = n + 1, n_cut + is_cut, n_glued + glued, n_split + is_split
            if is_cut or is_split:
                texts.append(("cut: " if is_cut else "split inside: ") + document.text[start:end])
    return Cut(n, n_cut, n_glued, n_split, texts)


def row(name: str, tokeniser: Tokeniser, document: Document, entities: Sequence[Spans]) -> tuple[list[str], list[str]]:
    """A line of the table, and what is cut or split."""
    n, n_cut, n_glued, n_split, texts = cut(tokeniser, document, entities)
    scores = tokenisation_scores(tokeniser, [document])
    counts = [f"{n:,}", f"{n_cut:,}", f"{100 * n_cut / max(n, 1):.2f}", f"{n_glued:,}", f"{n_split:,}"]
    return [name, *counts, f"{scores['tokens']:.2f}", f"{scores['sentences']:.2f}"], texts


def text_of(options: Any, sentences: Sequence[Sequence[str]]) -> Document:
    """The raw text of the test file."""
    if is_conllu(options.test):
        documents = read_documents(options.test)
        text = "\n\n".join(document.text for document in documents)
        return Document.aligned(text, [[token.text for token in each] for d in documents for each in d.sentences])
    return moses(sentences, options.moses) if options.moses else plausible_text(sentences, most=None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--columns", type=int, nargs=2, metavar=("WORD", "TAG"), help="counted from 1")
    parser.add_argument("--moses", metavar="LANGUAGE", help="put test tokens together as sacremoses does")
    parser.add_argument("--spacy", metavar="LANGUAGE", help="compare with spaCy's blank pipeline")
    parser.add_argument("--show", action="store_true", help="show some of the entities that the learned one cuts")
    options = parser.parse_args()
    sentences, entities = read(options.test, options.columns)
    document = text_of(options, sentences)
    train, _ = read(options.train, options.columns)
    began = time.process_time()
    learned = HabitTokeniser(Habits.of(plausible_text(train)))
    seconds = time.process_time() - began
    peers: dict[str, Tokeniser] = {"rules of version 1": FirstRules(), "rules": RuleTokeniser()}
    if options.spacy:
        peers[f"spaCy, blank {options.spacy}"] = Spacy(options.spacy)
    lines = []
    for name, tokeniser in {**peers, "learned from tokens": learned}.items():
        line, shown = row(name, tokeniser, document, entities)
        lines.append(line)
    print("\n".join(table(list(COLUMNS), lines)))
    print(f"\nlearned from {sum(map(len, train)):,} tokens in {seconds:.1f} s of processor time")
    if options.show:
        print("\n".join(shown[:FEW]))


if __name__ == "__main__":
    main()
