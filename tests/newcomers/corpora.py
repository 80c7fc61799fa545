"""Files for newcomers who do not work on English names: columns with their raw text, and spelt words.

Dutch has what a tokeniser made for English cuts wrongly: hyphenated names, abbreviations, initials, ordinals, clitics.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple


class Language(NamedTuple):
    """Names, templates of sentences, and the tokens that keep their full stop."""

    names: dict[str, list[str]]
    templates: list[str]
    whole: set[str]


DUTCH = Language(
    {
        "PER": [
            "Willem-Alexander",
            "dhr. De Vries",
            "J. K. van der Berg",
            "prof. dr. Smit",
            "mevr. Jansen-Bakker",
            "Anne-Marie",
        ],
        "LOC": ["'s-Hertogenbosch", "Den Haag", "Noord-Brabant", "Brussel-Zuid", "IJmuiden", "Sint-Niklaas"],
        "ORG": ["N-VA", "CD&V", "Ajax", "PvdA/GroenLinks", "ING-bank", "VRT-nieuws"],
    },
    [
        "{PER} woont al jaren in {LOC}.",
        "'s Avonds reist {PER} naar {LOC}, zegt {ORG}.",
        "De 27ste verjaardag van {ORG} werd in {LOC} gevierd.",
        '"Ik ga niet," zei {PER} (lid van {ORG}).',
        "Volgens {PER} betaalt {ORG} o.a. 1.250,50 euro per maand.",
        "Waarom koos {ORG} voor {LOC}?",
        "Zo'n foto's maakt {PER} om 10.30 uur bij {ORG}.",
    ],
    {"dhr.", "mevr.", "prof.", "dr.", "J.", "K.", "o.a."},
)
SPANISH = Language(
    {
        "PER": ["José María Aznar-López", "Sr. García", "D. Juan de Borbón", "J. L. Núñez", "Dña. Ana", "Sra. O'Neill"],
        "LOC": ["EE.UU.", "San Sebastián-Donostia", "A Coruña", "L'Hospitalet", "S. Lorenzo", "Castilla-La Mancha"],
        "ORG": ["Izquierda Unida-Los Verdes", "Telefónica S.A.", "UGT/CC.OO.", "AT&T", "Efe", "Cía. Sevillana"],
    },
    [
        "{PER} vive en {LOC} desde 1998.",
        "¿Por qué ha ido {PER} a {LOC}?",
        "«No lo sé», dijo {PER} ({ORG}).",
        "La n.º 3 de {ORG} costó 1.250,50 pesetas, según {PER}.",
        "¡{ORG} ganó en {LOC} por 3-2!",
        "El 12-10-98 se reunieron {PER} y {ORG} en {LOC}.",
    ],
    {"Sr.", "Sra.", "D.", "Dña.", "J.", "L.", "S.", "EE.UU.", "S.A.", "UGT/CC.OO.", "Cía.", "n.º"},
)
GERMAN = Language(
    {
        "PER": [
            "Dr. Weber",
            "Karl-Heinz",
            "J. S. Bach",
            "Hans-Jürgen v. Ow",
            "Prof. Müller-Lüdenscheidt",
            "D'Angelo",
        ],
        "LOC": ["Baden-Baden", "St. Gallen", "Frankfurt/Main", "Nordrhein-Westfalen", "Bad Neuenahr-Ahrweiler", "Ulm"],
        "ORG": ["1. FC Köln", "SPD-Fraktion", "C&A", "Daimler-Benz", "US-Air-Force", "Hertha BSC"],
    },
    [
        "{PER} kam am 3. Oktober nach {LOC}.",
        "Der 2. Platz ging an {ORG}, z.B. in {LOC}.",
        '"Das geht nicht", sagte {PER} ({ORG}).',
        "Um 10.30 Uhr verlor {ORG} in {LOC} 1:3!",
        "Warum hat {ORG} {PER} 1.250,50 Mark gezahlt?",
        "Der 27-jährige {PER} wohnt seit '98 in {LOC}.",
    ],
    {"Dr.", "J.", "S.", "Prof.", "v.", "St.", "1.", "2.", "3.", "z.B."},
)
_MARKED = re.compile(r"\[(\w+) ([^\]]*)\]")


class Written(NamedTuple):
    """A sentence as it is written, and as columns: its tokens with their tags."""

    text: str
    rows: list[tuple[str, str]]


def sentences_in(language: Language, n: int, seed: int, n_names: int) -> list[Written]:
    """Return sentences of the kind that newspapers have, with the first `n_names` names of each sort."""
    chosen = random.Random(seed)
    fillers = {sort: names[:n_names] for sort, names in language.names.items()}
    marked = [
        re.sub(
            r"\{(\w+)\}",
            lambda name: f"[{name[1]} {chosen.choice(fillers[name[1]])}]",
            chosen.choice(language.templates),
        )
        for _ in range(n)
    ]
    return [Written(_MARKED.sub(r"\2", text), list(_rows(text, language.whole))) for text in marked]


def _rows(marked: str, whole: set[str]) -> list[tuple[str, str]]:
    rows, position = list[tuple[str, str]](), 0
    for name in _MARKED.finditer(marked):
        rows += [(token, "O") for token in _tokens(marked[position : name.start()], whole)]
        for place, token in enumerate(_tokens(name[2], whole)):
            rows.append((token, f"{'I' if place else 'B'}-{name[1]}"))
        position = name.end()
    return rows + [(token, "O") for token in _tokens(marked[position:], whole)]


def _tokens(text: str, whole: set[str]) -> list[str]:
    """Split as newspapers' corpora do: at spaces, and punctuation at the ends of a word, but not of abbreviations."""
    tokens = list[str]()
    for part in text.split():
        if part in whole:
            tokens.append(part)
            continue
        opening = part[: len(part) - len(part.lstrip('"(«¿¡'))]
        rest = part[len(opening) :]
        word = rest.rstrip('"),.?!»')
        tokens += [*opening, *([word] if word else []), *rest[len(word) :]]
    return tokens


def write_dutch(folder: Path, sizes: tuple[int, int, int]) -> None:
    """Write `train.conll`, `dev.conll` and `test.conll`, and `story.txt` and `new.txt` with the text of the last.

    A third of the names are in the last part only.
    """
    for seed, (part, size) in enumerate(zip(("train", "dev", "test"), sizes, strict=True)):
        sentences = sentences_in(DUTCH, size, seed, 6 if part == "test" else 4)
        columns = ("".join(f"{token} {tag}\n" for token, tag in sentence.rows) + "\n" for sentence in sentences)
        (folder / f"{part}.conll").write_text("".join(columns), encoding="utf-8")
    for name in ("story.txt", "new.txt"):
        (folder / name).write_text(" ".join(sentence.text for sentence in sentences) + "\n", encoding="utf-8")


def cut_names(folder: Path) -> list[str]:
    """Return the names of `story.txt` that `story.jsonl` cuts."""
    text = (folder / "story.txt").read_text(encoding="utf-8")
    records = map(json.loads, (folder / "story.jsonl").read_text(encoding="utf-8").splitlines())
    return cut_in(DUTCH, text, [record["offsets"] for record in records])


def cut_in(language: Language, text: str, sentences: Sequence[Sequence[Sequence[int]]]) -> list[str]:
    """Return the names in a text of which a border is no border of a token, or in which a sentence ends.

    `sentences` are lists of tokens (start, end).
    """
    starts, ends = map(set, zip(*chain.from_iterable(sentences), strict=True))
    lasts = [tokens[-1][1] for tokens in sentences]
    return [
        name[0]
        for name in names_in(language, text)
        if name.start() not in starts
        or name.end() not in ends
        or any(name.start() < last < name.end() for last in lasts)
    ]


def names_in(language: Language, text: str) -> Iterator[re.Match[str]]:
    """Find the names, the longest where two begin alike."""
    names = sorted(chain.from_iterable(language.names.values()), key=len, reverse=True)
    return re.finditer("|".join(map(re.escape, names)), text)


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
