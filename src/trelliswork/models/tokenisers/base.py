"""Base of all models that find the tokens of a text."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from trelliswork.errors import TrellisworkError
from trelliswork.models.base import Answer, Model, Report, Scores
from trelliswork.models.examined import Examined, Example
from trelliswork.text import Document, Token, tokenisation_scores


class TokeniserModel(Model):
    """A model that finds the sentences of a text and their tokens."""

    reads = "text"
    next_options = "--text"

    @abstractmethod
    def tokenise(self, text: str) -> list[list[Token]]:
        """Return the sentences of a text; a blank line always ends one."""

    def predict(
        self, inputs: str | Sequence[str], *, top_k: int = 1, pins: object = None, confidence: bool = True
    ) -> list[Answer]:
        """Return the tokens of each text, sentence by sentence; `confidence` adds nothing."""
        if top_k > 1 or pins is not None:
            raise TrellisworkError("a tokeniser gives its best tokens only; leave out top_k and pins")
        return [self._answer(text) for text in ([inputs] if isinstance(inputs, str) else inputs)]

    def _answer(self, text: str) -> Answer:
        sentences = self.tokenise(text)
        tokens = [token for sentence in sentences for token in sentence]
        value = [[token.text for token in sentence] for sentence in sentences]
        offsets = [(token.start, token.end) for token in tokens]
        return Answer(value, None, [each.text for each in tokens], offsets=offsets)

    def evaluate(self, gold: Sequence[Document]) -> Scores:
        """Return F1 of tokens, words and sentences."""
        scores = tokenisation_scores(self, gold)
        return {"metric": "tokens F1", "score": scores["tokens"] / 100, **scores}

    def report(self, gold: Sequence[Any], *, threshold: float | None = None) -> Report:
        """Report F1 of tokens, words and sentences, for people."""
        scores = self.evaluate(gold)
        parts = ("tokens", "words", "sentences")
        text = "\n".join(f"{f'F1 of {part}':<24}{scores[part]:6.2f}" for part in parts)
        examples = [example for document in gold for example in _examples(document, self.tokenise(document.text))]
        return Report(text, dict(scores), {"": Examined("F1 of tokens", "tokens", examples)})


def _examples(document: Document, predicted: Sequence[Sequence[Token]]) -> Iterator[Example]:
    """Yield each gold sentence as characters; a token that was predicted counts in the sentence in which it begins."""
    known = [sentence for sentence in document.sentences if sentence]
    starts = [sentence[0].start for sentence in known]
    of_sentence: list[list[Token]] = [[] for _ in known]
    for token in chain.from_iterable(predicted):
        of_sentence[max(bisect_right(starts, token.start) - 1, 0)].append(token)
    for start, gold, tokens in zip(starts, known, of_sentence, strict=True):
        ours, theirs = ([(token.start - start, token.end - start, "") for token in each] for each in (tokens, gold))
        yield Example(document.text[start : gold[-1].end], ours, theirs, joint="")
