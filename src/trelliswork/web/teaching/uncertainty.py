"""Uncertainty of a model about sentences, and the sentences of files that are to be taught; run by workers."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from trelliswork.cli.gold_files import GOLD_FILES
from trelliswork.cli.inputs import choices_of, open_new
from trelliswork.data import Choices, Sentence, file_kind
from trelliswork.data.json_values import Json, JsonObject
from trelliswork.models import load
from trelliswork.models.base import Answer, Model
from trelliswork.models.part_choices import PartChoices
from trelliswork.web.asking import Question
from trelliswork.web.problems import Problem

MOST_SENTENCES = 100_000


def uncertainties(model: Model, question: Question) -> list[dict[str, float]]:
    """Return for each sentence how useful a decision about it would be, by each ranking.

    Entropy and expected errors are sums over the tokens, by which short sentences are not preferred: Settles and Craven
    (2008), An analysis of active learning strategies for sequence labeling tasks.
    """
    answers = model.predict(question.sentences, top_k=2, confidence=False)
    choices = model.choices(question.sentences, most=1)
    return [_scores(*each) for each in zip(answers, choices, strict=True)]


def _scores(answer: Answer, choices: Sequence[PartChoices]) -> dict[str, float]:
    best = [each.probability for each in answer.alternatives]
    return {
        "entropy": sum(each.entropy for each in choices),
        "margin": 1.0 - (best[0] - (best[1] if len(best) > 1 else 0.0)) if best else 0.0,
        "error": sum(1.0 - each.choices[0].probability for each in choices),
    }


def sentences_in_file(model: Model, body: Json) -> JsonObject:
    """Return the sentences of an uploaded file, as lines of a lesson have them."""
    kind, content = body["format"], body["content"]
    how = {"by_line": kind == "lines"} if kind in ("text", "lines") else {}
    kind = {"lines": "text", "tokens": "pretokenised"}.get(kind, kind)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"upload.{'jsonl' if kind == 'jsonl' else 'txt'}"
        path.write_text(content, encoding="utf-8", newline="")
        _, sentences = open_new(str(path), kind, choices_of(model, Choices(), kind), **how)
        records = [_record(each) for each, _ in zip(sentences, range(MOST_SENTENCES + 1), strict=False) if len(each)]
    if len(records) > MOST_SENTENCES:
        raise Problem(413, f"expected at most {MOST_SENTENCES:,} sentences to teach, got more; split the file")
    return {"sentences": records}


def _record(sentence: Sentence) -> JsonObject:
    record: JsonObject = {"text": sentence.text} if sentence.text else {}
    record["tokens"] = list(sentence.words)
    return record | ({"features": [list(each) for each in sentence.features]} if sentence.features else {})


# The score of a model on sentences, printed: `python -m trelliswork.web.teaching.uncertainty FOLDER FILE`.


def score(folder: str, file: str) -> JsonObject:
    """Return the score that counts for the model, and its name."""
    model: Model = load(folder)
    _, opened = GOLD_FILES[model.learns_from].open(file, Choices(), file_kind(file))
    gold, _ = model.readable_gold(list(opened))
    scores = model.evaluate(gold)
    return {"metric": scores["metric"], "score": scores["score"]}


if __name__ == "__main__":
    print(json.dumps(score(*sys.argv[1:3])))
