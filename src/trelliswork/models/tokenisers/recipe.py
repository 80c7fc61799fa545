"""`trelliswork train --model tokeniser`, and the tokenisers that other models learn from their own training file."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from trelliswork.data.settings import options_of, settings_given
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.logs import count
from trelliswork.models.recipe import LearningResult, Material, Note, Options, Recipe, RunOptions
from trelliswork.models.taggers.features.learners.base import Progress as Step
from trelliswork.models.tokenisers.base import TokeniserModel
from trelliswork.models.tokenisers.config import TokeniserConfig
from trelliswork.models.tokenisers.learned_rules import NO_MULTIWORD, LearnedRules, MultiwordTable
from trelliswork.models.tokenisers.tokeniser import DEFAULTS, CharacterTokeniser
from trelliswork.text import Document, read_documents
from trelliswork.text.spacing import is_unspaced, plausible_text
from trelliswork.training.interrupts import Interrupts

UNSPACED_MOST = 120_000  # characters of Chinese, Thai and the like that a tokeniser is learned from, in seconds
UNSPACED_ITERATIONS = 40
HELD_OUT = 10  # one document, or sentence, in this many is held out when there is no dev file
FOR_TAGGERS = {
    "resume": None, "tensorboard": None, "seeds": 1, "predict_columns": False, "min_tag_count": 1, "detail": None,
}  # fmt: skip


class TokeniserRecipe(Recipe):
    """Learned in one go: there is nothing to resume."""

    steps, unpruned_steps = "iterations", 30

    def __init__(self, options: Options) -> None:
        self.options = options
        for option, default in FOR_TAGGERS.items():
            if options.get(option) not in (None, False, default):
                raise TrellisworkError(
                    f"--{option.replace('_', '-')} is for taggers, and a tokeniser is trained in one go: leave it out"
                )
        if options.get("tokeniser") not in (None, "auto"):
            raise TrellisworkError("--tokeniser is for models that read words: leave it out to train a tokeniser")
        self.own = TokeniserConfig(**settings_given(options, TokeniserConfig))
        self.config = self.own.learning(options.get("seed", 0))

    def settings(self) -> dict[str, object]:
        return options_of(self.own)

    def search_values(self) -> dict[str, object]:
        return self.own.to_dict()

    def read_files(self) -> None:
        """Return None: there are no further files."""

    def begin(self, material: Material, note: Note) -> None:
        self.material = material
        note(f"tokeniser: {sum(len(each.text) for each in self.documents):,} characters to learn from")

    @property
    def documents(self) -> Sequence[Document]:
        return self.material.train  # type: ignore[return-value]

    def learn(self, run: RunOptions) -> tuple[CharacterTokeniser, LearningResult]:
        result, began = LearningResult(), time.perf_counter()
        with run.progress, Interrupts(wait=True) as interrupts:

            def seen(step: Step) -> bool:
                most = self.config.max_iterations
                run.progress.iteration(step.iteration, step.line(), most=most, loss=step.loss)
                result.best_epoch, result.seconds = step.iteration, time.perf_counter() - began
                return interrupts.pending

            tokeniser = CharacterTokeniser.fit(self.documents, self.config, on_progress=seen)
            tokeniser.metrics["data"] = dict(self.material.about)
            tokeniser.metrics["training"] = {"iterations": result.best_epoch, "seconds": round(result.seconds, 1)}
            tokeniser.metrics["dev"] = scores = tokeniser.evaluate(self.material.dev)  # type: ignore[arg-type]
            if run.folder is not None:
                tokeniser.save(run.folder)
        result.best_score, result.metric = scores["score"], scores["metric"]
        result.size, result.interrupted = f"{tokeniser.n_parameters:,} weights", interrupts.pending
        return tokeniser, result


def spaced_documents(path: str) -> list[Document] | None:
    """Return the documents of a CoNLL-U file that says where words touch; None if it says nothing of that."""
    documents = read_documents(path)
    for document in documents:
        for sentence in document.sentences:
            if any(first.end == second.start for first, second in pairwise(sentence)):
                return documents
    return None


def hold_out(documents: list[Document], file: str) -> tuple[list[Document], list[Document]]:
    """Split off the last tenth of the documents, or of the sentences if there are few documents."""
    if len(documents) >= HELD_OUT:
        n = len(documents) // HELD_OUT
        return documents[:-n], documents[-n:]
    last = documents[-1]
    n_dev = max(1, len(last.sentences) // HELD_OUT)
    if len(last.sentences) <= n_dev:
        raise DataError(file, "expected at least 2 sentences to hold one out; add sentences or name a --dev file")
    cut = last.sentences[-n_dev][0].start
    held_out = tuple(
        tuple(replace(token, start=token.start - cut, end=token.end - cut) for token in sentence)
        for sentence in last.sentences[-n_dev:]
    )
    first = Document(last.text[:cut], last.sentences[:-n_dev])
    return [*documents[:-1], first], [Document(last.text[cut:], held_out)]


def learn_tokeniser(train: str, dev: str | None, note: Note, seed: int = 0) -> TokeniserModel:
    """Learn the tokeniser of a CoNLL-U file, for the model learned from it; from tokens alone without white space.

    Args:
        train: File of the training data.
        dev: File of the validation data; None for none.
        note: Called with sentences that are worth telling.
        seed: Seed of the run.

    Returns:
        The tokeniser.
    """
    documents = spaced_documents(train)
    if documents is None:
        tokens = [sentence for document in read_documents(train) for sentence in document.sentences]
        table = MultiwordTable.of(token for sentence in tokens for token in sentence)
        return learn_from_tokens([[token.text for token in sentence] for sentence in tokens], note, seed, table)
    n_characters = sum(len(each.text) for each in documents)
    note(f"tokeniser: learning from {n_characters:,} characters, to be kept with the model; --tokeniser rules skips it")
    began = time.perf_counter()
    tokeniser = CharacterTokeniser.fit(documents, replace(DEFAULTS, seed=seed))
    seconds = time.perf_counter() - began
    note(f"tokeniser: learned from {count(len(documents), 'document')} in {seconds:.1f} s{_on_dev(tokeniser, dev)}")
    tokeniser.metrics["training"] = {"seconds": round(seconds, 1)}
    return tokeniser


def learn_from_tokens(
    sentences: Sequence[Sequence[str]], note: Note, seed: int = 0, multiword: MultiwordTable = NO_MULTIWORD
) -> TokeniserModel:
    """Learn a tokeniser that cuts as these sentences are cut, whose text is not known.

    Args:
        sentences: Tokens of each sentence.
        note: Called with sentences that are worth telling.
        seed: Seed of the training.
        multiword: Words that one token stands for.

    Returns:
        The tokeniser.
    """
    began = time.perf_counter()
    if is_unspaced(sentences):
        config = replace(DEFAULTS, max_iterations=UNSPACED_ITERATIONS, seed=seed)
        tokeniser: TokeniserModel = CharacterTokeniser.fit([plausible_text(sentences, most=UNSPACED_MOST)], config)
    else:
        tokeniser = LearnedRules.fit(sentences, multiword)
    seconds = time.perf_counter() - began
    tokens = count(sum(map(len, sentences)), "token")
    note(f"tokeniser: learned from {tokens} how the file cuts text ({seconds:.1f} s); --tokeniser rules skips it")
    tokeniser.metrics["training"] = {"seconds": round(seconds, 1)}
    return tokeniser


def _on_dev(tokeniser: CharacterTokeniser, dev: str | None) -> str:
    documents = None if dev is None else spaced_documents(dev)
    if documents is None:
        return ""
    tokeniser.metrics["dev"] = scores = tokeniser.evaluate(documents)
    return (
        f"; dev F1 of tokens {scores['tokens']:.2f}, words {scores['words']:.2f}, sentences {scores['sentences']:.2f}"
    )
