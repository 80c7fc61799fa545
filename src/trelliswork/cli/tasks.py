"""Models of several tasks: which columns they learn from, and what they read of a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trelliswork.cli.messages import say
from trelliswork.data import Choices, Sentence
from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.models import load
from trelliswork.models.loading import place
from trelliswork.models.taggers.networks.tasks import MULTI_TASK

if TYPE_CHECKING:
    from trelliswork.data.attributes import FeatureFunction


def load_reader(folder: str, features: FeatureFunction | None, device: str = "auto") -> Any:
    """The model in a folder, unless it reads something else than words, which no file of sentences has."""
    model = load_on(folder, features, device)
    if model.reads not in ("words", "attributes", "text"):
        kind = type(model).__name__
        raise ModelError(
            f"{folder}: expected a model that reads words, got one that reads {model.reads}; "
            f'use it from Python: {kind}.load("{folder}").predict(sequences)'
        )
    return model


def load_on(folder: str, features: FeatureFunction | None, device: str) -> Any:
    """The model in a folder, on a device, which is told unless it is the CPU."""
    model: Any = load(folder, features=features)
    found = place(model, device)
    if found != "cpu":
        say(f"{folder}: on {found}")
    return model


def words_alone(choices: Choices) -> Choices:
    """The same layout without the columns beside the words."""
    return replace(choices, feature_columns=())


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
