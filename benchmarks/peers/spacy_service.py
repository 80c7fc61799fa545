"""The peer of `benchmarks.serve`: a plain FastAPI service around spaCy's `nlp.pipe`, and the training of its model.

Runs in an environment of its own with spacy, fastapi and uvicorn:

    python spacy_service.py train train.jsonl model
    SPACY_MODEL=model uvicorn --app-dir benchmarks/peers spacy_service:app --port 8001
"""

from __future__ import annotations

import json
import os
import random
import sys
from typing import Any

import spacy
from fastapi import FastAPI
from pydantic import BaseModel
from spacy.tokens import Doc
from spacy.training import Example

EPOCHS = 2


class Question(BaseModel):
    """Sentences whose tokens are known."""

    tokens: list[list[str]]


def train(data: str, folder: str) -> None:
    """An entity recogniser with spaCy's own settings, of spans in IOB2."""
    nlp = spacy.blank("en")
    nlp.add_pipe("ner")
    with open(data, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    examples = []
    for row in rows:
        blank = Doc(nlp.vocab, words=row["tokens"])
        examples.append(Example(blank, Doc(nlp.vocab, words=row["tokens"], ents=row["tags"])))
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(EPOCHS):
        random.Random(0).shuffle(examples)
        for batch in spacy.util.minibatch(examples, 64):
            nlp.update(batch, sgd=optimizer, drop=0.1)
    nlp.to_disk(folder)


app = FastAPI()
if os.environ.get("SPACY_MODEL"):
    nlp = spacy.load(os.environ["SPACY_MODEL"])


@app.post("/predict")
def predict(question: Question) -> dict[str, Any]:
    """The spans of each sentence."""
    docs = nlp.pipe([Doc(nlp.vocab, words=words) for words in question.tokens])
    return {"results": [[[span.start, span.end, span.label_] for span in doc.ents] for doc in docs]}


if __name__ == "__main__":
    assert sys.argv[1] == "train"
    train(*sys.argv[2:4])
