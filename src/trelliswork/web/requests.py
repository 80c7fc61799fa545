"""Declarations of the bodies and parameters of all requests."""

from __future__ import annotations

import json
from typing import Any

from trelliswork.web.limits import Limits
from trelliswork.web.problems import Problem
from trelliswork.web.schema import Flag, Kind, ListOf, Maybe, Member, OneOf, Record, Text, Whole

LONGEST_WORD = 10_000
LONGEST_NAME = 200
INPUTS = ("text", "texts", "tokens")
PICTURES = ("auto", "segments", "trellis", "dependencies", "tree", "alignment")
FORMATS = ("text", "lines", "tokens", "conll", "jsonl")
RANKINGS = ("entropy", "margin", "error", "order")


def _inputs(limits: Limits) -> dict[str, Member]:
    words = ListOf(Text(LONGEST_WORD, least=1), limits.tokens)
    pin = Record(
        {
            "input": Member(Whole(0, limits.texts - 1), "Which of the texts, from 0.", 0),
            "sentence": Member(Whole(0, limits.characters), "Which of its sentences, from 0.", 0),
            "token": Member(Whole(0, limits.characters), "Which of its tokens, from 0.", 0),
            "value": Member(
                Text(10 * LONGEST_NAME, least=1),
                "What is known: a tag (B-PER), or several of which one is right (O|B-PER); of a dependency parser "
                "HEAD, HEAD:LABEL or _:LABEL with words counted from 1 and 0 for the root; of a constituency "
                "parser LAST or LAST:LABEL, the last word (from 1) of a "
                "constituent that begins at the token.",
                None,
            ),
            "start": Member(Whole(0, limits.characters), "Of a whole span: its first token, from 0.", 0),
            "end": Member(Whole(1, limits.characters), "The token behind its last one.", None),
            "label": Member(
                Text(LONGEST_NAME, least=1), "Its label: exactly these tokens are one span of this label.", None
            ),
        }
    )
    return {
        "model": Member(Text(LONGEST_NAME), "Which model; the first one if left out.", None),
        "text": Member(Text(limits.characters), "One raw text.", None),
        "texts": Member(ListOf(Text(limits.characters), limits.texts, least=1), "Several raw texts.", None),
        "tokens": Member(ListOf(words, limits.texts, least=1), "Sentences whose tokens are known.", None),
        "columns": Member(
            ListOf(ListOf(words, 20), limits.texts),
            "For each sentence of `tokens` the further columns that the model reads, such as parts of speech.",
            None,
        ),
        "pins": Member(ListOf(pin, limits.pins), "Parts of answers that are known.", ()),
    }


def predict_body(limits: Limits) -> Record:
    """Return the body of /v1/predict."""
    asked = {
        "top_k": Member(Whole(0, limits.top_k), "How many of the best answers to list as `alternatives`.", 0),
        "confidences": Member(Flag(), "Whether to add the probabilities of parts and spans.", True),
        "choices": Member(
            Whole(0, limits.shown), "How many choices of each part to list, with its entropy in bits; 0 is none.", 0
        ),
        "expected": Member(
            Flag(),
            "Whether to count the spans (or plain tags, arcs, constituents) of each label in each sentence: the mean "
            "over all answers and the standard deviation. Of several sentences, means and squared deviations add up.",
            False,
        ),
    }
    return Record({**_inputs(limits), **asked}, either=INPUTS)


def draw_body(limits: Limits) -> Record:
    """Return the body of /v1/draw."""
    asked = {
        "picture": Member(OneOf(PICTURES), "Which picture; auto is the one that fits the model.", "auto"),
        "sentence": Member(Whole(0, limits.characters), "Draw this sentence of each input alone, from 0.", None),
    }
    return Record({**_inputs(limits), **asked}, either=INPUTS)


def explain_body(limits: Limits) -> Record:
    """Return the body of /v1/explain."""
    members = _inputs(limits)
    del members["pins"]
    asked = {"shown": Member(Whole(1, limits.shown), "How many votes of each token to list.", 8)}
    return Record({**members, **asked}, either=INPUTS)


def open_body(limits: Limits) -> Record:
    """Return the body of /v1/teach/open."""
    return Record(
        {
            "name": Member(Text(100, least=1), "What the set of sentences is called."),
            "model": Member(Text(LONGEST_NAME), "Which model is taught; the first one if left out.", None),
            "format": Member(OneOf(FORMATS), "What the content is.", "text"),
            "content": Member(
                Text(limits.taught), "A file of sentences; without it, a set that was opened before is taken up.", None
            ),
        }
    )


def next_query(limits: Limits) -> Record:
    """Return the parameters of /v1/teach/next."""
    return Record(
        {
            "by": Member(OneOf(RANKINGS), "What comes first: the most uncertain, or the order of the file.", "entropy"),
            "id": Member(Whole(0, 10**9), "This sentence, whatever comes first.", None),
        }
    )


def decide_body(limits: Limits) -> Record:
    """Return the body of /v1/teach/decide."""
    return Record(
        {
            "id": Member(Whole(0, 10**9), "Which sentence."),
            "tags": Member(
                ListOf(Maybe(Text(LONGEST_NAME, least=1)), limits.tokens),
                "A tag for each token; null is unknown. Of a parser the arc of each word, such as 2:nsubj, none null.",
                None,
            ),
            "skip": Member(Flag(), "Put the sentence off instead.", False),
        }
    )


def empty_body(limits: Limits) -> Record:
    """Return the body of requests that say nothing more: {}."""
    return Record({})


def read_json(body: bytes, kind: Kind) -> Any:
    """Return the body of a request, checked; it must be JSON in UTF-8 without doubled names or NaN."""
    try:
        value = _DECODER.decode(body.decode())
    except UnicodeDecodeError as error:
        raise Problem(400, f"expected JSON in UTF-8, got a wrong byte at {error.start}") from error
    except RecursionError as error:
        raise Problem(400, "expected JSON of a few levels, got too many") from error
    except ValueError as error:
        raise Problem(400, f"expected JSON, got something else: {str(error)[:200]}") from error
    return kind.check(value, "body")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise ValueError(f"the member {name[:100]!r} is there twice")
        members[name] = value
    return members


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_number)
