"""`trelliswork predict` with a language model or word vectors: scores of text, continuations of it, nearest words."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from trelliswork.cli.answering import BATCH
from trelliswork.data.sentence import Sentence
from trelliswork.data.settings import settings_given
from trelliswork.errors import TrellisworkError
from trelliswork.lazy import named
from trelliswork.models.language.base import LanguageModel
from trelliswork.models.language.config import GenerationSettings
from trelliswork.models.language.corpus import STOP
from trelliswork.models.language.vectors import WordVectorModel, vector_lines
from trelliswork.reading import numbered_lines

if TYPE_CHECKING:
    from trelliswork.models.recipe import Options


def answer_lines(model: LanguageModel, file: str, options: Options) -> Iterator[str]:
    """Yield the lines to write: scores, samples or the most probable continuations.

    Args:
        model: The language model.
        file: The file, or - for standard input.
        options: Options of the command.

    Returns:
        An iterator over lines.
    """
    wanted = GenerationSettings(**settings_given(options, GenerationSettings))
    top_k, as_json, with_scores = options["top_k"], options["json"], options["confidence"]
    if wanted.score and (wanted.sample or wanted.beam or wanted.constraint):
        raise TrellisworkError("--score scores FILE, and --sample, --beam and --constraint write text; choose one")
    if wanted.sample and wanted.beam:
        raise TrellisworkError("--sample draws and --beam searches; choose one")
    if wanted.constraint is not None:
        answers = _constrained_texts(model, file, wanted, top_k)
    elif wanted.sample or wanted.beam:
        answers = _continuations(model, file, wanted, top_k)
    else:
        yield from _scores(model, file, as_json=as_json)
        return
    for units, log_prob, more in answers:
        text = model.format.join(units)
        if as_json:
            yield json.dumps({"text": text, "tokens": list(units), "log_prob": log_prob, **more}, ensure_ascii=False)
        else:
            yield f"{log_prob:.4f}\t{text}" if with_scores else text


def _scores(model: LanguageModel, file: str, *, as_json: bool) -> Iterator[str]:
    """Log probabilities, a token on each line and the sentence before them, or a record for each sentence."""
    sentences = model.format.sentences(file)
    while group := list(islice(sentences, BATCH)):
        every = [model.format.cut(each) for each in group]
        for units, logs in zip(every, model.log_probs(every), strict=True):
            scores, total = logs.tolist(), float(logs.sum())
            if as_json:
                record = {"tokens": list(units), "log_probs": scores, "log_prob": total}
                yield json.dumps(record, ensure_ascii=False)
            else:
                lines = [f"{unit}\t{score:.6f}" for unit, score in zip((*units, STOP), scores, strict=True)]
                yield "\n".join([f"# log_prob = {total:.6f}", *lines, ""])


Written = tuple[Sequence[str], float, dict[str, object]]


def _continuations(model: LanguageModel, file: str, wanted: GenerationSettings, top_k: int) -> Iterator[Written]:
    sampling = "trelliswork.models.language.sampling"
    for prefix in _prefixes(model, file):
        if wanted.sample:
            answers = named(f"{sampling}:samples")(model, prefix, wanted, top_k)
        else:
            answers = named(f"{sampling}:beam_search")(model, prefix, wanted.beam, wanted.longest)[: max(top_k, 1)]
        for each in answers:
            yield (*prefix, *each.units), each.log_prob, {"ended": each.ended}


def _prefixes(model: LanguageModel, file: str) -> list[Sequence[str]]:
    """Return the beginnings to go on from, one on each line; the empty one if there is none."""
    if file == "-" and sys.stdin.isatty():
        return [()]
    lines = [line.strip() for _, line in numbered_lines(file)]
    return [model.format.cut(Sentence(tuple(model.format.words(line)))) for line in lines] or [()]


def _constrained_texts(model: LanguageModel, file: str, wanted: GenerationSettings, top_k: int) -> Iterator[Written]:
    if not model.is_automaton:
        raise TrellisworkError(f"--constraint is for n-gram models, got a {type(model).__name__}")
    if file != "-" or top_k or wanted.nucleus != 1:
        raise TrellisworkError("--constraint is exact: FILE is - and is not read; leave out --nucleus and --top-k")
    constrained = named("trelliswork.models.language.constraint:Constrained")(model, wanted.constraint)
    if wanted.sample:
        matches = constrained.samples(wanted.sample, wanted.seed, wanted.temperature)
    else:
        matches = [constrained.best()]
    for units, log_prob, given in matches:
        yield units, log_prob, {"log_prob_given_constraint": given, "log_prob_of_constraint": constrained.log_prob}


# Word vectors.

NEAREST = 10  # words, without --top-k


def vector_answers(model: WordVectorModel, file: str, options: Options) -> Iterator[str]:
    """Yield the lines to write: the words that are nearest to each word, or the vector of each different word.

    Args:
        model: The word vectors.
        file: The file, or - for standard input.
        options: Options of the command.
    """
    wanted, default = GenerationSettings(**settings_given(options, GenerationSettings)), GenerationSettings()
    if wanted != default:
        changed = [name for name, value in wanted.to_dict().items() if value != getattr(default, name)]
        raise TrellisworkError(f"--{changed[0]} is for language models, and word vectors write no text; leave it out")
    words = (word for _, line in numbered_lines(file) for word in model.format.words(line))
    if options["vectors"]:
        if options["top_k"] or options["json"]:
            raise TrellisworkError("--vectors writes a word and its numbers on each line; leave out --top-k and jsonl")
        yield from _different_vectors(model, words)
        return
    k = options["top_k"] or NEAREST
    while group := list(islice(words, BATCH)):
        for word, near in zip(group, model.nearest(group, k), strict=True):
            if options["json"]:
                nearest = [{"word": other, "cosine": round(cosine, 6)} for other, cosine in near]
                yield json.dumps({"word": word, "nearest": nearest}, ensure_ascii=False)
            else:
                yield "\t".join([word, *(f"{other} {cosine:.3f}" for other, cosine in near)])


def _different_vectors(model: WordVectorModel, words: Iterator[str]) -> Iterator[str]:
    """Yield the lines of a file of vectors; a word of which nothing is known is left out."""
    seen: set[str] = set()
    while group := list(islice(words, BATCH)):
        new = [word for word in dict.fromkeys(group) if word not in seen]
        seen.update(new)
        matrix = model.vectors(new)
        known = np.any(matrix, axis=1).tolist()
        lines = vector_lines([word for word, has in zip(new, known, strict=True) if has], matrix[np.array(known, bool)])
        yield from (line.rstrip("\n") for line in lines)
