"""Trees of the built-in corpus: dependencies and constituents, read from the same derivations.

>>> part = builtin_corpus(sizes=(1, 1, 1))["train"]
>>> len(dependencies(part)[0].heads) == len(part[0]), dependencies(part)[0].heads.count(0)
(True, 1)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from trelliswork.data.corpus.documents import AnnotatedDocument
from trelliswork.data.corpus.generate import AnnotatedSentence, builtin_corpus
from trelliswork.data.corpus.grammar import ENTITY_LABEL, Derivation
from trelliswork.data.events import COREFERENCE, EVENTS, HEADS, LINKS, RELATIONS, SENTENCES
from trelliswork.data.jsonl import json_text
from trelliswork.data.sentence import Sentence
from trelliswork.writing import atomic_write

__all__ = ["builtin_corpus", "constituents", "dependencies", "write_treebank"]

# The label of an arc by the phrase that it is in and what hangs from its head; in Universal Dependencies' terms, but
# prepositions are the heads of their phrases.
_BY_PHRASE = {
    ("S", "NP"): "nsubj", ("VP", "NP"): "obj", ("PP", "NP"): "pobj", ("VP", "PP"): "obl", ("S", "PP"): "obl",
    ("NP", "NP"): "nmod", ("NP", "PP"): "nmod", ("ADJP", "PP"): "obl", ("VP", "SBAR"): "ccomp", ("S", "SBAR"): "advcl",
    ("VP", "S"): "xcomp", ("S", "S"): "conj", ("VP", "VP"): "conj", ("S", "VP"): "parataxis",
}  # fmt: skip
_BY_WORD = {
    "DT": "det", "JJ": "amod", "CD": "nummod", "CC": "cc", "MD": "aux", "TO": "mark", "IN": "mark", "POS": "case",
    "RB": "advmod", "PRP$": "nmod:poss", ".": "punct", ",": "punct", "VBD": "aux", "VBZ": "aux", "NN": "compound",
    "NNP": "compound", "NNS": "compound", "ADVP": "advmod", "ADJP": "xcomp", ENTITY_LABEL: "compound",
}  # fmt: skip
_OTHER = "dep"


def dependencies(part: Sequence[AnnotatedSentence]) -> list[Sentence]:
    """Return a part of the corpus as dependency trees: heads, and the labels of arcs as tags; parts of speech are
    XPOS.
    """
    trees = []
    for number, each in enumerate(part, 1):
        arcs = dict(_arcs(each.derivation, 1, 0, "root"))
        heads, labels = zip(*(arcs[word] for word in range(1, len(each) + 1)), strict=True)
        columns = {"XPOS": each.pos}
        trees.append(Sentence(each.words, labels, line=number, file="built-in treebank", heads=heads, columns=columns))
    return trees


def _arcs(node: Derivation, start: int, above: int, label: str) -> Iterator[tuple[int, tuple[int, str]]]:
    """Return (word, (head, label)) of all words under a node, the first of which is number `start`."""
    if not node.children:
        yield start, (above, label)
        return
    starts = [start]
    for child in node.children:
        starts.append(starts[-1] + len(child.words()))
    head = _head_word(node, start)
    for i, (child, first) in enumerate(zip(node.children, starts, strict=False)):
        own = (above, label) if i == node.head else (head, _label(node, child))
        yield from _arcs(child, first, *own)


def _head_word(node: Derivation, start: int) -> int:
    for child in node.children[: node.head] if node.children else ():
        start += len(child.words())
    return _head_word(node.children[node.head], start) if node.children else start


def _label(parent: Derivation, child: Derivation) -> str:
    return _BY_PHRASE.get((parent.label, child.label)) or _BY_WORD.get(child.label, _OTHER)


def constituents(part: Sequence[AnnotatedSentence]) -> list[Sentence]:
    """Return a part of the corpus as phrase trees: brackets, and parts of speech as tags."""
    return [
        Sentence(
            each.words, each.pos, line=number, file="built-in treebank", brackets=tuple(_brackets(each.derivation, 0))
        )
        for number, each in enumerate(part, 1)
    ]


def _brackets(node: Derivation, start: int) -> Iterator[tuple[int, int, str]]:
    if not node.children:
        return
    yield start, start + len(node.words()), node.label
    for child in node.children:
        yield from _brackets(child, start)
        start += len(child.words())


def write_treebank(corpus: dict[str, list[AnnotatedSentence]], folder: str | Path) -> list[Path]:
    """Write each part as dependencies (`train.conllu`, ...) and as phrase trees (`train.mrg`, ...)."""
    paths = []
    for part, annotated in corpus.items():
        texts = {"conllu": map(_conllu, dependencies(annotated)), "mrg": map(_brackets_text, annotated)}
        for suffix, trees in texts.items():
            path = Path(folder) / f"{part}.{suffix}"
            with atomic_write(path) as file:
                file.writelines(trees)
            paths.append(path)
    return paths


def _conllu(sentence: Sentence) -> str:
    columns = (sentence.words, sentence.columns["XPOS"], sentence.heads or (), sentence.tags or ())
    text = written(sentence.words)
    rows = [f"# sent_id = {sentence.line}", f"# text = {text}"]
    place = 0
    for i, (word, pos, head, label) in enumerate(zip(*columns, strict=True), 1):
        place += len(word)
        spaced = place < len(text) and text[place] == " "
        place += spaced
        misc = "_" if spaced or i == len(sentence) else "SpaceAfter=No"
        rows.append(f"{i}\t{word}\t_\t_\t{pos}\t_\t{head}\t{label}\t_\t{misc}")
    return "\n".join(rows) + "\n\n"


def written(words: Sequence[str]) -> str:
    """Return the words as they are written: no space before a comma, a full stop or the possessive.

    >>> written(["Ann", "'s", "plan", ",", "he", "said", "."])
    "Ann's plan, he said."
    """
    return "".join(word if i == 0 or word in (".", ",", "'s", "'") else f" {word}" for i, word in enumerate(words))


def _brackets_text(sentence: AnnotatedSentence) -> str:
    return f"( {sentence.derivation} )\n"


# Sentences and documents of the built-in corpus with entities, events and dependencies.


def event_sentences(part: Sequence[AnnotatedSentence]) -> list[Sentence]:
    """Return a part of the corpus with entities as tags, and events and dependencies as `trelliswork.data.events` has
    them.
    """
    annotated = []
    for number, (sentence, tree) in enumerate(zip(part, dependencies(part), strict=True), 1):
        events = [event.record() for event in sentence.events]
        extra = {EVENTS: events, HEADS: list(tree.heads or ()), RELATIONS: list(tree.tags or ())}
        annotated.append(Sentence(sentence.words, sentence.entities, line=number, file="built-in corpus", extra=extra))
    return annotated


def document_records(part: Sequence[AnnotatedDocument]) -> list[Sentence]:
    """Return documents as records: one for each, with its sentences, what is mentioned again, and links between
    events.
    """
    return [_document(document, number) for number, document in enumerate(part, 1)]


def _document(document: AnnotatedDocument, number: int) -> Sentence:
    heads, relations, bounds, start = list[int](), list[str](), list[list[int]](), 0
    for tree in dependencies(document.sentences):
        heads += [head + start if head else 0 for head in tree.heads or ()]
        relations += tree.tags or ()
        bounds.append([start, start + len(tree)])
        start += len(tree)
    events, links, same = document.layers
    extra = {
        SENTENCES: bounds,
        EVENTS: [event.record() for event in events],
        COREFERENCE: [[list(span) for span in spans] for spans in same],
        LINKS: [list(link) for link in links],
        HEADS: heads,
        RELATIONS: relations,
    }
    tags = tuple(tag for sentence in document.sentences for tag in sentence.entities)
    return Sentence(document.words, tags, line=number, file="built-in documents", extra=extra)


def write_events(corpus: Mapping[str, Sequence[AnnotatedSentence]], folder: str | Path) -> list[Path]:
    """Write `train.jsonl`, `dev.jsonl` and `test.jsonl` as models of events read them."""
    return _write({part: event_sentences(annotated) for part, annotated in corpus.items()}, folder)


def write_documents(corpus: Mapping[str, Sequence[AnnotatedDocument]], folder: str | Path) -> list[Path]:
    """Write documents, one on each line; see `write_events`."""
    return _write({part: document_records(annotated) for part, annotated in corpus.items()}, folder)


def _write(records: Mapping[str, Sequence[Sentence]], folder: str | Path) -> list[Path]:
    paths = []
    for part, sentences in records.items():
        path = Path(folder) / f"{part}.jsonl"
        with atomic_write(path) as file:
            file.writelines(json_text(sentence).rstrip("\n") + "\n" for sentence in sentences)
        paths.append(path)
    return paths
