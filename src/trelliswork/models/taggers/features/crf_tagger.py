"""Tag text with an exported Trelliswork model. Needs Python alone: no Trelliswork, no other package.

python crf_tagger.py "Ann lives in Paris ."        # in the exported folder
python crf_tagger.py < tokens.txt                  # a token a line, its columns behind it; empty lines between

>>> tagger = CRFTagger("model.json")                                        # doctest: +SKIP
>>> tagger.tag(["Ann", "lives", "in", "Paris", "."])                        # doctest: +SKIP
['B-PER', 'O', 'O', 'B-LOC', 'O']
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

Columns = Sequence[Sequence[str]]  # further values of the tokens, column by column
Attributes = Mapping[str, float]
REFERENCE = re.compile(r"%x\[\s*(-?\d+)\s*,\s*(\d+)(?:\.(\w+))?\s*\]")
FORBIDDEN = float("-inf")


class CRFTagger:
    """The model of a JSON file: scores of attributes and of neighbouring labels, and the labels that score best."""

    def __init__(self, file: str | Path) -> None:
        try:
            model = json.loads(Path(file).read_text(encoding="utf-8"))
            self.labels: list[str] = model["labels"]
            self.n_columns: int = model["n_columns"]
            self.skip_outside: bool = model["skip_outside"]
            self._templates = None if model["templates"] is None else list(map(REFERENCE.split, model["templates"]))
            self._weights: dict[str, list[float]] = model["attributes"]
            self._pairs: dict[str, list[float]] = model["pairs"]
            self._start, self._end = (list(map(_score, model[name])) for name in ("start", "end"))
            self._into: list[dict[int, float]] = [{} for _ in self.labels]
            for before, label, weight in model["transitions"]:
                self._into[label][before] = _score(weight)
        except OSError as error:
            raise ValueError(
                f"{file}: cannot be read: {error.strerror}; copy the whole folder or export again"
            ) from error
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise ValueError(f"{file}: not a whole exported model ({error}); copy it again or export again") from error

    def tag(self, words: Sequence[str], columns: Columns = ()) -> list[str]:
        """Return the tags of one sentence; `columns` are what the model reads in addition to the words."""
        if self._templates is None:
            raise ValueError("this model reads attributes, not words; call tag_attributes with a dict for each token")
        if len(columns) < self.n_columns or any(len(column) != len(words) for column in columns):
            raise ValueError(
                f"expected {self.n_columns} columns in addition to the words, each as long; got {len(columns)}"
            )
        return self._best([dict.fromkeys(self._names(i, (words, *columns)), 1.0) for i in range(len(words))])

    def tag_attributes(self, tokens: Sequence[object]) -> list[str]:
        """Return the tags of one sentence, each token a dict of attributes or a list of their names, as in CRFsuite."""
        attributes = []
        for token in tokens:
            attributes.append(values := dict[str, float]())
            for name, value in items_of(token):
                values[name] = values.get(name, 0.0) + value
        return self._best(attributes)

    # From words to attributes

    def _names(self, i: int, values: Columns) -> Iterator[str]:
        """Fill in the templates at token i: text, then shift, column and spelling of %x[-1,0], and so on."""
        for template in self._templates or ():
            name = template[0]
            for part in range(1, len(template), 4):
                column, at = values[int(template[part + 1])], i + int(template[part])
                if 0 <= at < len(column):
                    name += seen(column[at], template[part + 2] or "")
                elif self.skip_outside:
                    break
                else:
                    name += f"_B{at}" if at < 0 else f"_B+{at - len(column) + 1}"
                name += template[part + 3]
            else:
                yield name

    # From attributes to labels

    def _best(self, tokens: Sequence[Attributes]) -> list[str]:
        """Return the labels of the highest sum of scores; the first of several equal ones."""
        deltas: list[list[float]] = []
        arcs = list(map(self._arcs, tokens))
        for t, token in enumerate(tokens):
            if t == 0:
                reached = list(self._start)
            else:
                order = sorted(range(len(self.labels)), key=lambda i: -deltas[t - 1][i])
                reached = [_highest(deltas[t - 1], order, into) for into in arcs[t]]
            deltas.append([a + b for a, b in zip(reached, self._emissions(token), strict=True)])
        if not deltas:
            return []
        last = [a + b for a, b in zip(deltas[-1], self._end, strict=True)]
        path = [last.index(max(last))]
        for t in range(len(tokens) - 1, 0, -1):
            into = arcs[t][path[-1]]
            scores = [delta + into.get(i, 0.0) for i, delta in enumerate(deltas[t - 1])]
            path.append(scores.index(max(scores)))
        return [self.labels[label] for label in reversed(path)]

    def _emissions(self, token: Attributes) -> list[float]:
        scores = [0.0] * len(self.labels)
        for name, value in token.items():
            weights = self._weights.get(name, ())
            for k in range(0, len(weights), 2):
                scores[int(weights[k])] += value * weights[k + 1]
        return scores

    def _arcs(self, token: Attributes) -> list[dict[int, float]]:
        """Return scores by label and label before, where they are not 0; some attributes add to them."""
        known = [name for name in token if name in self._pairs]
        if not known:
            return self._into
        arcs = [dict(into) for into in self._into]
        for name in known:
            weights = self._pairs[name]
            for k in range(0, len(weights), 3):
                before, into = int(weights[k]), arcs[int(weights[k + 1])]
                into[before] = into.get(before, 0.0) + token[name] * weights[k + 2]
        return arcs


def _score(number: float | None) -> float:
    return FORBIDDEN if number is None else number


def _highest(delta: Sequence[float], order: Sequence[int], into: Mapping[int, float]) -> float:
    """Return max_i delta[i] + score(i): where there is no score it is 0, so that only the first such label counts."""
    best = max((delta[i] + score for i, score in into.items()), default=FORBIDDEN)
    for i in order:
        if delta[i] <= best:
            break
        if i not in into:
            return delta[i]
    return best


@lru_cache(maxsize=100_000)
def seen(value: str, spelling: str) -> str:
    """Return a value as it is, or its lower, shape, short, prefixN or suffixN."""
    if spelling in ("shape", "short"):
        shape = "".join("X" if ch.isupper() else "x" if ch.isalpha() else "d" if ch.isdigit() else ch for ch in value)
        return re.sub(r"(.)\1+", r"\1", shape, flags=re.DOTALL) if spelling == "short" else shape
    if not spelling:
        return value
    small = value.lower()
    if spelling == "lower":
        return small
    return small[: int(spelling[6:])] if spelling.startswith("prefix") else small[-int(spelling[6:]) :]


def items_of(token: Any, prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yield (name, value) of each attribute.

    >>> list(items_of({"w": "Paris", "title": True, "length": 5, "ngrams": ["pa"]}))
    [('w:Paris', 1.0), ('title', 1.0), ('length', 5.0), ('ngrams:pa', 1.0)]
    """
    if isinstance(token, str):
        yield prefix + token, 1.0
    elif not isinstance(token, Mapping):
        for name in token:
            yield prefix + name, 1.0
    else:
        for name, value in token.items():
            if isinstance(value, str):
                yield f"{prefix}{name}:{value}", 1.0
            elif isinstance(value, bool | int | float):
                yield prefix + name, float(value)
            else:
                yield from items_of(sorted(value) if isinstance(value, set | frozenset) else value, f"{prefix}{name}:")


def main(arguments: Sequence[str]) -> None:
    """Print each token and its tag."""
    tagger = CRFTagger(Path(__file__).parent / "model.json")
    given = [[(word,) for word in text.split()] for text in arguments] or sentences_of(sys.stdin)
    for tokens in given:
        if len(set(map(len, tokens))) > 1:
            raise ValueError(
                f"expected the same number of columns for each token; not so in {tokens[0][0]} ...; correct the file"
            )
        words, *columns = map(list, zip(*tokens, strict=True)) if tokens else [[]]
        tags = tagger.tag(words, columns)
        print("".join("\t".join((*token, tag)) + "\n" for token, tag in zip(tokens, tags, strict=True)))


def sentences_of(lines: Iterable[str]) -> Iterator[list[tuple[str, ...]]]:
    """Yield tokens with their columns, sentence by sentence."""
    tokens: list[tuple[str, ...]] = []
    for line in [*lines, ""]:
        if line.strip():
            tokens.append(tuple(line.split()))
        elif tokens:
            yield tokens
            tokens = []


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ValueError as error:
        sys.exit(f"error: {error}")
