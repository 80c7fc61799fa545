"""Attributes by a Python function: it is given a sentence and returns, for each token, a dict or a list of names."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trelliswork.data.attributes.dicts import EntryNames, Token, from_dicts
from trelliswork.data.sentence import Sentence
from trelliswork.errors import DataError, ModelError

Array = np.ndarray[Any, Any]
Function = Callable[[Sentence], Sequence[Token]]
_PATH = re.compile(r"[\w.]+:[\w.]+")


@dataclass(frozen=True)
class FeatureFunction:
    """A function, and the path "package.module:name" by which it is found again; None if there is no such path."""

    function: Function
    path: str | None

    @classmethod
    def of(cls, features: str | Function | FeatureFunction) -> FeatureFunction:
        """From a function or its path.

        >>> FeatureFunction.of("trelliswork.data.attributes.function:words_of").path
        'trelliswork.data.attributes.function:words_of'
        """
        if isinstance(features, FeatureFunction):
            return features
        if isinstance(features, str):
            return cls(imported(features), features)
        if not callable(features):
            got = type(features).__name__
            raise DataError("features", f"expected a function over a sentence or 'package.module:function', got {got}")
        return cls(features, path_of(features))

    @classmethod
    def again(cls, path: object, given: str | Function | FeatureFunction | None, model: str) -> FeatureFunction:
        """The function given. `path` is the name that a model has stored, which only serves to say what is missing.

        A model never chooses code: a name in its folder could be that of any function, also of a loaded one.
        """
        if given is not None:
            return cls.of(given)
        if path is None:
            problem = "its feature function has no name to import it by (a lambda, or one defined inside another)"
            raise ModelError(f"{model}: {problem}; give it: FeatureTagger.load(directory, features=function)")
        if not isinstance(path, str) or not _PATH.fullmatch(path):
            problem = f"expected the name of a function, module:function, under 'features', got {path!r}"
            raise ModelError(f"{model}: {problem}; copy the model again")
        problem = f"its attributes come from the function {path}, which a model does not import by itself"
        fix = f"add --features {path}, or in Python FeatureTagger.load(directory, features=...)"
        raise ModelError(f"{model}: {problem}; {fix}")

    @property
    def name(self) -> str:
        return self.path or str(getattr(self.function, "__qualname__", type(self.function).__name__))

    def attributes(self, sentences: Sequence[Sentence]) -> tuple[Array, Array, Array | None, EntryNames]:
        """(entries of each token, keys, values, names) of all sentences; the function does not see their tags."""
        found = [self._tokens(sentence) for sentence in sentences]
        try:
            _, counts, keys, values, names = from_dicts(found)
        except DataError as error:
            raise DataError(self.name, error.problem) from error
        return counts, keys, values, names

    def _tokens(self, sentence: Sentence) -> list[Token]:
        place = f"of the sentence at {sentence.file}:{sentence.line}" if sentence.file else f"of {sentence.words[:5]!r}"
        try:
            found = self.function(replace(sentence, tags=None))
            tokens = list(found)
        except Exception as error:
            raise DataError(self.name, f"expected attributes {place}, got {type(error).__name__}: {error}") from error
        if isinstance(found, str | dict) or len(tokens) != len(sentence):
            got = f"a {type(found).__name__}" if isinstance(found, str | dict) else f"{len(tokens)} entries"
            problem = f"expected a list with an entry for each of the {len(sentence)} tokens {place}, got {got}"
            raise DataError(self.name, problem)
        return tokens


def words_of(sentence: Sentence) -> list[list[str]]:
    """The smallest such function: each token has its word as its only attribute."""
    return [[word] for word in sentence.words]


def path_of(function: Function) -> str | None:
    """The path by which `imported` finds a function again; None for a lambda, a local function or an instance."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    return f"{module}:{name}" if module and name and "<" not in name else None


def imported(path: str) -> Function:
    """The function at "package.module:name"."""
    module, colon, name = path.partition(":")
    if not (module and colon and name):
        raise DataError("features", f"expected package.module:function, got {path!r}")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as error:
        problem = f"cannot be imported: there is no module {error.name!r}; install it or run where it is"
        raise ModelError(f"the feature function {path} {problem}") from error
    except AttributeError as error:
        problem = f"cannot be imported: {module!r} has no {name!r}; check the name"
        raise ModelError(f"the feature function {path} {problem}") from error
    except Exception as error:
        raise ModelError(f"the feature function {path} cannot be imported: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise ModelError(f"expected a feature function at {path}, got {type(found).__name__}; check the name")
    return found


def merged(
    counts: Array, keys: Array, more_counts: Array, more_keys: Array, more_values: Array | None
) -> tuple[Array, Array, Array | None, Array]:
    """Two lists of attributes, token by token, as one: (counts, keys, values, place of each entry in both lists)."""
    tokens = np.arange(len(counts))
    owner = np.concatenate([np.repeat(tokens, counts), np.repeat(tokens, more_counts)])
    order = np.argsort(owner, kind="stable")
    values = None if more_values is None else np.concatenate([np.ones(len(keys)), more_values])[order]
    return counts + more_counts, np.concatenate([keys, more_keys])[order], values, order
