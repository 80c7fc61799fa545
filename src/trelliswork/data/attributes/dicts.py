"""Attributes as CRFsuite takes them: for each token a dict, or a list of names.

{"word": "Paris", "title": True, "length": 5.0} has the attributes word:Paris (1), title (1) and length (5).
"""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np

from trelliswork.data.attributes.key_index import keys_of
from trelliswork.data.attributes.key_kernels import hash_joined
from trelliswork.data.attributes.rows import offsets_of
from trelliswork.data.json_values import Json
from trelliswork.data.sentence import Sentence
from trelliswork.errors import DataError, ModelError
from trelliswork.runtime.arrays import Array

Token = Mapping[str, Json] | Sequence[str]
TOKENS_AT_A_TIME = 1024  # whose names are spelled out
_NO_VALUES = np.empty(0)
_NUMBERS = (int, float, np.number, np.bool_)  # a truth value is a whole number


def attribute_items(token: Token, prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yield (name, value) of each attribute of a token.

    >>> list(attribute_items({"w": "Paris", "title": True, "length": 5, "ngrams": ["pa", "ar"], "in": {"list": False}}))
    [('w:Paris', 1.0), ('title', 1.0), ('length', 5.0), ('ngrams:pa', 1.0), ('ngrams:ar', 1.0), ('in:list', 0.0)]
    """
    if isinstance(token, str):
        yield prefix + token, 1.0
    elif isinstance(token, Mapping):
        for name, value in token.items():
            yield from _items_of(prefix + str(name), value)
    else:
        for name in token:
            if not isinstance(name, str):
                got = f"the number {name}" if isinstance(name, int | float | np.number) else type(name).__name__
                raise DataError("attributes", f"expected names of attributes, got {got}; give a dict of named values")
            yield prefix + name, 1.0


def _items_of(name: str, value: object) -> Iterator[tuple[str, float]]:
    if isinstance(value, str):
        yield f"{name}:{value}", 1.0
    elif isinstance(value, bytes):
        yield f"{name}:{value.decode('utf-8', 'backslashreplace')}", 1.0
    elif isinstance(value, bool | int | float | np.number | np.bool_):
        yield name, float(value)
    elif isinstance(value, Mapping | Sequence | set | frozenset):
        yield from attribute_items(value if not isinstance(value, set | frozenset) else sorted(value), f"{name}:")
    else:
        kind = type(value).__name__
        raise DataError("attributes", f"expected text, a number, a truth value or a list at {name!r}, got {kind}")


def token_lists(sentences: Iterable[Iterable[Token]]) -> list[list[Token]]:
    """Return sentences and their tokens as lists, since iterators can be read only once; what is no token is named."""
    if isinstance(sentences, str | Mapping) or not isinstance(sentences, Iterable):
        raise DataError("attributes", f"expected a list of sentences, got {type(sentences).__name__}")
    rows, known = list[list[Token]](), {dict, list}
    for s, sentence in enumerate(sentences, 1):
        if type(sentence) is not list and (isinstance(sentence, str | Mapping) or not isinstance(sentence, Iterable)):
            got = f"sentence {s}: expected a list of tokens, got {type(sentence).__name__}"
            raise DataError("attributes", f"{got}; put a single sentence into a list")
        rows.append(list(sentence))
        kinds = set(map(type, rows[-1]))
        if kinds <= known:
            continue
        known |= {kind for kind in kinds if issubclass(kind, Iterable)}
        if kinds <= known:
            continue
        i, token = next((i, each) for i, each in enumerate(rows[-1], 1) if type(each) not in known)
        got = f"expected a dict or a list of names, got {type(token).__name__}"
        raise DataError("attributes", f"sentence {s}, token {i}: {got}")
    return rows


class Joined(NamedTuple):
    """The attributes of the tokens of a sentence: their names in UTF-8, with a zero between two."""

    counts: Array  # [tokens]
    names: Array  # [bytes]
    values: Array  # [entries], or empty: all 1


def joined_names(tokens: Sequence[Json]) -> Joined | None:
    """Return the attributes of a sentence as one text; None unless all tokens are lists of names, or all are dicts of
    text and finite numbers. There may be a zero in a name, too."""
    try:
        joined, values = _spelled(tokens)
        counts = np.fromiter(map(len, tokens), np.int64, len(tokens))
    except TypeError:
        return None
    if values is not None and not np.isfinite(values).all():
        return None
    text = np.frombuffer(joined.encode(errors="surrogatepass"), np.uint8)
    return Joined(counts, text, _NO_VALUES if values is None else values)


class _Block(NamedTuple):
    """The attributes of some tokens that follow one another."""

    counts: Array  # [tokens]
    keys: Array  # [entries]
    values: Array | None  # [entries]; None: all 1
    names: bytes | list[str]  # [entries]; as bytes in UTF-8, with a zero between two


def from_dicts(sentences: Iterable[Iterable[Token]]) -> tuple[Array, Array, Array, Array | None, EntryNames]:
    """Return (lengths, entries of each token, keys, values, names of the entries) of all sentences.

    Values are None if all are 1. The names of some tokens at a time are spelled out and hashed as one text: nothing is
    remembered of a sentence, however long a service lives.
    """
    rows = token_lists(sentences)
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    tokens = list(chain.from_iterable(rows))
    firsts = range(0, max(len(tokens), 1), TOKENS_AT_A_TIME)
    blocks = [_block(tokens[first : first + TOKENS_AT_A_TIME], first, lengths) for first in firsts]
    names = EntryNames([block.names for block in blocks], [len(block.keys) for block in blocks])
    if len(blocks) == 1:
        return lengths, *blocks[0][:3], names
    values = None
    if any(block.values is not None for block in blocks):
        values = np.concatenate([np.ones(len(keys)) if some is None else some for _, keys, some, _ in blocks])
    counts, keys = (np.concatenate([block[column] for block in blocks]) for column in (0, 1))
    return lengths, counts, keys, values, names


def _block(tokens: list[Token], first: int, lengths: Array) -> _Block:
    try:
        joined, values = _spelled(tokens)
        counts = np.fromiter(map(len, tokens), np.int64, len(tokens))
    except (TypeError, DataError):  # lists inside, tokens of several kinds, or something wrong
        counts, names, values = _spelled_one_by_one(tokens, first, lengths)
        return _Block(counts, keys_of(names), _checked(values, counts, names, first, lengths), names)
    text, keys = joined.encode(errors="surrogatepass"), np.empty(int(counts.sum()), np.uint64)
    if hash_joined(np.frombuffer(text, np.uint8), keys) != len(keys):  # there is a zero in a name
        counts, names, values = _spelled_one_by_one(tokens, first, lengths)
        return _Block(counts, keys_of(names), _checked(values, counts, names, first, lengths), names)
    return _Block(counts, keys, _checked(values, counts, text, first, lengths), text)


def _spelled(tokens: Sequence[Json]) -> tuple[str, Array | None]:
    """Return the names of attributes with a zero between two, and their values, if all tokens are lists of names or
    all are
    dicts of text and numbers; anything else is a `TypeError`."""
    kinds = set(map(type, tokens))
    if kinds <= {list}:
        return "\0".join(chain.from_iterable(tokens)), None
    if kinds != {dict}:
        raise TypeError("tokens of several kinds")
    try:
        return "\0".join(map(":".join, chain.from_iterable(map(dict.items, tokens)))), None
    except TypeError:  # some values are no text
        sizes = [1.0 if value.__class__ is str else value for token in tokens for value in token.values()]
    if not all(issubclass(kind, _NUMBERS) for kind in set(map(type, sizes))):
        raise TypeError("values that are neither text nor numbers")
    names = [f"{name}:{value}" if value.__class__ is str else name for token in tokens for name, value in token.items()]
    return "\0".join(names), np.array(sizes, np.float64)


def _spelled_one_by_one(tokens: Sequence[Token], first: int, lengths: Array) -> tuple[Array, list[str], Array]:
    counts, names, values, t = np.empty(len(tokens), np.int64), list[str](), list[float](), 0
    try:
        for t, token in enumerate(tokens):
            before = len(names)
            for name, value in attribute_items(token):
                names.append(name)
                values.append(value)
            counts[t] = len(names) - before
    except DataError as error:
        raise DataError("attributes", f"{_place(first + t, lengths)}: {error.problem}") from error
    return counts, names, np.array(values)


def _checked(values: Array | None, counts: Array, names: bytes | list[str], first: int, lengths: Array) -> Array | None:
    """Return the values, all finite; None if all are 1."""
    if values is None or (values == 1.0).all():
        return None
    if not np.isfinite(values).all():
        bad = int(np.flatnonzero(~np.isfinite(values))[0])
        t = first + int(np.searchsorted(np.cumsum(counts), bad, side="right"))
        got = "NaN" if math.isnan(values[bad]) else "an infinite value"
        problem = f"expected a finite number for {_listed(names)[bad]!r}, got {got}"
        raise DataError("attributes", f"{_place(t, lengths)}: {problem}")
    return values


def _listed(names: bytes | list[str]) -> list[str]:
    return names.decode(errors="surrogatepass").split("\0") if isinstance(names, bytes) else names


def _chosen(names: bytes | list[str], places: Array) -> list[str]:
    """Return some of the names; a text is not taken apart for them."""
    if not isinstance(names, bytes):
        return [names[place] for place in places.tolist()]
    ends = np.append(np.flatnonzero(np.frombuffer(names, np.uint8) == 0), len(names))
    firsts, lasts = np.append(0, ends[:-1] + 1)[places].tolist(), ends[places].tolist()
    return _listed(b"\0".join(map(names.__getitem__, map(slice, firsts, lasts)))) if firsts else []


class EntryNames:
    """The names of entries: a text of some, then one of the next."""

    def __init__(self, texts: Sequence[bytes | list[str]], sizes: Sequence[int]) -> None:
        self._texts, self._offsets = texts, offsets_of(np.array(sizes, np.int64))

    def of(self, entries: Array) -> list[str]:
        """Return the names of some entries, in their order."""
        order = np.argsort(entries, kind="stable")
        bounds = np.searchsorted(entries[order], self._offsets).tolist()
        names = np.empty(len(entries), object)
        for text, offset, (first, last) in zip(self._texts, self._offsets, pairwise(bounds), strict=False):
            here = order[first:last]
            names[here] = _chosen(text, entries[here] - offset)
        return list(names)


def _place(t: int, lengths: Array) -> str:
    """Describe the place of token t of all, for messages."""
    sentence = int(np.searchsorted(np.cumsum(lengths), t, side="right"))
    return f"sentence {sentence + 1}, token {t - int(lengths[:sentence].sum()) + 1}"


# Attributes by a Python function: it is given a sentence and returns, for each token, a dict or a list of names.

Function = Callable[[Sentence], Sequence[Token]]
_PATH = re.compile(r"[\w.]+:[\w.]+")


@dataclass(frozen=True)
class FeatureFunction:
    """A function, and the path "package.module:name" by which it is found again; None if there is no such path."""

    function: Function
    path: str | None

    @classmethod
    def of(cls, features: str | Function | FeatureFunction) -> FeatureFunction:
        """Make a feature function of a function or its path.

        >>> FeatureFunction.of("trelliswork.data.attributes.dicts:words_of").path
        'trelliswork.data.attributes.dicts:words_of'
        """
        if isinstance(features, FeatureFunction):
            return features
        if isinstance(features, str):
            return cls(import_function(features), features)
        if not callable(features):
            got = type(features).__name__
            raise DataError("features", f"expected a function over a sentence or 'package.module:function', got {got}")
        return cls(features, path_of(features))

    @classmethod
    def again(cls, path: object, given: str | Function | FeatureFunction | None, model: str) -> FeatureFunction:
        """Return the function that was given for a model whose attributes come from one.

        Args:
            path: Name that the model has stored, which only serves to say what is missing: a model never chooses code,
                as a name in its folder could be that of any function.
            given: The function, or its name "package.module:name"; None is an error.
            model: Folder of the model, for the sentence of an error.

        Returns:
            The function with its name.
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
        """Return (entries of each token, keys, values, names) of sentences, whose tags the function does not see."""
        tokens = [self._tokens(sentence) for sentence in sentences]
        try:
            _, counts, keys, values, names = from_dicts(tokens)
        except DataError as error:
            raise DataError(self.name, error.problem) from error
        return counts, keys, values, names

    def _tokens(self, sentence: Sentence) -> list[Token]:
        place = f"of the sentence at {sentence.file}:{sentence.line}" if sentence.file else f"of {sentence.words[:5]!r}"
        try:
            entries = self.function(replace(sentence, tags=None))
            tokens = list(entries)
        except Exception as error:
            raise DataError(self.name, f"expected attributes {place}, got {type(error).__name__}: {error}") from error
        if isinstance(entries, str | dict) or len(tokens) != len(sentence):
            got = f"a {type(entries).__name__}" if isinstance(entries, str | dict) else f"{len(tokens)} entries"
            problem = f"expected a list with an entry for each of the {len(sentence)} tokens {place}, got {got}"
            raise DataError(self.name, problem)
        return tokens


def words_of(sentence: Sentence) -> list[list[str]]:
    """Return the word of each token as its only attribute."""
    return [[word] for word in sentence.words]


def path_of(function: Function) -> str | None:
    """Return the path by which `import_function` finds a function again; None for a lambda, a local function or an
    instance.
    """
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    return f"{module}:{name}" if module and name and "<" not in name else None


def import_function(path: str) -> Function:
    """Return the function at "package.module:name"."""
    module, colon, name = path.partition(":")
    if not (module and colon and name):
        raise DataError("features", f"expected package.module:function, got {path!r}")
    try:
        function: Any = importlib.import_module(module)
        for part in name.split("."):
            function = getattr(function, part)
    except ModuleNotFoundError as error:
        problem = f"cannot be imported: there is no module {error.name!r}; install it or run where it is"
        raise ModelError(f"the feature function {path} {problem}") from error
    except AttributeError as error:
        problem = f"cannot be imported: {module!r} has no {name!r}; check the name"
        raise ModelError(f"the feature function {path} {problem}") from error
    except Exception as error:
        raise ModelError(f"the feature function {path} cannot be imported: {type(error).__name__}: {error}") from error
    if not callable(function):
        raise ModelError(f"expected a feature function at {path}, got {type(function).__name__}; check the name")
    return function


def merge_attributes(
    counts: Array, keys: Array, more_counts: Array, more_keys: Array, more_values: Array | None
) -> tuple[Array, Array, Array | None, Array]:
    """Return two lists of attributes, token by token, as one: (counts, keys, values, place of each entry in both
    lists).

    Args:
        counts: Entries of each token in the first list [tokens].
        keys: Keys of the first list [entries].
        more_counts: Entries of each token in the second list [tokens].
        more_keys: Keys of the second list [more entries].
        more_values: Values of the second list [more entries]; None if all are 1.

    Returns:
        Counts [tokens], keys and values [all entries], and the place of each entry in both lists.
    """
    tokens = np.arange(len(counts))
    owner = np.concatenate([np.repeat(tokens, counts), np.repeat(tokens, more_counts)])
    order = np.argsort(owner, kind="stable")
    values = None if more_values is None else np.concatenate([np.ones(len(keys)), more_values])[order]
    return counts + more_counts, np.concatenate([keys, more_keys])[order], values, order
