"""Models of several tasks: which columns they learn, and the tagger and the sentences of each task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from trelliswork.data import Choices, ColumnFormat, CsvFormat, Sentence
from trelliswork.data.attributes import FeatureFunction
from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.models import SentenceTagger, load
from trelliswork.models.base import Model

MULTI_TASK = "multi-task"
_CONLLU = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")


class Part(NamedTuple):
    """One task of a model, with the sentences that have its tags; without a name if there is no other."""

    name: str
    tagger: SentenceTagger
    sentences: list[Sentence]

    @property
    def heading(self) -> str:
        """What goes before an answer about this task."""
        return f"{self.name}:\n" if self.name else ""


def parts_of(model: Model, sentences: Sequence[Sentence]) -> list[Part]:
    """Each task with its tagger and its own tags of the sentences."""
    gold = model.gold_by_head(sentences)
    return [Part(name, head, gold[name]) for name, head in model.heads.items()]


def load_reader(folder: str, features: FeatureFunction | None) -> Any:
    """The model in a folder, unless it reads something else than words, which no file of sentences has."""
    model = load(folder, features=features)
    if model.reads not in ("words", "attributes"):
        kind = type(model).__name__
        raise ModelError(
            f"{folder}: expected a model that reads words, got one that reads {model.reads}; "
            f'use it from Python: {kind}.load("{folder}").predict(sequences)'
        )
    return model


def words_alone(choices: Choices) -> Choices:
    """The same layout without the columns beside the words."""
    return replace(choices, feature_columns=(), feature_names=None)


def bare(sentence: Sentence) -> Sentence:
    """The words alone, with what else a record of JSON says."""
    return replace(sentence, tags=None, features=())


def chosen_columns(options: Mapping[str, Any]) -> dict[str, Any]:
    """The columns to read for --tag-columns: the last as tags, the others before them as further columns."""
    columns = options.get("tag_columns")
    is_multi = options["model"] == MULTI_TASK
    for name in ("tag_columns", "tasks"):
        if options.get(name) is not None and not is_multi:
            option = "--" + name.replace("_", "-")
            raise TrellisworkError(f"{option} needs --model {MULTI_TASK}, got --model {options['model']}; add it")
    if is_multi and options["scheme"] is not None:
        raise TrellisworkError(f"--scheme is for one column of tags, --model {MULTI_TASK} infers each; leave it out")
    if columns is None:
        return {}
    if options["tag_column"] is not None or options["feature_columns"] is not None:
        raise TrellisworkError("--tag-columns names all columns of tags; leave out --tag-column and --feature-columns")
    if len(columns) < 2 or len(set(columns)) < len(columns):
        shown = ",".join(map(str, columns))
        raise TrellisworkError(f"--tag-columns must be two different columns or more, such as 2,3; got {shown}")
    return {"tag_column": columns[-1], "feature_columns": columns[:-1]}


def task_names(given: str | None, format: ColumnFormat | None, sentences: Sequence[Sentence]) -> tuple[str, ...]:
    """The names of the tasks: as given, else those of the columns.

    >>> task_names("pos,chunk", None, [Sentence(("Ann",), ("B-NP",), (("NNP",),))])
    ('pos', 'chunk')
    """
    n = len(sentences[0].features) + 1
    if n < 2:
        raise TrellisworkError(
            f"--model {MULTI_TASK} needs two columns of tags or more, got one; name them with --tag-columns, or "
            "train another model"
        )
    if given is None:
        return _names_of_columns(format, n)
    names = tuple(name.strip() for name in given.split(","))
    if len(names) != n or len(set(names)) < n or not all(names):
        raise TrellisworkError(f"--tasks must be {n} different names, one for each column of tags; got {given!r}")
    return names


def _names_of_columns(format: ColumnFormat | None, n: int) -> tuple[str, ...]:
    if format is None or format.tag_column is None:
        return (*(f"features-{i}" for i in range(1, n)), "tags")
    columns = (*format.feature_columns, format.tag_column)
    if isinstance(format, CsvFormat):
        return tuple(format.names[i - 1] for i in columns)
    return tuple(_CONLLU[i - 1] if format.conllu else f"column-{i}" for i in columns)
