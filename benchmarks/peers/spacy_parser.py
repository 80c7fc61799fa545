"""spaCy 3's parser over its standard network (HashEmbedCNN, width 96, depth 4), on tokens as the file has them."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import spacy
from served import commands
from spacy.tokens import Doc
from spacy.training import Example

MOST_SENTENCES, SEED = 1500, 0


def read(source: str) -> list[tuple[list[str], list[list[str]]]]:
    """Each sentence: all of its lines, and the fields of its words."""
    found = []
    for block in Path(source).read_text(encoding="utf-8").split("\n\n"):
        lines = block.splitlines()
        words = [line.split("\t") for line in lines if line[:1].isdigit() and line.split("\t", 1)[0].isdigit()]
        if words:
            found.append((lines, words))
    return found


def train(source: str, model: str) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("parser")
    examples = []
    for _, words in read(source)[:MOST_SENTENCES]:
        heads = [int(row[6]) - 1 if row[6] != "0" else i for i, row in enumerate(words)]
        given = {"words": [row[1] for row in words], "heads": heads, "deps": [row[7] for row in words]}
        examples.append(Example.from_dict(Doc(nlp.vocab, words=given["words"]), given))
    optimizer = nlp.initialize(lambda: examples)
    random.Random(SEED).shuffle(examples)
    for batch in spacy.util.minibatch(examples, 64):
        nlp.update(batch, sgd=optimizer)
    nlp.to_disk(model)


def parser(model: str, source: str, target: str) -> Callable[[], object]:
    nlp = spacy.load(model)

    def job() -> None:
        sentences = read(source)
        docs = (Doc(nlp.vocab, words=[row[1] for row in words]) for _, words in sentences)
        text = [written(lines, doc) for (lines, _), doc in zip(sentences, nlp.pipe(docs), strict=True)]
        Path(target).write_text("".join(text), encoding="utf-8")

    return job


def written(lines: list[str], doc: Doc) -> str:
    """The sentence with the heads and labels that were found."""
    found, tokens = [], iter(doc)
    for line in lines:
        fields = line.split("\t")
        if fields[0].isdigit():
            token = next(tokens)
            fields[6] = "0" if token.head is token or token.head.i == token.i else str(token.head.i + 1)
            fields[7] = token.dep_
            line = "\t".join(fields)
        found.append(line)
    return "\n".join(found) + "\n\n"


if __name__ == "__main__":
    commands(train, parser)
