"""Small treebanks to train and test parsers on: sentences of a few patterns, with all that CoNLL-U may have in it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

NAMES, VERBS, THINGS = ("Ann", "Bob", "Eve"), ("sees", "likes", "hears"), ("dog", "cat", "sea")
Row = tuple[str, str, int, str]  # word, part of speech, head, label


def patterns() -> Iterator[list[Row]]:
    for name, verb, thing in itertools.product(NAMES, VERBS, THINGS):
        yield [
            (name, "PROPN", 2, "nsubj"), (verb, "VERB", 0, "root"), ("the", "DET", 4, "det"), (thing, "NOUN", 2, "obj"),
            (".", "PUNCT", 2, "punct"),
        ]  # fmt: skip
        yield [
            (name, "PROPN", 4, "nsubj"), ("do", "AUX", 4, "aux"), ("n't", "PART", 4, "advmod"),
            (verb, "VERB", 0, "root"), (thing, "NOUN", 4, "obj"), ("!", "PUNCT", 4, "punct"),
        ]  # fmt: skip


def conllu(sentences: Sequence[Sequence[Row]]) -> str:
    """The sentences as CoNLL-U: `do` and `n't` are one token, verbs have an empty node behind them."""
    blocks = []
    for number, rows in enumerate(sentences, 1):
        lines = [f"# sent_id = s{number}", f"# text = {_text(rows)}"]
        lines = [*(["# newdoc id = d"] if number == 1 else []), *lines]
        for i, (word, tag, head, label) in enumerate(rows, 1):
            if word == "do":
                lines.append(f"{i}-{i + 1}\tdon't" + "\t_" * 8)
            last = i == len(rows)
            misc = "SpaceAfter=No" if not last and rows[i][1] == "PUNCT" else "Gloss=x" if tag == "DET" else "_"
            lines.append(f"{i}\t{word}\t{word.lower()}\t{tag}\t{tag[:2]}\t_\t{head}\t{label}\t{head}:{label}\t{misc}")
            if tag == "VERB":
                lines.append(f"{i}.1\tso" + "\t_" * 6 + "\t0:root\t_")
        blocks.append("\n".join(lines) + "\n\n")
    return "".join(blocks)


def _text(rows: Sequence[Row]) -> str:
    words = " ".join(row[0] for row in rows)
    return words.replace("do n't", "don't").replace(" .", ".").replace(" !", "!")
