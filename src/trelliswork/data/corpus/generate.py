"""Sentences of the built-in corpus, drawn from the grammar with a seed.

>>> part = builtin_corpus(seed=0, sizes=(3, 1, 1))["train"]
>>> len(part), len(part[0].words) == len(part[0].pos) == len(part[0].chunks) == len(part[0].entities)
(3, True)
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trelliswork.data.corpus.derivation import Derivation, chunk_spans, entity_spans
from trelliswork.data.corpus.events import event_mentions
from trelliswork.data.corpus.expansion import Expansion
from trelliswork.data.corpus.grammar import ROOT, rules_by_parent
from trelliswork.data.corpus.spelling import spelled
from trelliswork.data.events import Event
from trelliswork.data.sentence import Sentence
from trelliswork.errors import TrellisworkError
from trelliswork.tags.schemes import tags_of
from trelliswork.writing import atomic_write

PARTS = ("train", "dev", "test")
TASKS = ("entities", "chunks", "pos")
SHORTEST, LONGEST = 4, 30


@dataclass(frozen=True)
class AnnotatedSentence:
    """A generated sentence with the annotation read from its derivation; chunks and entities are IOB2 tags."""

    words: tuple[str, ...]
    pos: tuple[str, ...]
    chunks: tuple[str, ...]
    entities: tuple[str, ...]
    derivation: Derivation

    def __len__(self) -> int:
        return len(self.words)

    @property
    def events(self) -> list[Event]:
        """What happens in the sentence, and who takes part."""
        return event_mentions(self.derivation)


def builtin_corpus(seed: int = 0, sizes: tuple[int, int, int] = (2000, 300, 300)) -> dict[str, list[AnnotatedSentence]]:
    """The parts "train", "dev" and "test", all different sentences; dev and test hold words unseen in train.

    >>> sorted(builtin_corpus(sizes=(2, 1, 1)))
    ['dev', 'test', 'train']
    """
    seen: set[tuple[str, ...]] = set()
    corpus: dict[str, list[AnnotatedSentence]] = {}
    for part, size in zip(PARTS, sizes, strict=True):
        stream = sentences(f"{seed}/{part}", unseen=part != "train")
        corpus[part] = []
        while len(corpus[part]) < size:
            sentence = next(stream)
            if sentence.words not in seen:
                seen.add(sentence.words)
                corpus[part].append(sentence)
    return corpus


def sentences(seed: str | int, *, unseen: bool = True) -> Iterator[AnnotatedSentence]:
    """Endless sentences of 4 to 30 words; with `unseen`, held-out words occur among them."""
    expansion = Expansion(random.Random(seed), unseen, rules_by_parent())
    while True:
        tree = expansion.tree(ROOT)
        if tree is not None and SHORTEST <= len(tree.words()) <= LONGEST:
            yield annotate(spelled(tree))


def annotate(tree: Derivation) -> AnnotatedSentence:
    """Words and all layers of annotation of a derivation."""
    leaves = list(tree.leaves())
    n = len(leaves)
    return AnnotatedSentence(
        words=tuple(leaf.word for leaf in leaves),
        pos=tuple(leaf.label for leaf in leaves),
        chunks=tuple(tags_of(chunk_spans(tree), n, "IOB2")),
        entities=tuple(tags_of(entity_spans(tree), n, "IOB2")),
        derivation=tree,
    )


def as_sentences(part: Sequence[AnnotatedSentence], task: str = "entities") -> list[Sentence]:
    """A part of the corpus as plain tagged sentences for one task: entities, chunks or pos.

    For entities and chunks the part of speech is the one feature column.
    """
    if task not in TASKS:
        raise TrellisworkError(f"task must be one of {', '.join(TASKS)}; got {task!r}")
    file = f"built-in corpus ({task})"
    return [
        Sentence(
            sentence.words,
            getattr(sentence, task),
            () if task == "pos" else (sentence.pos,),
            line=number,
            file=file,
        )
        for number, sentence in enumerate(part, 1)
    ]


def write_corpus(corpus: dict[str, list[AnnotatedSentence]], folder: str | Path) -> list[Path]:
    """Write `train.conll`, `dev.conll`, `test.conll`: word, part of speech, chunk and entity, tab-separated."""
    paths = []
    for part, annotated in corpus.items():
        path = Path(folder) / f"{part}.conll"
        with atomic_write(path) as file:
            file.writelines(_conll_block(sentence) for sentence in annotated)
        paths.append(path)
    return paths


def _conll_block(sentence: AnnotatedSentence) -> str:
    rows = zip(sentence.words, sentence.pos, sentence.chunks, sentence.entities, strict=True)
    return "".join("\t".join(row) + "\n" for row in rows) + "\n"
