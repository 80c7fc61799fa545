r"""The default tokeniser: rules over Unicode properties, for languages that separate words, with nothing to train.

Web addresses, e-mail addresses, handles, emoji, emoticons, numbers and abbreviations stay whole; clitics are cut off
(do|n't, Ann|'s, l'|homme); other words end at Unicode word boundaries (Unicode Standard Annex 29), so that hyphens are
tokens of their own. Han characters and hiragana, whose words no rule can tell, are one token each: train a tokeniser
for them.

>>> [[token.text for token in sentence] for sentence in tokenise("Dr. Lee can't come (e.g. on 3.5.). Ask bob@x.org!")]
[['Dr.', 'Lee', 'ca', "n't", 'come', '(', 'e.g.', 'on', '3.5.', ')', '.'], ['Ask', 'bob@x.org', '!']]
"""

from __future__ import annotations

from collections.abc import Iterator

import regex

from trelliswork.text.tokens import Token

# Words that are written with a full stop and do not end a sentence by themselves.
_TITLES = "mr mrs ms dr prof rev hon st gen col lt sgt capt gov sen rep pres mme mlle hr fr frl dott sig sra dra"
_OTHERS = (
    "vs cf fig figs no nr op pp vol ed eds approx dept est inc ltd co corp jr sr ca bzw usw evtl ggf inkl resp str "
    "tel vgl bd abb av avda blvd rd ave jan feb mar apr jun jul aug sep sept oct nov dec art etc al dgl sog ing"
)
_LETTER = r"[\p{L}\p{M}\p{Nd}_\u200C\u200D\u00AD]"
_PICTURE = r"\p{Extended_Pictographic}[\uFE0E\uFE0F\u20E3\p{Emoji_Modifier}\U000E0020-\U000E007F]*"
_PATTERN = regex.compile(
    rf"""
      (?P<address> (?:https?://|ftp://|www\.) [^\s<>"'“”«»]* [^\s<>"'“”«»\p{{P}}]/?
                 | [\w.+-]+ @ [\w-]+ (?:\.[\w-]+)+
                 | (?<!\w) [\p{{L}}\p{{N}}-]+ (?:\.[\p{{L}}\p{{N}}-]+)* \.(?:com|org|net|edu|gov|io|info|co\.uk)\b )
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
_BLANK_LINE = regex.compile(r"\s*\n\s*\n\s*")


class RuleTokeniser:
    """Sentences and tokens by rules, the same for every language."""

    def tokenise(self, text: str) -> list[list[Token]]:
        """The sentences of a text; a blank line always ends one."""
        sentences: list[list[Token]] = []
        place = 0
        for gap in [*_BLANK_LINE.finditer(text), None]:
            end = len(text) if gap is None else gap.start()
            sentences += _sentences(text, list(_tokens(text, place, end)))
            place = end if gap is None else gap.end()
        return sentences


def tokenise(text: str) -> list[list[Token]]:
    """The sentences of a text and their tokens, by rules; see `RuleTokeniser`."""
    return RuleTokeniser().tokenise(text)


def _tokens(text: str, begin: int, end: int) -> Iterator[Token]:
    for match in _PATTERN.finditer(text, begin, end):
        if match[0].isspace():
            continue
        start, stop = match.span()
        for cut in (*(_cuts(match[0]) if match.lastgroup == "word" else ()), stop - match.start()):
            yield Token(text[start : match.start() + cut], start, match.start() + cut)
            start = match.start() + cut


def _cuts(word: str) -> list[int]:
    """Where clitics part from a word."""
    clitic, elision = _CLITIC.search(word), _ELISION.match(word)
    if clitic is not None and clitic.start() > 0:
        return [clitic.start()]
    return [elision.end()] if elision is not None and elision.end() < len(word) else []


def _sentences(text: str, tokens: list[Token]) -> Iterator[list[Token]]:
    first = 0
    for at in range(len(tokens) - 1):
        if at >= first and _ends_sentence(text, tokens, at):
            yield tokens[first : at + 1]
            first = at + 1
    if tokens[first:]:
        yield tokens[first:]


def _ends_sentence(text: str, tokens: list[Token], at: int) -> bool:
    """Whether a sentence ends after a token: an end mark, perhaps closed, before something that can begin one."""
    mark, following = at, tokens[at + 1]
    while mark > 0 and _CLOSES.fullmatch(tokens[mark].text) and tokens[mark].start == tokens[mark - 1].end:
        mark -= 1
    if not _ENDS.fullmatch(tokens[mark].text):
        return False
    if _CLOSES.fullmatch(following.text) and following.start == tokens[at].end:
        return False  # what closes belongs to this sentence
    if _WIDE_END.fullmatch(tokens[mark].text):
        return not _ENDS.fullmatch(following.text)
    return following.start > tokens[at].end and bool(_BEGINS.match(following.text))
