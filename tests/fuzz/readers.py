"""Every reader of files, and what a right kind of answer is."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.harness import HERE, Target
from tests.fuzz.mutations import mutated
from trelliswork.cli.config_file import MODEL_NAME, read_config, values_in
from trelliswork.cli.gold_files import open_events
from trelliswork.cli.model_help import known_model
from trelliswork.cli.tune_folder import read_space
from trelliswork.data import Choices, Sentence, read_pairs, read_treebank, read_vectors
from trelliswork.data.attributes.templates import Templates
from trelliswork.data.crfsuite import read_crfsuite_model
from trelliswork.data.readers import open_tagged, open_untagged
from trelliswork.errors import DataError
from trelliswork.fst import read_acceptor, read_arpa, read_symbols, read_transducer
from trelliswork.structures.grammar.grammar import Grammar
from trelliswork.text import RuleTokeniser, read_documents, read_text

CORPUS = HERE / "corpus"


def seeds(name: str) -> tuple[bytes, ...]:
    return tuple(path.read_bytes() for path in sorted(CORPUS.glob(f"{name}.*")))


def are_sentences(found: Iterable[Sentence], *, tags: bool = False) -> None:
    """Words of text, and as many tags, heads and features as words."""
    for sentence in found:
        n = len(sentence.words)
        assert n and all(isinstance(word, str) and word for word in sentence.words), "empty words"
        assert sentence.tags is not None or not tags, "no tags"
        for column in (sentence.tags, sentence.heads, *sentence.features):
            assert column is None or len(column) == n, "another number of tags or heads than of words"
        if sentence.heads is not None:
            assert all(0 <= head <= n for head in sentence.heads), "heads outside the sentence"


def tagged(kind: Any, path: Path) -> None:
    choices = Choices(tokeniser=RuleTokeniser())
    are_sentences(open_tagged(str(path), choices, kind)[1], tags=True)
    are_sentences(open_untagged(str(path), kind, choices)[1])


def brackets(path: Path) -> None:
    are_sentences(open_tagged(str(path), Choices(), "brackets")[1])


def treebank(path: Path) -> None:
    are_sentences(read_treebank(path)[1], tags=True)


def events(path: Path) -> None:
    are_sentences(open_events(str(path), Choices(), "jsonl")[1])


def pairs(path: Path) -> None:
    for pair in read_pairs(path):
        assert pair.words and pair.target is not None


def texts(path: Path) -> None:
    whole = path.read_bytes().decode("utf-8", "replace").removeprefix("\ufeff")
    for sentence in read_text(path, RuleTokeniser()):
        for word, (start, end) in zip(sentence.words, sentence.offsets or (), strict=True):
            assert whole[start:end] == word, "offsets of other words"


def crfsuite_model(path: Path) -> None:
    model = read_crfsuite_model(path)
    assert all(isinstance(label, str) for label in model.labels)


def vectors(path: Path) -> None:
    found = read_vectors(path)
    assert found.matrix.shape == (len(found.words), found.dim) and np.isfinite(found.matrix).all()


def arpa(path: Path) -> None:
    assert not math.isnan(read_arpa(path).log_prob("b", ["a"]))


def machines(path: Path) -> None:
    read_transducer(path, "abc", "abc")
    with contextlib.suppress(DataError):
        read_acceptor(path, "abc")


def templates(path: Path) -> None:
    found = Templates.read(path)
    found.check(2)


def settings(path: Path) -> None:
    model = known_model(str(values_in(str(path)).get(MODEL_NAME, "crf")))
    found = read_config(str(path), model)
    assert isinstance(found["model"], str)


def space(path: Path) -> None:
    read_space(str(path), "bilstm-crf")


def grammar(path: Path) -> None:
    found = Grammar.from_rules(path.read_bytes().decode("utf-8", "replace"))
    assert found.n_rules >= 0


FILES: dict[str, Callable[[Path], Any]] = {
    "conll": partial(tagged, "conll"),
    "csv": partial(tagged, "csv"),
    "jsonl": partial(tagged, "jsonl"),
    "json": partial(tagged, "jsonl"),
    "crfsuite": partial(tagged, "crfsuite"),
    "brackets": brackets,
    "conllu": treebank,
    "pairs": pairs,
    "text": texts,
    "events": events,
    "documents": events,
    "crfsuite-model": crfsuite_model,
    "vectors": vectors,
    "arpa": arpa,
    "att": machines,
    "symbols": read_symbols,
    "template": templates,
    "toml": settings,
    "space": space,
    "grammar": grammar,
}
JSON = ("json", "jsonl", "events", "documents")


def file_targets(folder: Path) -> list[Target]:
    """A target for each reader; inputs are written to a file in `folder`."""

    def asking(name: str, read: Callable[[Path], Any]) -> Callable[[bytes], Any]:
        path = folder / f"input.{name}"

        def ask(content: bytes) -> Any:
            path.write_bytes(content)
            return read(path)

        return ask

    found = [
        Target(name, seeds(name), asking(name, read), partial(mutated, as_json=name in JSON))
        for name, read in FILES.items()
    ]
    spoken = asking("spoken", read_documents)  # CoNLL-U as raw text whose tokens are known
    return [*found, Target("conllu-text", seeds("conllu"), spoken, mutated)]
