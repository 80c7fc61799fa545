"""Results of `evaluate` in words, as JSON and as a page: scores, mistakes, and whether another model is better."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from itertools import islice
from typing import Any, NamedTuple

from trelliswork.cli.report.page import (
    MOST_ROWS,
    by_label,
    confusions,
    heading,
    percentages,
    scrolling,
    section,
    sentences,
    table,
    trust,
    whole_page,
)
from trelliswork.data import Sentence
from trelliswork.data.choices import CONLLU_NAMES
from trelliswork.data.raw_sentences import sentence_of_tokens
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.logs import count
from trelliswork.metrics import Difference, Score, paired_bootstrap
from trelliswork.metrics.attachment import ROOT, TextWord, word_scores
from trelliswork.models.base import HEAD, Answer, Model, Report
from trelliswork.models.examined import Examined, Example, Part
from trelliswork.models.votes import isolated
from trelliswork.text import Document, RuleTokeniser, Token, Tokeniser, read_documents, tokenisation_scores
from trelliswork.text.scores import visible_before

WORST, DIFFERENT = 20, 10  # sentences that are shown


def evaluation_page(
    evaluated: EvaluatedModel, file: str, sizes: str, both: Sequence[Comparison] = (), other: str = ""
) -> str:
    """Return a whole HTML page that needs nothing but itself; `both` is the comparison with another model.

    Args:
        evaluated: The model with its scores.
        file: Name of the file of gold answers.
        sizes: Size of the file, in words.
        both: Comparison with another model; empty for none.
        other: Name of the other model.

    Returns:
        The page.
    """
    title = f"{evaluated.name} on {file}"
    report = f"<pre>{escape(_without_labels(evaluated.report))}</pre>\n"
    sections = [heading(title, sizes), section("Scores", "In per cent.", report)]
    sections += [_difference(each, evaluated.name, other) for each in both]
    for task, examined in evaluated.report.examined.items():
        sections += [f"<h2>Task: {escape(task)}</h2>\n"] if task else []
        sections += _sections_of(examined, evaluated.knows)
    sections += [_where_better(each) for each in both]
    return whole_page(title, sections)


def _without_labels(report: Report) -> str:
    """Return the text of a report without the lines of labels that have a table of their own on the page."""
    labels = {label for each in report.examined.values() for label in _scores_by_label(each)}
    return "\n".join(line for line in report.text.splitlines() if _label_of(line) not in labels)


def _label_of(line: str) -> str | None:
    """Return the label of a row of scores, which is all numbers behind it.

    >>> _label_of("B-PER   93.75  100.00   96.77   15"), _label_of("F1 of spans, strict   73.68")
    ('B-PER', None)
    """
    row = re.fullmatch(r"\s*(\S.*?)((?:\s+[\d.,]+)+)", line)
    return None if row is None else row[1]


def _scores_by_label(examined: Examined) -> dict[str, Score]:
    """Return the scores by label that a page shows; one label alone has those of all."""
    labels = dict(islice(examined.by_label().items(), MOST_ROWS))
    return labels if len(labels) > 1 else {}


def _sections_of(examined: Examined, knows: Callable[[str], bool | None]) -> Iterator[str]:
    calibration = examined.calibration()
    yield by_label(examined.by_label(), examined.parts) if _scores_by_label(examined) else ""
    yield confusions(examined.confusion) if examined.confusion is not None else ""
    yield _by_word(examined, knows) if examined.confusion is not None else ""
    yield trust(calibration, examined.parts) if calibration is not None else ""
    intro = "The sentences with the most mistakes, the shortest of them first."
    yield sentences("Worst sentences", intro, examined.worst(WORST), right=examined.parts == "spans")


def _by_word(examined: Examined, knows: Callable[[str], bool | None]) -> str:
    """Scores of what is made of known words, and of the rest."""
    words = {word for example in examined.examples for word in example.words}
    known = {word for word in words if knows(word)}
    title = "Known and unknown words"
    if not known and all(knows(word) is None for word in words):
        return section(title, "This model does not say which words it knows.")

    def all_known(example: Example, part: Part) -> bool:
        return all(word in known for word in example.words[part[0] : part[1]])

    chosen = {
        "all words known": all_known,
        "with an unknown word": lambda example, part: not all_known(example, part),
    }
    restricted = {name: examined.restricted(wanted) for name, wanted in chosen.items()}
    rows = [[name, *percentages(each), f"{each.gold:,}", f"{each.predicted:,}"] for name, each in restricted.items()]
    n_tokens = sum(len(example.words) for example in examined.examples)
    n_unknown = sum(word not in known for example in examined.examples for word in example.words)
    intro = f"{n_unknown:,} of {n_tokens:,} tokens are words that the model has learned nothing about as such."
    header = [examined.parts, "precision %", "recall %", "F1 %", "gold", "predicted"]
    return section(title, intro, table(header, rows))


def _difference(each: Comparison, first: str, second: str) -> str:
    difference = each.difference
    row = [
        each.first.metric, *(f"{100 * value:.2f}" for value in (difference.first, difference.second)),
        f"{100 * difference.difference:+.2f}", f"{100 * difference.low:+.2f} to {100 * difference.high:+.2f}",
        f"{difference.p_value:.4f}",
    ]  # fmt: skip
    intro = (
        f"A is <code>{escape(first)}</code>, B is <code>{escape(second)}</code>. {escape(verdict(each))}: test sets "
        "drawn from the sentences of this one, with replacement, give the interval and p, the probability of such a "
        "difference if there were none."
    )
    title = f"Two models: {each.task}" if each.task else "Two models"
    return section(title, intro, table(["", "A %", "B %", "A - B", "95% interval", "p"], [row]))


def _where_better(each: Comparison) -> str:
    """Return sentences in which one model has fewer mistakes, as the other has them."""
    difference, task = each.difference, f" (task {each.task})" if each.task else ""
    pairs = list(zip(each.first.examples, each.second.examples, strict=True))
    turned = [(b, a) for a, b in pairs]
    content = [
        ("A", difference.n_better, "What B makes of them.", _worse(turned)),
        ("B", difference.n_worse, "What A makes of them.", _worse(pairs)),
    ]
    right = each.first.parts == "spans"
    return "".join(
        sentences(f"Where {name} is better{task}: {count(n, 'sentence')}", intro, chosen, right=right)
        for name, n, intro, chosen in content
    )


def _worse(pairs: Sequence[tuple[Example, Example]]) -> list[Example]:
    """Return the sentences in which the first has more mistakes than the second, those with most more of them first."""
    chosen = [(mine, other) for mine, other in pairs if mine.n_errors > other.n_errors]
    chosen.sort(key=lambda pair: (pair[1].n_errors - pair[0].n_errors, len(pair[0].words)))
    return [mine for mine, _ in chosen[:DIFFERENT]]


# The page of `explain --html`: what speaks for the answers of a model, or what else they may be.


def explanation_page(explanations: Sequence[Any], model: str, file: str) -> str:
    """Return an HTML page that needs no other file, with a section for each sentence (see `Model.explain`).

    Args:
        explanations: What the model gives, one for each sentence.
        model: Name of the model.
        file: Name of the file.

    Returns:
        The page.
    """
    kind = explanations[0]
    title = f"{kind.title} of {model} on {file}"
    sections = [
        section(f"Sentence {i}", isolated(" ".join(each.words)), scrolling(each._repr_html_()))
        for i, each in enumerate(explanations, 1)
    ]
    return whole_page(title, [heading(title, kind.lead), kind.legend, *sections])


# The results of `evaluate` in words and as JSON: two models compared, and models that read raw text.

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class EvaluatedModel:
    """A model, the report on its answers, and whether it knows a word."""

    name: str
    report: Report
    knows: Callable[[str], bool | None]


@dataclass(frozen=True)
class Comparison:
    """Two models on one task."""

    task: str
    first: Examined
    second: Examined
    difference: Difference


def compare_models(first: EvaluatedModel, second: EvaluatedModel) -> list[Comparison]:
    """Return the tasks that both models have; models that cannot be compared are an error."""
    comparisons = []
    for task, ours in first.report.examined.items():
        theirs = second.report.examined.get(task)
        if theirs is None or theirs.metric != ours.metric:
            has = "nothing" if theirs is None else theirs.metric
            problem = f"--against: expected {ours.metric} from both models, got {has} from {second.name}"
            raise TrellisworkError(f"{problem}; compare models that were trained on the same tags")
        same = [a.words == b.words for a, b in zip(ours.examples, theirs.examples, strict=False)]
        if len(ours.examples) != len(theirs.examples) or not all(same):
            raise TrellisworkError(
                f"--against: {second.name} reads other words from the file than {first.name}; name the columns"
            )
        comparisons.append(Comparison(task, ours, theirs, paired_bootstrap(ours.scores, theirs.scores)))
    if not comparisons:
        raise TrellisworkError(f"--against: {first.name} is a model whose answers have no parts to compare")
    return comparisons


def comparison_text(both: list[Comparison], first: str, second: str) -> str:
    """Return the difference in words, and whether it is significant.

    Args:
        both: Differences, one for each task.
        first: Name of the one model.
        second: Name of the other.

    Returns:
        Lines of text.
    """
    lines = [f"A: {first}\nB: {second}", ""]
    lines.append(f"{'':24}     A       B    A - B   95% interval          p")
    for each in both:
        difference = each.difference
        name = f"{each.task}: {each.first.metric}" if each.task else each.first.metric
        ratios = f"{100 * difference.first:6.2f}  {100 * difference.second:6.2f}  {100 * difference.difference:+7.2f}"
        interval = f"{100 * difference.low:+6.2f} .. {100 * difference.high:+6.2f}"
        lines.append(f"{name:24}{ratios}   {interval}   {difference.p_value:.4f}")
    lines.append("")
    return "\n".join([*lines, *(verdict(each) for each in both)])


def verdict(each: Comparison) -> str:
    """Say in one sentence which model is better, if the test is significant."""
    difference, task = each.difference, f"{each.task}: " if each.task else ""
    fewer = f"A has fewer mistakes in {count(difference.n_better, 'sentence')}, B in {difference.n_worse:,}"
    sizes = f"{fewer}, of {difference.n:,}"
    if difference.p_value >= SIGNIFICANT:
        return f"{task}{sizes}; the difference is not significant (paired bootstrap)"
    better = "A" if difference.difference > 0 else "B"
    return f"{task}{sizes}; {better} is better, and the difference is significant (paired bootstrap)"


def comparison_record(both: list[Comparison], name: str) -> dict[str, object]:
    """Return the same for JSON."""
    records = {each.task: {"metric": each.first.metric, **asdict(each.difference)} for each in both}
    return {"model": name, **(records[""] if list(records) == [""] else {"tasks": records})}


# `evaluate --from-text`: a model on the raw text of a CoNLL-U file, whose words it has to find as well.

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


def report_from_text(model: Model, files: Sequence[str], gold: Sequence[Sentence], tag_column: int) -> Report:
    """Score tokens, sentences and words, and columns and arcs of words; `gold` are the sentences of the files.

    Args:
        model: The model, which finds words by its own tokeniser.
        files: Names of the files.
        gold: Their sentences.
        tag_column: Column of the tags.

    Returns:
        The report.
    """
    read = [(file, document) for file in files for document in read_documents(file)]
    documents = [document for _, document in read]
    tokeniser = _CachedTokeniser(model.tokeniser or RuleTokeniser(), documents)
    scores = {name: share / 100 for name, share in tokenisation_scores(tokeniser, documents).items()}
    counts: dict[str, Score] = {}
    names: list[str] = []
    rest = iter(gold)
    for file, document in read:
        raw = [sentence_of_tokens(document.text, tokens) for tokens in tokeniser.tokenise(document.text) if tokens]
        analysed = [
            _predicted_words(each, answer, tag_column) for each, answer in zip(raw, model.predict(raw), strict=True)
        ]
        known = [_gold_words(tokens, document.text, rest, tag_column, file) for tokens in document.sentences if tokens]
        before = visible_before(document.text)
        names = names or [name for name in analysed[0].columns if all(name in each.columns for each in known)]
        for name, score in word_scores(list(_words(known, before)), list(_words(analysed, before)), names).items():
            counts[name] = _sum_of(counts.get(name, Score(0, 0, 0)), score)
    shown = ["tokens", "sentences", "words", *names, *(ARCS if analysed[0].arcs else ())]
    scores |= {name: counts[name].f1 for name in shown if name in counts}
    lines = ["F1 on raw text"] + [
        f"{name:<24}{100 * scores[name]:6.2f}   {ABOUT.get(name, '')}".rstrip() for name in shown
    ]
    last = "LAS" if analysed[0].arcs else names[-1] if names else "words"
    return Report("\n".join(lines), {"metric": f"{last} F1", "score": scores[last], **{n: scores[n] for n in shown}})


class _CachedTokeniser:
    """Tokeniser that remembers the tokens of some texts."""

    def __init__(self, tokeniser: Tokeniser, documents: Sequence[Document]) -> None:
        self._found = {each.text: tokeniser.tokenise(each.text) for each in documents}

    def tokenise(self, text: str) -> list[list[Token]]:
        sentences: list[list[Token]] = self._found[text]
        return sentences


def _predicted_words(sentence: Sentence, answer: Answer, tag_column: int) -> Analysed:
    lemmas = {"LEMMA": answer.lemmas} if answer.lemmas else {}
    if not answer.columns:
        return Analysed(sentence, {**lemmas, CONLLU_NAMES[tag_column - 1]: answer.value})
    others = {name: values for name, values in answer.columns.items() if name not in (HEAD, "DEPREL")}
    return Analysed(sentence, {**lemmas, **others}, answer.value if answer.has_arcs else ())


def _gold_words(tokens: Sequence[Token], text: str, gold: Iterator[Sentence], tag_column: int, file: str) -> Analysed:
    """Return a sentence of a text with what the file says of it."""
    sentence, known = sentence_of_tokens(text, tokens), next(gold, None)
    if known is None or len(known) != len(sentence):
        raise DataError(file, "expected the same words in its text and in its sentences; fix its multi-word tokens")
    if known.heads is None:
        return Analysed(sentence, {**known.columns, CONLLU_NAMES[tag_column - 1]: known.tags or ()})
    return Analysed(sentence, known.columns, list(zip(known.heads, known.tags or (), strict=True)))


def _words(sentences: Sequence[Analysed], before: Sequence[int]) -> Iterator[TextWord]:
    """Yield the words of a text one after another, their places counted in visible characters."""
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


def _sum_of(first: Score, second: Score) -> Score:
    return Score(first.correct + second.correct, first.predicted + second.predicted, first.gold + second.gold)
