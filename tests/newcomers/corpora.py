"""Files for newcomers who do not work on English names: Dutch columns with their raw text, and spelt words.

Dutch has what a tokeniser made for English cuts wrongly: hyphenated names, abbreviations, initials, ordinals, clitics.
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import NamedTuple

PERSONS = [
    "Willem-Alexander",
    "dhr. De Vries",
    "J. K. van der Berg",
    "mevr. Jansen-Bakker",
    "Anne-Marie",
    "prof. dr. Smit",
]
PLACES = ["'s-Hertogenbosch", "Den Haag", "Noord-Brabant", "Brussel-Zuid", "IJmuiden", "Sint-Niklaas"]
GROUPS = ["N-VA", "CD&V", "Ajax", "PvdA/GroenLinks", "ING-bank", "VRT-nieuws"]
TEMPLATES = [
    "{PER} woont al jaren in {LOC}.",
    "'s Avonds reist {PER} naar {LOC}, zegt {ORG}.",
    "De 27ste verjaardag van {ORG} werd in {LOC} gevierd.",
    '"Ik ga niet," zei {PER} (lid van {ORG}).',
    "Volgens {PER} betaalt {ORG} o.a. 1.250,50 euro per maand.",
    "Waarom koos {ORG} voor {LOC}?",
    "Zo'n foto's maakt {PER} om 10.30 uur bij {ORG}.",
]
_MARKED = re.compile(r"\[(\w+) ([^\]]*)\]")
_WHOLE = {"dhr.", "mevr.", "prof.", "dr.", "J.", "K.", "o.a."}


class Dutch(NamedTuple):
    """A sentence as it is written, and as columns: its tokens with their tags."""

    text: str
    rows: list[tuple[str, str]]


def dutch_sentences(n: int, seed: int, n_names: int) -> list[Dutch]:
    """Return sentences of the kind that newspapers have, with the first `n_names` names of each sort."""
    chosen = random.Random(seed)
    fillers = {"PER": PERSONS[:n_names], "LOC": PLACES[:n_names], "ORG": GROUPS[:n_names]}
    marked = [
        re.sub(r"\{(\w+)\}", lambda name: f"[{name[1]} {chosen.choice(fillers[name[1]])}]", chosen.choice(TEMPLATES))
        for _ in range(n)
    ]
    return [Dutch(_MARKED.sub(r"\2", text), list(_rows(text))) for text in marked]


def _rows(marked: str) -> list[tuple[str, str]]:
    rows, position = list[tuple[str, str]](), 0
    for name in _MARKED.finditer(marked):
        rows += [(token, "O") for token in _tokens(marked[position : name.start()])]
        for place, token in enumerate(_tokens(name[2])):
            rows.append((token, f"{'I' if place else 'B'}-{name[1]}"))
        position = name.end()
    return rows + [(token, "O") for token in _tokens(marked[position:])]


def _tokens(text: str) -> list[str]:
    """Split as newspapers' corpora do: at spaces, and punctuation at the ends of a word, but not of abbreviations."""
    tokens = list[str]()
    for part in text.split():
        if part in _WHOLE:
            tokens.append(part)
            continue
        opening = part[: len(part) - len(part.lstrip('"('))]
        rest = part[len(opening) :]
        word = rest.rstrip('"),.?')
        tokens += [*opening, *([word] if word else []), *rest[len(word) :]]
    return tokens


def write_dutch(folder: Path, sizes: tuple[int, int, int]) -> None:
    """Write `train.conll`, `dev.conll` and `test.conll`, and `story.txt` and `new.txt` with the text of the last.

    A third of the names are in the last part only.
    """
    for seed, (part, size) in enumerate(zip(("train", "dev", "test"), sizes, strict=True)):
        sentences = dutch_sentences(size, seed, 6 if part == "test" else 4)
        columns = ("".join(f"{token} {tag}\n" for token, tag in sentence.rows) + "\n" for sentence in sentences)
        (folder / f"{part}.conll").write_text("".join(columns), encoding="utf-8")
    for name in ("story.txt", "new.txt"):
        (folder / name).write_text(" ".join(sentence.text for sentence in sentences) + "\n", encoding="utf-8")


def cut_names(folder: Path) -> list[str]:
    """Return the names of `story.txt` that `story.jsonl` cuts: a border of the name is no border of a token."""
    text = (folder / "story.txt").read_text(encoding="utf-8")
    records = map(json.loads, (folder / "story.jsonl").read_text(encoding="utf-8").splitlines())
    offsets = [tuple(pair) for record in records for pair in record["offsets"]]
    starts, ends = {start for start, _ in offsets}, {end for _, end in offsets}
    names = re.compile("|".join(map(re.escape, sorted([*PERSONS, *PLACES, *GROUPS], key=len, reverse=True))))
    return [name[0] for name in names.finditer(text) if name.start() not in starts or name.end() not in ends]


ONSETS, VOWELS, CODAS = (
    ("b", "cs", "d", "gy", "k", "ny", "sz", "zs", "t"),
    ("a", "á", "e", "é", "o", "ö"),
    ("", "k", "l", "sz"),
)
SOUNDS = {
    "cs": "tʃ", "gy": "ɟ", "ny": "ɲ", "sz": "s", "zs": "ʒ", "a": "ɒ", "á": "aː", "e": "ɛ", "é": "eː", "ö": "ø"
}  # fmt: skip


def write_words(folder: Path) -> None:
    """Write words in the spelling of Hungarian with their sounds, `words.tsv`, and some without, `list.txt`."""
    chosen, words = random.Random(0), dict[str, list[str]]()
    while len(words) < 440:
        letters = [part for _ in range(2) for part in map(chosen.choice, (ONSETS, VOWELS, CODAS)) if part]
        words["".join(letters)] = [SOUNDS.get(part, part) for part in letters]
    pairs = [f"{word}\t{' '.join(sounds)}\n" for word, sounds in words.items()]
    (folder / "words.tsv").write_text("".join(pairs[:400]), encoding="utf-8")
    (folder / "list.txt").write_text("".join(f"{word}\n" for word in list(words)[400:]), encoding="utf-8")
