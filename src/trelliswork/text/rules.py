r"""The default tokeniser: rules over Unicode properties, for languages that separate words, with nothing to train.

Web addresses, e-mail addresses, handles, emoji, emoticons, numbers, abbreviations and words with a hyphen inside stay
whole; clitics are cut off (do|n't, Ann|'s, l'|homme); other words end at Unicode word boundaries (Unicode Standard
Annex 29). Han characters and hiragana, whose words no rule can tell, are one token each: train a tokeniser for them.

>>> [[token.text for token in sentence] for sentence in tokenise("Dr. Lee can't come (e.g. on 3.5.). Ask bob@x.org!")]
[['Dr.', 'Lee', 'ca', "n't", 'come', '(', 'e.g.', 'on', '3.5.', ')', '.'], ['Ask', 'bob@x.org', '!']]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import regex

from trelliswork.lazy import Later

VERSION = 2  # of these rules; the first are in `first_rules`, for models that were trained when there were no others
# Words that are written with a full stop and do not end a sentence by themselves: before a name, before a number, and
# anywhere.
_TITLES = (
    "mr mrs ms dr drs dres prof profs rev hon st ste ft mt gen col lt sgt maj capt cpt cmdr gov sen rep pres supt msgr "
    "mgr mme mmes mlle mm hr hrn fr frl dhr mevr mej mw ir ing ds jhr jkvr dott dottssa sig sigg sigra avv arch sr sra "
    "srta sres dra d dña sto sta exmo exma dipl fru frk mag univ messrs"
)
_BEFORE_NUMBERS = (
    "no nos nr nrs nro núm núms num art arts abs fig figs vol vols pp p pag pág págs blz bl abb tab kap par rn rz sec "
    "ch chap ed bd op str tel tél tfno ca circa approx est jan feb mar mär apr jun jul aug ago sep sept set oct okt "
    "out nov dec dez déc févr avr juil janv ene dic"
)
_ANYWHERE = (
    "vs cf viz approx dept inc ltd co corp jr bzw usw evtl ggf inkl exkl bspw sog vgl dgl gest geb bijv enz resp "
    "incl excl evt zgn zog vlg afd etc al av avda blvd rd ave ltda cía ff feat ph.d"
)
MOST_PARTS = 64  # of a number or the name of a host; a bound keeps the time linear in the length of a text
LETTER = r"[\p{L}\p{M}\p{Nd}_\u200C\u200D\u2060\u00AD]"
HYPHEN = r"[-\u2010\u2011]"
_WRITTEN = rf"(?:(?![\p{{Han}}\p{{Hiragana}}]){LETTER})"
_PICTURE = r"\p{Extended_Pictographic}[\uFE0E\uFE0F\u20E3\p{Emoji_Modifier}\U000E0020-\U000E007F]*"
_MONTHS = (
    "januar jänner februar feber märz april mai juni juli august september oktober november dezember jahrhundert jh "
    "jahrhunderts januari februari maart mei augustus december marts maj"
)


def _any_of(words: str) -> str:
    return "|".join(regex.escape(word) for word in words.split())


_PATTERN = Later(
    regex.compile,
    rf"""
      (?P<address> (?:https?://|ftp://|www\.) [^\s<>"'“”«»]* [^\s<>"'“”«»\p{{P}}]/?
                 | (?<![\w.+-]) [\w.+-]++ @ [\w-]++ (?:\.[\w-]+)+
                 | (?<![\w.-]) [\p{{L}}\p{{N}}] [\p{{L}}\p{{N}}-]*+ (?:\.[\p{{L}}\p{{N}}-]++){{0,{MOST_PARTS}}}
                   \.(?:com|org|net|edu|gov|io|info|co\.uk|de|nl|be|es|fr|it|eu|ch|at|pt)\b (?!\.?{LETTER}) )
    | (?P<handle>  (?<!\w) [@\#] (?=\p{{Nd}}*[\p{{L}}_]) {LETTER}+ )
    | (?P<emoji>   \p{{Regional_Indicator}}{{2}} | [0-9\#*]\uFE0F?\u20E3 | {_PICTURE} (?:\u200D{_PICTURE})*
                 | (?<![\p{{L}}\p{{N}}]) (?:[:;=8][-o^']?[()\[\]dDpP/\\|*3]+|<3+|\^_+\^|[xX]D+)
                   (?![\p{{L}}\p{{N}}]) )
    | (?P<initials> (?<!{LETTER}) (?:\p{{L}}\p{{M}}*\.){{2,}}+ (?: \p{{L}}{{2,4}}\. (?!{LETTER}) )?
                 | (?<!{LETTER}) (?:\p{{Lu}}{{2}}\.){{2,}}+
                 | (?<!{LETTER}) \p{{L}}\p{{M}}*\.\p{{L}}{{2,4}}\. (?!{LETTER})
                 | (?<!{LETTER}) \p{{Lu}}\p{{M}}*\. (?= {HYPHEN}?\p{{Lu}} | \s+[\p{{L}}(] | [,;:)\]] )
                   (?: {HYPHEN}\p{{Lu}}\p{{M}}*\. )* )
    | (?P<short>   (?<!{LETTER}) (?: (?i:{_any_of(_TITLES)})\. (?= \s+[\p{{Lu}}\p{{Lt}}\p{{Lo}}] )
                   | (?i:{_any_of(_BEFORE_NUMBERS)})\. (?= \s*\p{{Nd}} | \s+[IVXLC]{{2,}}\b )
                   | (?i:{_any_of(_ANYWHERE)})\. (?!{LETTER}) ) )
    | (?P<ordinal> (?<!{LETTER}) \p{{Nd}}{{1,2}}\. (?= \s+ (?: \p{{Ll}} | (?i:{_any_of(_MONTHS)})\b ) ) )
    | (?P<number>  (?<!{LETTER}) \p{{Nd}}++ (?:(?:[.,:/'’]|{HYPHEN})\p{{Nd}}+){{0,{MOST_PARTS}}}+ (?: \.(?=[\p{{P}}]) )?
                   (?! {LETTER} | {HYPHEN}\p{{L}} ) )
    | (?P<elided>   (?<![\p{{L}}\p{{N}}]) ['’] (?: \p{{Nd}}{{2}} (?!{LETTER})
                   | (?: [sntkmr] | tis | twas | em | cause | til | bout ) \b (?=\s) ) )
    | (?P<han>     [\p{{Han}}\p{{Hiragana}}] [\p{{M}}]* )
    | (?P<word>    {_WRITTEN}+
                   (?: (?: ['’·](?=\p{{L}}) | {HYPHEN} ['’]?(?=[\p{{L}}\p{{Nd}}]) | (?<=\p{{Nd}})[.,](?=\p{{Nd}}) )
                       {_WRITTEN}+ )*
                   (?: {HYPHEN} (?= \s+ (?:und|oder|bzw|sowie|en|of|and|or|to|och|og|eller|resp)\b ) )? )
    | (?P<run>     \.{{2,}} | -{{2,}} | <{{2,}} | >{{2,}} | ,, | ([!?*=_~])[!?*=_~]* | `` | '' )
    | (?P<single>  \X )
    """,
    regex.VERBOSE | regex.V1,
)
_WHOLE = frozenset({"address", "handle", "emoji"})
_CLITIC = regex.compile(r"(?i)(n['’]t|['’](?:s|re|ve|ll|d|m)|(?<=^\p{Nd}{1,2})[ap]m)$")
_ELISION = regex.compile(
    r"(?i)^(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu|quelqu|un|dell|all|nell|dall|sull|coll|gl|degl|agl|quest|sant)['’]"
)
_ENDS = regex.compile(r"[.!?…‼⁇⁈⁉؟۔।॥።។៕။]+|[。！？｡]+")
_WIDE_END = regex.compile(r"[。！？｡]+")
_CLOSES = regex.compile(r"[\p{Pe}\p{Pf}\"'’”»]+")
_BEGINS = regex.compile(r"[\p{Ps}\p{Pi}\"'‘“«¿¡\p{Lu}\p{Lt}\p{Lo}\p{Nd}\p{So}*•–—@#-]")
MOST_CLOSING = 8  # marks after an end mark
_BLANK_LINE = regex.compile(r"\n[^\S\n]*\n\s*")


class Piece(NamedTuple):
    """The place of a token, and whether it is an address, a handle or an emoji."""

    start: int
    end: int
    whole: bool


class RuleTokeniser:
    """Sentences and tokens by rules, the same for every language."""

    def tokenise(self, text: str) -> list[list[Token]]:
        """Return the sentences of a text; a blank line always ends one."""
        sentences: list[list[Token]] = []
        for begin, end in paragraphs(text):
            tokens = [Token(text[start:stop], start, stop) for start, stop, _ in pieces(text, begin, end)]
            sentences += split(tokens, lambda at, tokens=tokens: ends_sentence(tokens, at))  # type: ignore[misc]
        return sentences


def tokenise(text: str) -> list[list[Token]]:
    """Return the sentences of a text and their tokens, by rules; see `RuleTokeniser`."""
    return RuleTokeniser().tokenise(text)


def paragraphs(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each paragraph begins and ends; a blank line is between them."""
    place = 0
    for gap in _BLANK_LINE.finditer(text):
        yield place, gap.start()
        place = gap.end()
    yield place, len(text)


def pieces(text: str, begin: int, end: int) -> Iterator[Piece]:
    """Yield the tokens of text[begin:end] by their places.

    Args:
        text: The raw text.
        begin: Where to begin.
        end: Where to end.

    Returns:
        An iterator over the places of the tokens.
    """
    for match in _PATTERN.finditer(text, begin, end):
        if match[0].isspace():
            continue
        start, stop = match.span()
        for cut in (*(_cuts(match[0]) if match.lastgroup == "word" else ()), stop - match.start()):
            yield Piece(start, match.start() + cut, match.lastgroup in _WHOLE)
            start = match.start() + cut


def _cuts(word: str) -> list[int]:
    """Return the places where clitics part from a word."""
    clitic, elision = _CLITIC.search(word), _ELISION.match(word)
    if clitic is not None and clitic.start() > 0:
        return [clitic.start()]
    return [elision.end()] if elision is not None and elision.end() < len(word) else []


def split(tokens: Sequence[Token], is_end: Callable[[int], bool]) -> Iterator[list[Token]]:
    """Yield the sentences of a paragraph; `is_end` tells whether one ends with the token of that number."""
    first = 0
    for at in range(len(tokens) - 1):
        if is_end(at):
            yield list(tokens[first : at + 1])
            first = at + 1
    if tokens[first:]:
        yield list(tokens[first:])


def mark_of(tokens: Sequence[Token], at: int) -> int:
    """Return the token with the end mark, if token `at`, maybe a closing quotation mark or bracket, ends a sentence."""
    mark = at
    while (
        mark > max(0, at - MOST_CLOSING)
        and _CLOSES.fullmatch(tokens[mark].text)
        and tokens[mark].start == tokens[mark - 1].end
    ):
        mark -= 1
    return mark


def ends_sentence(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a sentence ends after a token: an end mark, maybe closed, before what can begin another."""
    mark, following = tokens[mark_of(tokens, at)], tokens[at + 1]
    if not _ENDS.fullmatch(mark.text):
        return False
    if _CLOSES.fullmatch(following.text) and following.start == tokens[at].end:
        return False  # what closes belongs to this sentence
    if _WIDE_END.fullmatch(mark.text):
        return not _ENDS.fullmatch(following.text)
    return following.start > tokens[at].end and bool(_BEGINS.match(following.text))


# What a tokeniser returns.


@dataclass(frozen=True)
class Token:
    """A token and its place text[start:end], counted in code points.

    `words` are the syntactic words of a multi-word token, such as "de" and "le" of French "du"; else the token alone.
    """

    text: str
    start: int
    end: int
    words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.words:
            object.__setattr__(self, "words", (self.text,))


class Tokeniser(Protocol):
    """Anything that finds the sentences of a text and their tokens."""

    def tokenise(self, text: str) -> list[list[Token]]:
        """Return the sentences of a text; tokens never overlap and keep their order."""
        ...
