"""`evaluate --from-text`: a model on the raw text of a CoNLL-U file, whose words it has to find as well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from trelliswork.data import Sentence
from trelliswork.data.choices import CONLLU_NAMES
from trelliswork.data.raw_sentences import sentence_of_tokens
from trelliswork.errors import DataError
from trelliswork.metrics import Score
from trelliswork.metrics.aligned_words import ROOT, TextWord, word_scores
from trelliswork.models.base import HEAD, Answer, Report
from trelliswork.text import Document, RuleTokeniser, Token, read_documents, tokenisation_scores
from trelliswork.text.scores import visible_before

ARCS = ("UAS", "LAS", "LAS, no subtypes", "CLAS")
ABOUT = {
    "words": "aligned as in the CoNLL 2018 shared task", "UAS": "words with the right head",
    "LAS": "with the right label too", "LAS, no subtypes": "as in the shared task",
    "CLAS": "content words, no subtypes",
}  # fmt: skip


class Analysed(NamedTuple):
    """A sentence with what is known or found of its words: columns, and arcs if there are any."""

    sentence: Sentence
    columns: Mapping[str, Sequence[str]]
    arcs: Sequence[tuple[int, str]] = ()


def report_from_text(model: Any, files: Sequence[str], gold: Sequence[Sentence], tag_column: int) -> Report:
    """F1 of tokens, sentences and words, and of columns and arcs of words; `gold` are the sentences of the files."""
    read = [(file, document) for file in files for document in read_documents(file)]
    documents = [document for _, document in read]
    tokeniser = _Known(model.tokeniser or RuleTokeniser(), documents)
    scores = {name: share / 100 for name, share in tokenisation_scores(tokeniser, documents).items()}
    counts: dict[str, Score] = {}
    names: list[str] = []
    rest = iter(gold)
    for file, document in read:
        raw = [sentence_of_tokens(document.text, tokens) for tokens in tokeniser.tokenise(document.text) if tokens]
        found = [_answered(each, answer, tag_column) for each, answer in zip(raw, model.predict(raw), strict=True)]
        known = [_known(tokens, document.text, rest, tag_column, file) for tokens in document.sentences if tokens]
        before = visible_before(document.text)
        names = names or [name for name in found[0].columns if all(name in each.columns for each in known)]
        for name, score in word_scores(list(_words(known, before)), list(_words(found, before)), names).items():
            counts[name] = _added(counts.get(name, Score(0, 0, 0)), score)
    shown = ["tokens", "sentences", "words", *names, *(ARCS if found[0].arcs else ())]
    scores |= {name: counts[name].f1 for name in shown if name in counts}
    lines = ["F1 on raw text"] + [
        f"{name:<24}{100 * scores[name]:6.2f}   {ABOUT.get(name, '')}".rstrip() for name in shown
    ]
    last = "LAS" if found[0].arcs else names[-1] if names else "words"
    return Report("\n".join(lines), {"metric": f"{last} F1", "score": scores[last], **{n: scores[n] for n in shown}})


class _Known:
    """What a tokeniser finds in some texts, worked out once."""

    def __init__(self, tokeniser: Any, documents: Sequence[Document]) -> None:
        self._found = {each.text: tokeniser.tokenise(each.text) for each in documents}

    def tokenise(self, text: str) -> list[list[Token]]:
        found: list[list[Token]] = self._found[text]
        return found


def _answered(sentence: Sentence, answer: Answer, tag_column: int) -> Analysed:
    lemmas = {"LEMMA": answer.lemmas} if answer.lemmas else {}
    if not answer.columns:
        return Analysed(sentence, {**lemmas, CONLLU_NAMES[tag_column - 1]: answer.value})
    others = {name: values for name, values in answer.columns.items() if name not in (HEAD, "DEPREL")}
    return Analysed(sentence, {**lemmas, **others}, answer.value if answer.has_arcs else ())


def _known(tokens: Sequence[Token], text: str, gold: Iterator[Sentence], tag_column: int, file: str) -> Analysed:
    """A sentence of a text with what the file says of it."""
    sentence, known = sentence_of_tokens(text, tokens), next(gold, None)
    if known is None or len(known) != len(sentence):
        raise DataError(file, "expected the same words in its text and in its sentences; fix its multi-word tokens")
    if known.heads is None:
        return Analysed(sentence, {**known.columns, CONLLU_NAMES[tag_column - 1]: known.tags or ()})
    return Analysed(sentence, known.columns, list(zip(known.heads, known.tags or (), strict=True)))


def _words(sentences: Sequence[Analysed], before: Sequence[int]) -> Iterator[TextWord]:
    """The words of a text one after another, their places counted in visible characters."""
    n_before = 0
    for sentence, columns, arcs in sentences:
        places, multiword = list(sentence.offsets), set()
        for first, last, _ in sentence.multiword:
            places[first:last] = [(places[first][0], places[last - 1][1])] * (last - first)
            multiword |= set(range(first, last))
        for i, (start, end) in enumerate(places):
            head, label = arcs[i] if arcs else (0, "")
            yield TextWord(
                before[start], before[end], sentence.words[i], i in multiword, n_before + head - 1 if head else ROOT,
                label, {name: values[i] for name, values in columns.items()},
            )  # fmt: skip
        n_before += len(sentence)


def _added(first: Score, second: Score) -> Score:
    return Score(first.correct + second.correct, first.predicted + second.predicted, first.gold + second.gold)
