"""The rules of the first models, which cut words at hyphens; models that were trained with them still read by them.

The parts of addresses have the greatest lengths that the standards of mail (RFC 5321) and of names of hosts (RFC 1035)
allow, so that the time stays linear in the length of a text.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import regex

from trelliswork.lazy import Later
from trelliswork.text.rules import Token

# Words that are written with a full stop and do not end a sentence by themselves.
_TITLES = "mr mrs ms dr prof rev hon st gen col lt sgt capt gov sen rep pres mme mlle hr fr frl dott sig sra dra"
_OTHERS = (
    "vs cf fig figs no nr op pp vol ed eds approx dept est inc ltd co corp jr sr ca bzw usw evtl ggf inkl resp str "
    "tel vgl bd abb av avda blvd rd ave jan feb mar apr jun jul aug sep sept oct nov dec art etc al dgl sog ing"
)
_LETTER = r"[\p{L}\p{M}\p{Nd}_\u200C\u200D\u00AD]"
_PICTURE = r"\p{Extended_Pictographic}[\uFE0E\uFE0F\u20E3\p{Emoji_Modifier}\U000E0020-\U000E007F]*"
_PATTERN = Later(
    regex.compile,
    rf"""
      (?P<address> (?:https?://|ftp://|www\.) [^\s<>"'“”«»]* [^\s<>"'“”«»\p{{P}}]/?
                 | [\w.+-]{{1,64}} @ [\w-]{{1,63}} (?:\.[\w-]+)+
                 | (?<!\w) [\p{{L}}\p{{N}}-]{{1,63}} (?:\.[\p{{L}}\p{{N}}-]{{1,63}}){{0,8}}
                   \.(?:com|org|net|edu|gov|io|info|co\.uk)\b )
    | (?P<handle>  (?<!\w) [@\#] {_LETTER}+ )
    | (?P<emoji>   \p{{Regional_Indicator}}{{2}} | [0-9\#*]\uFE0F?\u20E3 | {_PICTURE} (?:\u200D{_PICTURE})*
                 | (?<![\p{{L}}\p{{N}}]) (?:[:;=8][-o^']?[()\[\]dDpP/\\|*3]+|<3+|\^_+\^|[xX]D+)
                   (?![\p{{L}}\p{{N}}]) )
    | (?P<initials> (?<!{_LETTER}) (?:\p{{L}}\p{{M}}*\.){{2,}} | (?<!{_LETTER}) \p{{Lu}}\. (?=\s+\p{{Lu}}) )
    | (?P<number>  (?<!{_LETTER}) \p{{Nd}}+ (?:[.,:/'’]\p{{Nd}}+)* (?: \.(?=[\p{{P}}]) )? (?!\p{{L}})
                 | (?<!{_LETTER}) \p{{Nd}}+ (?:st|nd|rd|th)\b )
    | (?P<short>   (?<!{_LETTER}) (?i:{"|".join(f"{_TITLES} {_OTHERS}".split())})\. (?!{_LETTER}) )
    | (?P<han>     [\p{{Han}}\p{{Hiragana}}] [\p{{M}}]* )
    | (?P<word>    (?:(?![\p{{Han}}\p{{Hiragana}}]){_LETTER})+
                   (?: ['’·](?=\p{{L}}) (?:(?![\p{{Han}}\p{{Hiragana}}]){_LETTER})+ )* )
    | (?P<run>     \.{{2,}} | -{{2,}} | ([!?*=_~])[!?*=_~]* | `` | '' )
    | (?P<single>  \X )
    """,
    regex.VERBOSE | regex.V1,
)
_CLITIC = regex.compile(r"(?i)(n['’]t|['’](?:s|re|ve|ll|d|m))$")
_ELISION = regex.compile(
    r"(?i)^(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu|quelqu|un|dell|all|nell|dall|sull|coll|gl|degl|agl|quest|sant)['’]"
)
_ENDS = regex.compile(r"[.!?…‼⁇⁈⁉؟۔।॥።។៕။]+|[。！？｡]+")
_WIDE_END = regex.compile(r"[。！？｡]+")
_CLOSES = regex.compile(r"[\p{Pe}\p{Pf}\"'’”»]+")
_BEGINS = regex.compile(r"[\p{Ps}\p{Pi}\"'‘“«¿¡\p{Lu}\p{Lt}\p{Lo}\p{Nd}\p{So}*•–—@#-]")
_SPACE = regex.compile(r"\s+")


class FirstRules:
    """Sentences and tokens by the rules of version 1, the same for every language."""

    VERSION = 1

    def tokenise(self, text: str) -> list[list[Token]]:
        """Return the sentences of a text; a blank line always ends one."""
        sentences: list[list[Token]] = []
        place = 0
        blank_lines = (gap for gap in _SPACE.finditer(text) if gap[0].count("\n") > 1)
        for gap in [*blank_lines, None]:
            end = len(text) if gap is None else gap.start()
            sentences += _sentences(list(_tokens(text, place, end)))
            place = end if gap is None else gap.end()
        return sentences


def _tokens(text: str, begin: int, end: int) -> Iterator[Token]:
    for match in _PATTERN.finditer(text, begin, end):
        if match[0].isspace():
            continue
        start, stop = match.span()
        for cut in (*(_cuts(match[0]) if match.lastgroup == "word" else ()), stop - match.start()):
            yield Token(text[start : match.start() + cut], start, match.start() + cut)
            start = match.start() + cut


def _cuts(word: str) -> list[int]:
    """Return the places where clitics part from a word."""
    clitic, elision = _CLITIC.search(word), _ELISION.match(word)
    if clitic is not None and clitic.start() > 0:
        return [clitic.start()]
    return [elision.end()] if elision is not None and elision.end() < len(word) else []


def _sentences(tokens: list[Token]) -> Iterator[list[Token]]:
    """Yield the sentences of a paragraph: each has an end mark, perhaps closed, before something that can begin one."""
    first, mark = 0, ""  # the token before what closes a quotation or bracket
    for at, (token, following) in enumerate(pairwise(tokens)):
        if not (at and _CLOSES.fullmatch(token.text) and token.start == tokens[at - 1].end):
            mark = "wide" if _WIDE_END.fullmatch(token.text) else "narrow" if _ENDS.fullmatch(token.text) else ""
        if mark and _ends_sentence(mark, token, following):
            yield tokens[first : at + 1]
            first = at + 1
    if tokens[first:]:
        yield tokens[first:]


def _ends_sentence(mark: str, token: Token, following: Token) -> bool:
    """Return whether a sentence with this kind of end mark ends before the token that follows."""
    if _CLOSES.fullmatch(following.text) and following.start == token.end:
        return False  # what closes belongs to this sentence
    if mark == "wide":
        return not _ENDS.fullmatch(following.text)
    return following.start > token.end and bool(_BEGINS.match(following.text))
