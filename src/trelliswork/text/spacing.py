"""A plausible text of tokens, for files that have lost their white space: columns of words, lists of tokens.

Marks touch the word before or after them, quotes open and close in turn, clitics touch their word (do|n't, Ann|'s,
l'|homme). A hyphen, a slash or a colon that is a token of its own may have been cut out of a word (state - of - the -
art) or have stood between spaces; the file itself tells: where words with a hyphen inside are tokens, a lone one is a
dash.

>>> plausible_text([["Ann", "said", ":", '"', "I", "do", "n't", "(", "yet", ")", ".", '"']]).text
'Ann said: "I don\\'t (yet)."'
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice

import regex

from trelliswork.text.documents import BLANK_LINE, WRITTEN_FOR, Document
from trelliswork.text.rules import Token

MOST_CHARACTERS = 1_000_000  # of a text; more tokens say little more of how they are cut
FREQUENT, AT_LEAST = 100, 20  # words, and times that they are seen, that rarely are parts of a compound: and, the, of
KEPT = 0.25  # share of separators inside tokens from which a lone one stands between spaces
OFTEN = 3  # times that tell a habit from a slip
_CLASSES = r"\p{L}\p{M}"
_INSIDE = regex.compile(rf"([{_CLASSES}]|\p{{Nd}})([-‐‑/:·])(?=([{_CLASSES}]|\p{{Nd}}))")
_SEPARATOR = regex.compile(r"[-‐‑/:·]")
_ADDRESS = regex.compile(r"://|^www\.|@.*\.")
_LEFT = regex.compile(r"[,;:!?%°…\p{Pe}]+|[.]+|[。、，．；：！？]+")
_RIGHT = regex.compile(r"[\p{Ps}¿¡$£€#@]+")
_CLITIC = regex.compile(r"(?i)['’](?:s|re|ve|ll|d|m)|n['’]t")
_ELISION = regex.compile(r"\p{L}+['’]")
_SUFFIX = regex.compile(r"-[\p{L}\p{M}-]*\p{L}")
_HALVES = regex.compile(r"(?i)(?:gon|wan) na|got ta|(?:gim|lem) me")
_SENTENCE_END = regex.compile(r"[.!?…。！？؟।]['\"’”»)\]]*$")
UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_UNSPACED = regex.compile(rf"[{UNSPACED}ー々〆\p{{Block=CJK_Symbols_And_Punctuation}}\uFF01-\uFF65]")
_ONE_UNSPACED = regex.compile(rf"[{UNSPACED}]")
# What closes a quotation, by what opens it; quotes that are the same on both sides close themselves.
_QUOTES = {
    '"': '"', "'": "'", "`": "'", ",,": "\"''", "“": "”", "”": "”", "„": "“”\"", "‚": "‘’", "‘": "’", "’": "’",
    "«": "»", "»": "«", "‹": "›", "›": "‹",
}  # fmt: skip


def plausible_text(sentences: Sequence[Sequence[str]], *, most: int | None = MOST_CHARACTERS) -> Document:
    """Return a text that has these tokens; a sentence without an end mark is a paragraph.

    Of more than `most` characters some sentences are left out, here and there.
    """
    n_characters = sum(len(word) + 1 for words in sentences for word in words)
    share = 1.0 if most is None else min(1.0, most / max(n_characters, 1))
    some = (words for i, words in enumerate(sentences) if int((i + 1) * share) > int(i * share))
    taken = [words for words in map(_written, some) if words]
    spacing = _Spacing(taken)
    parts: list[str] = []
    token_rows: list[tuple[Token, ...]] = []
    place = 0
    for words in taken:
        tokens = []
        for word, touches in zip(words, [*spacing.touching(words), True], strict=True):
            tokens.append(Token(word, place, place + len(word)))
            parts += [word] if touches else [word, " "]
            place += len(parts[-1]) if touches else len(word) + 1
        token_rows.append(tuple(tokens))
        gap = _gap(words)
        parts.append(gap)
        place += len(gap)
    return Document("".join(parts).rstrip(), tuple(token_rows))


def is_unspaced(sentences: Iterable[Sequence[str]]) -> bool:
    """Return whether words are mostly of scripts that put no white space between them, such as Chinese and Thai."""
    letters = Counter(
        bool(_ONE_UNSPACED.match(word)) for words in islice(sentences, 1000) for word in words if word[:1].isalpha()
    )
    return letters[True] > letters[False]


def _gap(words: Sequence[str]) -> str:
    """Return the white space between a sentence and the next."""
    if not _SENTENCE_END.search(words[-1]) and not (len(words) > 1 and _SENTENCE_END.search(words[-2] + words[-1])):
        return BLANK_LINE
    return "" if _UNSPACED.match(words[-1][-1]) else " "


def _written(sentence: Sequence[str]) -> list[str]:
    """Return tokens as they are written in a text."""
    words = ("".join(WRITTEN_FOR.get(word, word).split()) for word in sentence)
    return [word for word in words if word]


class _Spacing:
    """Spacing of tokens, by what a whole file says of its separators and clitics."""

    def __init__(self, sentences: Sequence[Sequence[str]]) -> None:
        self.words = words = Counter(word for sentence in sentences for word in sentence)
        self.frequent = {word for word, n in words.most_common(FREQUENT) if n >= AT_LEAST}
        self.inside, self.clitics_inside = Counter[str](), Counter[str]()
        self.clitics, self.alone = Counter[str](), Counter[str]()
        for word, n in words.items():
            if _CLITIC.fullmatch(word):
                self.clitics[_plain(word)] += n
            if _SEPARATOR.search(word) and not _ADDRESS.search(word):
                for match in _INSIDE.finditer(word):
                    kind = _kind(match[1], match[2], match[3])
                    self.inside.update({kind: n, kind[1]: n})
            if "'" in word or "’" in word:
                match = _CLITIC.search(word, max(0, len(word) - 3))
                if match is not None and match.start() > 0 and match.end() == len(word):
                    self.clitics_inside[_plain(match[0])] += n
        for sentence in sentences:
            for left, mark, right in zip(sentence, sentence[1:], sentence[2:], strict=False):
                if _SEPARATOR.fullmatch(mark) and not {left, right} & self.frequent:
                    kind = _kind(left[-1], mark, right[0])
                    self.alone.update((kind, kind[1]))

    def touching(self, words: Sequence[str]) -> list[bool]:
        """Return for each token but the last whether it touches the next one."""
        touches = [self._touch(words, i) for i in range(len(words) - 1)]
        waiting = ""  # what closes the quotation that is open
        for i, word in enumerate(words):
            if word not in _QUOTES:
                continue
            last = i == len(touches)
            if i and ((waiting and word in waiting) or last or _LEFT.fullmatch(words[i + 1])):
                waiting, touches[i - 1] = "", True
            elif not last:
                waiting, touches[i] = _QUOTES[word], True
                if i:
                    touches[i - 1] = bool(_RIGHT.fullmatch(words[i - 1]))
        return touches

    def _touch(self, words: Sequence[str], i: int) -> bool:
        left, right = words[i], words[i + 1]
        if _UNSPACED.match(left[-1]) and _UNSPACED.match(right[0]):
            return True
        if _SEPARATOR.fullmatch(right) and i + 2 < len(words) and self._cut_out(left, right, words[i + 2]):
            return True
        if _SEPARATOR.fullmatch(left) and i > 0 and self._cut_out(words[i - 1], left, right):
            return True
        if _CLITIC.fullmatch(right):
            clitic = _plain(right)
            return left[-1].isalnum() and self.clitics_inside[clitic] <= KEPT * self.clitics[clitic]
        if _ELISION.fullmatch(left):
            return bool(regex.match(r"(?i)[aeiouyhœæ]", unicodedata.normalize("NFD", right)))
        if _HALVES.fullmatch(f"{left} {right}"):
            return True
        return bool(_LEFT.fullmatch(right) or _RIGHT.fullmatch(left) or self._is_suffix(right))

    def _is_suffix(self, word: str) -> bool:
        """French -il and -ce, but no half of a compound that was cut once."""
        return bool(_SUFFIX.fullmatch(word)) and self.words[word] >= OFTEN

    def _cut_out(self, left: str, mark: str, right: str) -> bool:
        """Return whether a mark between two tokens was cut out of a word."""
        if not (left[-1].isalnum() and right[0].isalnum()):
            return False
        if mark == ":" and not (left[-1].isdigit() and right[0].isdigit()):
            return False
        kind = _kind(left[-1], mark, right[0])
        is_seen = self.inside[kind] + self.alone[kind] >= OFTEN
        if is_seen and not self._parts_words(kind):
            return False
        # Between a letter and a digit, as in "Madrid 83 - Sevilla 73", the mark has to part words elsewhere too.
        return (is_seen and kind[0] == kind[2]) or self._parts_words(kind[1])

    def _parts_words(self, kind: str) -> bool:
        """Return whether marks of a kind are mostly tokens of their own."""
        return self.alone[kind] > 0 and self.inside[kind] < KEPT * (self.inside[kind] + self.alone[kind])


def _kind(left: str, mark: str, right: str) -> str:
    """Letters or digits on either side of a mark."""
    return f"{'0' if left.isdigit() else 'a'}{'-' if mark in '‐‑' else mark}{'0' if right.isdigit() else 'a'}"


def _plain(clitic: str) -> str:
    return clitic.lower().replace("’", "'")
