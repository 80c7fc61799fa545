"""Tag text with an exported Trelliswork model. Needs numpy and onnxruntime, not Trelliswork.

python onnx_tagger.py "Ann lives in Paris ."       # in the exported folder
python onnx_tagger.py --confidence "Ann lives ."   # with the probability of each tag and of its span
python onnx_tagger.py < tokens.txt                 # a token a line, its columns behind it; empty lines between

>>> tagger = OnnxTagger("ner-onnx")                                         # doctest: +SKIP
>>> tagger.tag(["Ann", "lives", "in", "Paris", "."])                        # doctest: +SKIP
['B-PER', 'O', 'O', 'B-LOC', 'O']
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Json = dict[str, Any]  # of model.json, whose format is checked when it is read
Words = Sequence[str]
Columns = Sequence[Sequence[str]]  # further values of the tokens, column by column

UNKNOWN = 1  # in every vocabulary; 0 fills up
DIGIT = re.compile(r"\d")
REFERENCE = re.compile(r"%x\[(-?\d+),(\d+)(?:\.(\w+))?\]")


def _description(path: Path) -> Json:
    if not path.is_file():
        raise ValueError(f"{path}: missing or not a regular file; copy the whole folder or export again")
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: truncated or not JSON; copy the folder or export again") from error
    if not isinstance(description, dict):
        raise ValueError(
            f"{path}: expected a JSON object, got {type(description).__name__}; copy the folder or export again"
        )
    return description


def _whole_graph(path: Path, digest: str | None) -> bytes:
    """Return the content of a graph, which must be what was exported; early exports have no checksum."""
    if not path.is_file():
        raise ValueError(f"{path}: missing or not a regular file; copy the whole folder or export again")
    content = path.read_bytes()
    if digest is not None and hashlib.sha256(content).hexdigest() != digest:
        raise ValueError(f"{path}: the checksum does not match model.json; copy the folder or export again")
    return content


class OnnxTagger:
    """The model of a folder; `options` go to `onnxruntime.InferenceSession`."""

    def __init__(self, folder: str | Path, **options: object) -> None:
        try:
            import onnxruntime
        except ImportError as error:
            raise ImportError("an exported model needs onnxruntime; run pip install onnxruntime") from error

        self.description = _description(Path(folder) / "model.json")
        graph = _whole_graph(Path(folder) / "model.onnx", self.description.get("sha256"))
        self.session = onnxruntime.InferenceSession(graph, **options)
        self.tasks = self.description["tasks"]
        self._rows = {
            name: {item: row for row, item in enumerate(items)}
            for name, items in self.description["vocabularies"].items()
        }
        self._templates = [REFERENCE.split(template) for template in self.description["templates"]]

    def tag(self, words: Words | Array, columns: Columns = ()) -> Any:
        """Return the tags of one sentence, or of the vectors [n, d] of a model for these; by task if several."""
        return self.tag_all([words], [columns])[0]

    def tag_all(self, sentences: Sequence[Any], columns: Sequence[Columns] | None = None) -> list[Any]:
        """Return the same of some at once."""
        columns = [()] * len(sentences) if columns is None else columns
        filled = [i for i, words in enumerate(sentences) if len(words)]
        answers = self.decoded([np.zeros((len(sentences), 0), np.int64)] * len(self.tasks), [0] * len(sentences))
        if filled:
            inputs = self.inputs([sentences[i] for i in filled], [columns[i] for i in filled])
            outputs = self.session.run([task["tags"] for task in self.tasks], inputs)
            tagged = self.decoded(outputs, [len(sentences[i]) for i in filled])
            for i, answer in zip(filled, tagged, strict=True):
                answers[i] = answer
        return answers

    def decoded(self, outputs: Sequence[Array], lengths: Sequence[int]) -> list[Any]:
        """Return tags from what the graph gives for each task."""
        answers = []
        for row, n in enumerate(lengths):
            tags = {
                task["tags"].removeprefix("tags_"): _tags(task, best[row, :n])
                for task, best in zip(self.tasks, outputs, strict=True)
            }
            answers.append(tags if len(tags) > 1 else tags["tags"])
        return answers

    def confidences(self, words: Words | Array, columns: Columns = ()) -> Any:
        """Return the tags of one sentence with the probability of each, and its spans (start, end, kind, probability).

        Of several tasks, a dictionary.
        """
        inputs = self.inputs([words], [columns]) if len(words) else {}
        answers = {}
        for task in self.tasks:
            answer: Json = {"tags": [], "tokens": [], "spans": []}
            if len(words):
                names = [task["tags"], task["potentials"], task["transitions"]]
                best, potentials, transitions = self.session.run(names, inputs)
                how = _of_segments if task["kinds"] else _of_labels
                answer = {"tags": _tags(task, best[0]), **how(task, best[0].tolist(), potentials[0], transitions[0])}
            answers[task["tags"].removeprefix("tags_")] = answer
        return answers if len(answers) > 1 else answers["tags"]

    # From words to numbers

    def inputs(self, sentences: Sequence[Any], columns: Sequence[Columns]) -> dict[str, Array]:
        """Return what the graph takes, by name."""
        if "vectors" in self.description["inputs"]:
            mask = _padded([1] * len(each) for each in sentences).astype(bool)
            return {"vectors": _padded(sentences, np.float32), "mask": mask}
        different = {word: row for row, word in enumerate(dict.fromkeys(word for each in sentences for word in each))}
        make: dict[str, Callable[[], Array]] = {
            "features": lambda: _padded(map(self._features, sentences, columns)),
            "mask": lambda: _padded([1] * len(words) for words in sentences).astype(bool),
            "forms": lambda: _padded([different[word] for word in words] for words in sentences),
            "spellings": lambda: _padded(map(self._spelling, different)),
            "ngrams": lambda: _padded(map(self._ngrams, different)),
            "attributes": lambda: _padded(map(self._attributes, sentences, columns)),
        }
        return {name: make[name]() for name in self.description["inputs"]}

    def _features(self, words: Words, columns: Columns) -> list[list[int]]:
        wanted = self.description["n_columns"]
        if len(columns) != wanted:
            problem = f"expected each word with {wanted} more columns, as in training; got {len(columns)}"
            raise ValueError(f"{problem}; pass them on, or a file: python onnx_tagger.py < tokens.txt")
        names = self.description["features"]
        return [[self._row(name, word, columns, i) for name in names] for i, word in enumerate(words)]

    def _row(self, name: str, word: str, columns: Columns, i: int) -> int:
        rows = self._rows[name]
        if name == "vector":
            small = word.lower()
            forms = (word, small, DIGIT.sub("0", small), DIGIT.sub("#", small))
            return next((rows[form] for form in forms if form in rows), UNKNOWN)
        if name.startswith("column"):
            return rows.get(columns[int(name.removeprefix("column")) - 1][i], UNKNOWN)
        return rows.get(_part(name, word, self._normal(word)), UNKNOWN)

    def _normal(self, word: str) -> str:
        word = word.lower() if self.description["lowercase"] else word
        return DIGIT.sub("0", word) if self.description["digits_to_zero"] else word

    def _spelling(self, word: str) -> list[int]:
        rows = self._rows["characters"]
        return [rows.get(letter, UNKNOWN) for letter in word[: self.description["longest_spelling"]]]

    def _ngrams(self, word: str) -> list[int]:
        settings = self.description["ngrams"]
        marked = f"<{word[: settings['longest']]}>"
        parts = [marked[i : i + n] for n in settings["lengths"] for i in range(len(marked) - n + 1)]
        return [fnv1a(part) % settings["buckets"] + 1 for part in dict.fromkeys([*parts, marked])]

    def _attributes(self, words: Words, columns: Columns) -> list[list[int]]:
        rows, values = self._rows["templates"], (words, *columns)
        return [[rows.get(_filled(template, values, i), 0) for template in self._templates] for i in range(len(words))]


def _padded(rows: Iterable[Any], dtype: type = np.int64) -> Array:
    """Return rows of numbers, or of rows of numbers, side by side; 0 fills up."""
    listed: list[Array] = [np.asarray(row, dtype) for row in rows]
    longest = max(len(row) for row in listed)
    padded = np.zeros((len(listed), longest, *listed[0].shape[1:]), dtype)
    for i, row in enumerate(listed):
        padded[i, : len(row)] = row
    return padded


def _part(name: str, word: str, normal: str) -> str:
    """Return what the feature of this name sees of a word."""
    if name == "word":
        return normal
    if name == "capitals":
        return capitals(word)
    length = int(name[len("prefix") :])
    return normal[:length] if name.startswith("prefix") else normal[-length:]


def capitals(word: str) -> str:
    """Return the spelling of a word: all capitals, initial, mixed, lower, with digits, or neither letter nor digit."""
    if word.isupper() and len(word) > 1:
        return "all"
    if word[:1].isupper():
        return "initial"
    if any(letter.isupper() for letter in word):
        return "mixed"
    if word.isalpha():
        return "lower"
    return "digits" if any(letter.isdigit() for letter in word) else "other"


def fnv1a(text: str) -> int:
    """Return the 64-bit FNV-1a hash of a text in UTF-8."""
    key = 0xCBF29CE484222325
    for byte in text.encode(errors="surrogatepass"):
        key = (key ^ byte) * 0x100000001B3 % 2**64
    return key


def _filled(template: Sequence[str], values: Columns, i: int) -> str:
    """Fill in a CRF++ template at token i: text, then shift, column, spelling of a reference such as %x[-1,0], ..."""
    text = template[0]
    for part in range(1, len(template), 4):
        column, at = values[int(template[part + 1])], i + int(template[part])
        if 0 <= at < len(column):
            text += _seen(column[at], template[part + 2] or "")
        else:
            text += f"_B{at}" if at < 0 else f"_B+{at - len(column) + 1}"
        text += template[part + 3]
    return text


@lru_cache(maxsize=100_000)
def _seen(value: str, spelling: str) -> str:
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


# From numbers to tags


def _tags(task: Json, indices: Array) -> list[str]:
    """Return labels, rewritten from IOBES if the data was written in IOB1 or IOB2."""
    labels = [task["labels"][i] for i in indices.tolist()]
    return labels if task["scheme"] == task["data_scheme"] else rewritten(labels, task["data_scheme"])


def rewritten(labels: Sequence[str], scheme: str) -> list[str]:
    """Return tags in IOBES as IOB2, where B begins every span, or as IOB1, where it only parts spans of one kind.

    >>> rewritten(["B-NP", "E-NP", "S-NP", "O"], "IOB2"), rewritten(["B-NP", "E-NP", "S-NP", "O"], "IOB1")
    (['B-NP', 'I-NP', 'B-NP', 'O'], ['I-NP', 'I-NP', 'B-NP', 'O'])
    """
    tags = ["O"]
    for before, label in pairwise(["O", *labels]):
        kind = label[1:]
        apart = label[0] in "BS" or before[0] in "OES" or before[1:] != kind
        touches = before != "O" and before[1:] == kind
        first = "B" if scheme == "IOB2" or touches else "I"
        tags.append("O" if label == "O" else (first if apart else "I") + kind)
    return tags[1:]


# Probabilities, by sums over all answers


def _lse(scores: Array, axis: int) -> Array:
    """Return log Σ exp along an axis."""
    highest = scores.max(axis, keepdims=True)
    log_sum: Array = np.log(np.exp(scores - highest).sum(axis)) + highest.squeeze(axis)
    return log_sum


def _of_labels(task: Json, best: list[int], scores: Array, transitions: Array) -> Json:
    """Return the confidences of a chain: scores [n, c]; transitions [c, c] or [n-1, c, c]."""
    n = len(scores)
    arcs = [transitions if transitions.ndim == 2 else transitions[t] for t in range(n - 1)]

    def arriving(sums: Array, t: int) -> Array:
        """Return the sums over what ends at t from those at the token before."""
        return _lse(sums[:, None] + arcs[t - 1], 0) + scores[t]

    before, after = [scores[0]], [np.zeros_like(scores[0])]
    for t in range(1, n):
        before.append(arriving(before[-1], t))
        after.insert(0, _lse(arcs[n - 1 - t] + scores[n - t] + after[0], 1))
    total = _lse(before[-1], 0)
    shares = np.exp(np.stack(before) + np.stack(after) - total)
    tokens = [float(min(shares[t, task["same_tag"][label]].sum(), 1.0)) for t, label in enumerate(best)]

    def probability(pattern: Json, start: int, end: int) -> float:
        """Return P(the labels of tokens start..end-1 and of their neighbours are as the pattern says)."""
        if (start == 0 and not pattern["at_start"]) or (end == n and not pattern["at_end"]):
            return 0.0
        longer = [pattern["first"], *[pattern["inside"]] * (end - start - 2), pattern["last"]]
        here = [pattern["single"]] if end - start == 1 else longer
        sums = scores[0] if start == 0 else arriving(_only(before[start - 1], pattern["before"]), start)
        sums = _only(sums, here[0])
        for t in range(start + 1, end):
            sums = _only(arriving(sums, t), here[t - start])
        sums = sums if end == n else _only(arriving(sums, end) + after[end], pattern["after"])
        return float(min(np.exp(_lse(sums, 0) - total), 1.0))

    spans = [] if not task["patterns"] else spans_in([task["labels"][label] for label in best])
    parts = [(i, j, kind, sum(probability(each, i, j) for each in task["patterns"][kind])) for i, j, kind in spans]
    return {"tokens": tokens, "spans": parts}


def _only(scores: Array, labels: Sequence[int] | None) -> Array:
    if labels is None:
        return scores
    allowed = np.full_like(scores, -1e30)
    allowed[list(labels)] = scores[list(labels)]
    return allowed


def _of_segments(task: Json, best: list[int], scores: Array, transitions: Array) -> Json:
    """Return the confidences of segments: scores [n, k, c] by first token, length and kind; transitions [c, c]."""
    n, k, c = scores.shape
    entered, left = [np.zeros(c)], [np.zeros(c)]  # on the way to a token, and from one to the end
    for t in range(1, n + 1):
        ending = _lse(np.stack([entered[t - d] + scores[t - d, d - 1] for d in range(1, min(k, t) + 1)]), 0)
        entered.append(_lse(ending[:, None] + transitions, 0))
        first = n - t
        going = _lse(np.stack([scores[first, d - 1] + left[d - 1] for d in range(1, min(k, t) + 1)]), 0)
        left.insert(0, _lse(transitions + going, 1))
    total = _lse(ending, 0)
    shares = np.zeros((n, k, c))
    for i in range(n):
        for d in range(1, min(k, n - i) + 1):
            shares[i, d - 1] = np.exp(entered[i] + scores[i, d - 1] + left[i + d] - total)
    spans = spans_in([task["labels"][label] for label in best])
    starts, kinds = list(range(n)), [0] * n
    for i, j, kind in spans:
        starts[i:j], kinds[i:j] = [i] * (j - i), [task["kinds"].index(kind)] * (j - i)
    tokens = [_share_of_token(shares, t, kinds[t], starts[t] == t) for t in range(n)]
    parts = [(i, j, kind, float(min(shares[i, j - i - 1, kinds[i]], 1.0))) for i, j, kind in spans]
    return {"tokens": tokens, "spans": parts}


def _share_of_token(shares: Array, t: int, kind: int, begins: bool) -> float:
    """Return P(a segment of this kind begins at the token), or goes on there."""
    if begins:
        return float(min(shares[t, :, kind].sum(), 1.0))
    earlier = range(max(0, t - shares.shape[1] + 1), t)
    return float(min(sum(shares[i, t - i :, kind].sum() for i in earlier), 1.0))


def spans_in(labels: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return the spans (start, end, kind) that labels spell.

    >>> spans_in(["B-PER", "E-PER", "O", "S-LOC"]), spans_in(["B-X", "I-X", "B-X"])
    ([(0, 2, 'PER'), (3, 4, 'LOC')], [(0, 2, 'X'), (2, 3, 'X')])
    """
    spans: list[tuple[int, int, str]] = []
    for i, (before, label) in enumerate(pairwise(["O", *labels])):
        if label == "O":
            continue
        kind = label[2:]
        if spans and label[0] in "IEL" and before[0] in "BI" and before[2:] == kind:
            spans[-1] = (spans[-1][0], i + 1, kind)
        else:
            spans.append((i, i + 1, kind))
    return spans


def main(arguments: Sequence[str]) -> None:
    """Print each token and its tags; with --confidence, the probability of the tag and of the span behind it."""
    tagger = OnnxTagger(Path(__file__).parent)
    sure, arguments = "--confidence" in arguments, [each for each in arguments if each != "--confidence"]
    given = [[(word,) for word in text.split()] for text in arguments] or sentences_of(sys.stdin)
    for tokens in given:
        if len(set(map(len, tokens))) > 1:
            raise ValueError(
                f"expected the same number of columns for each token; not so in {tokens[0][0]} ...; correct the file"
            )
        words, *columns = map(list, zip(*tokens, strict=True)) if tokens else [[]]
        tags = tagger.confidences(words, columns) if sure else tagger.tag(words, columns)
        by_task = tags if len(tagger.tasks) > 1 else {"tags": tags}
        rows: Any = zip(*by_task.values(), strict=True)
        if sure:
            rows = zip(*(column for answer in by_task.values() for column in _columns(answer)), strict=True)
        print("".join("\t".join((*token, *row)) + "\n" for token, row in zip(tokens, rows, strict=True)))


def _columns(answer: Json) -> list[list[str]]:
    spans = {i: f"{each[3]:.4f}" for each in answer["spans"] for i in range(each[0], each[1])}
    tokens = [f"{each:.4f}" for each in answer["tokens"]]
    return [answer["tags"], tokens, [spans.get(i, "-") for i in range(len(tokens))]]


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
