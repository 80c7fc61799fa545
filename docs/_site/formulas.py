"""From the formulas of the `math.md` pages, written as plain text, to MathML that browsers show by themselves.

>>> formula("α_t")
'<math displaystyle="true"><msub><mi>α</mi><mi>t</mi></msub></math>'
"""

from __future__ import annotations

import re
from html import escape
from typing import NamedTuple

TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<word>[^\W\d_]\u0302?\u0307?[^\W\d_\u0302\u0307]*)|(?P<number>\d+(?:\.\d+)?(?:e-?\d+)?)"
    r"|(?P<script>[_^])|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<prime>'+)|(?P<other>\.\.\.|\.\.|<=|>=|\+=|-=|.)"
)
GREEK = re.compile(r"[Α-Ωα-ωℓ∂]")
LARGE = {"Σ": "∑", "Π": "∏", "⊕": "⨁", "⊗": "⨂"}
LIMITS = {*LARGE, "max", "min", "argmax", "argmin", "logadd", "mean"}
SIGNS = {"-": "−", "<=": "≤", ">=": "≥", "..": "…", "...": "…", "*": "∗", "~": "∼", "+=": "+=", "-=": "−="}
ARROWS = "→←"
OPERATORS = set("=+−−/∗·,;:|<>≤≥≠∈∋∪∼→←∝⊕⊗∂∘…") | {"+=", "−="}


class Token(NamedTuple):
    kind: str
    text: str


def tokens(text: str) -> list[Token]:
    """Letters of a run that holds Greek ones are single symbols; runs of Latin letters are words."""
    found: list[Token] = []
    for match in TOKEN.finditer(text):
        kind = str(match.lastgroup)
        if kind == "word" and GREEK.search(match[0]):
            found += [Token("word", part) for part in re.findall(r"[Α-Ωα-ωℓ∂][\u0302\u0307]?|[^Α-Ωα-ωℓ∂]+", match[0])]
        else:
            found.append(Token(kind, match[0]))
    return found


def formula(text: str) -> str:
    """One formula as an element <math>."""
    return f'<math displaystyle="true">{Reader(tokens(text.strip())).row()}</math>'


class Reader:
    """Reads tokens from left to right; an atom takes the scripts that follow it."""

    def __init__(self, found: list[Token]) -> None:
        self.tokens, self.place, self.marked = found, 0, -1

    def peek(self, ahead: int = 0) -> Token:
        place = self.place + ahead
        return self.tokens[place] if place < len(self.tokens) else Token("end", "")

    def take(self) -> Token:
        token = self.peek()
        self.place = min(self.place + 1, len(self.tokens))
        return token

    def row(self, until: str = "") -> str:
        parts = []
        while self.peek().kind != "end" and self.peek().text != until:
            parts.append(self.space() if self.peek().kind == "space" else self.scripted())
        return "".join(parts)

    def space(self) -> str:
        """Blanks count between things that stand next to each other; around an operator MathML has its own."""
        before = self.tokens[self.place - 1] if self.place else Token("end", "")
        before = Token("close", "") if self.place == self.marked else before
        width = len(self.take().text)
        if width > 2:
            return '<mspace width="1.5em"/>'
        if is_operator(before) or is_operator(self.peek()):
            return ""
        words = any(each.kind == "word" and len(each.text) > 1 for each in (before, self.peek()))
        return f'<mspace width="{"0.3em" if words else "0.17em"}"/>'

    def scripted(self) -> str:
        base = self.peek()
        atom = self.atom()
        lower, upper = "", ""
        while self.peek().kind in ("script", "prime") or self.is_mark():
            token = self.take()
            if token.kind == "prime":
                upper += f"<mo>{'′' * len(token.text)}</mo>"
            elif token.text in "_^":
                found = self.script()
                lower, upper = (lower + found, upper) if token.text == "_" else (lower, upper + found)
            else:
                upper, self.marked = upper + f"<mo>{SIGNS.get(token.text, token.text)}</mo>", self.place
        return attached(base, atom, lower, upper)

    def is_mark(self) -> bool:
        """A star of closure or an arrow of Eisner's items: written right behind a symbol, before no symbol."""
        token, behind = self.peek(), self.tokens[self.place - 1]
        after = self.peek(1)
        closes = after.kind in ("end", "space", "close", "script") or after.text in (",", ";")
        return behind.kind in ("word", "close") and (
            (token.text == "*" and closes) or (token.text in ARROWS and after.text == "(")
        )

    def script(self) -> str:
        if self.peek().text in ("{", "("):
            return self.group(keep=False)
        if self.peek().text in ("<=",):  # y_<=j
            return self.atom() + self.atom()
        token = self.take()
        if token.kind == "word" and len(token.text) in (2, 3) and not token.text.isupper() and token.text != "end":
            return "".join(f"<mi>{letter}</mi>" for letter in token.text)  # W_ij
        return atom_of(token)

    def group(self, keep: bool = True) -> str:
        start = self.take().text
        end = {"(": ")", "[": "]", "{": "}"}[start]
        inside = self.row(end)
        closed = self.take().text == end
        if not keep:
            return inside
        return fence(start) + inside + (fence(end) if closed else "")

    def atom(self) -> str:
        if self.peek().kind == "open":
            return f"<mrow>{self.group()}</mrow>"
        return atom_of(self.take())


def attached(base: Token, atom: str, lower: str, upper: str) -> str:
    """An atom with what stands below and above it."""
    lower, upper = (f"<mrow>{each}</mrow>" if each.count("<m") > 1 else each for each in (lower, upper))
    if lower and base.text in LIMITS:
        large = LARGE.get(base.text)
        atom = f'<mo largeop="true" movablelimits="false">{large}</mo>' if large else f"<mo>{base.text}</mo>"
        under = f"<munder>{atom}{lower}</munder>"
        return f"<msup>{under}{upper}</msup>" if upper else under
    if lower and upper:
        return f"<msubsup>{atom}{lower}{upper}</msubsup>"
    if lower or upper:
        kind = "msub" if lower else "msup"
        return f"<{kind}>{atom}{lower or upper}</{kind}>"
    return atom


def atom_of(token: Token) -> str:
    text = escape(SIGNS.get(token.text, token.text))
    if token.kind == "number":
        return f"<mn>{text}</mn>"
    if token.text in LARGE and token.text in "ΣΠ":
        return f'<mo largeop="true">{LARGE[token.text]}</mo>'
    if token.kind == "word":
        return f"<mi>{text}</mi>"
    if token.kind == "close":
        return fence(token.text)
    if token.text == "|":
        return '<mo stretchy="false" lspace="0.2em" rspace="0.2em">|</mo>'
    return f"<mo>{text}</mo>"


def fence(text: str) -> str:
    return f'<mo stretchy="false">{text}</mo>'


def is_operator(token: Token) -> bool:
    return token.kind == "end" or SIGNS.get(token.text, token.text) in OPERATORS


# --- lines and pages -----------------------------------------------------------------------------------------

NUMBER = re.compile(r"\s+\((\d+[a-z]?)\)\s*$")
CITED = re.compile(r"\s*\[(S\d[^\[\]]*)\]\s*")
LOOKS = re.compile(r"[ΣΠ⊕⊗∂∈αβγδπρ]|exp|argmax|\bp\(|[a-z]_[a-z{0-9]|→ \(")
PROGRAM = re.compile(
    r"^\s*(trelliswork|make|python|pip|torchrun|docker|echo|git|\$|curl|server|upstream|limit|>>>)\b", re.M
)
BLOCK = re.compile(r"(?:(?<=\n\n)|\A)((?:    .*\n)+)")
INLINE = re.compile(
    r"(?<![\w`\\/.])([A-Za-zΑ-Ωα-ωℓ][\u0302\u0307]?'?(?:_\{[^}\n]+\}|_[A-Za-z0-9]+\b|\^\{[^}\n]+\}|\^[A-Za-z]\b)+"
    r"(?:\([^()\n`]*\))?)"
)


def line(text: str, cite: str) -> str:
    """A line of a block: its formulas, which may wrap, what it cites, and its number."""
    number = NUMBER.search(text)
    text = NUMBER.sub("", text)
    cited = "".join(f'<span class="cited">{citation(found, cite)}</span>' for found in CITED.findall(text))
    text = CITED.sub("   ", text).strip()
    parts = re.split(r"(?<=[;,])\s{2,}|\s{3,}", text)
    shown = "".join(f'<span class="part">{formula(part)}</span>' for part in parts if part)
    label = f'<span class="number">({number[1]})</span>' if number else ""
    return f'<div class="formula"><div class="parts">{shown}</div><div class="side">{cited}{label}</div></div>'


def citation(found: str, cite: str) -> str:
    """A link from a citation to the row of the index of equations; `cite` is the address of that page."""
    return f'<a href="{cite}#{anchor(found)}">[{escape(found)}]</a>'


def anchor(citation: str) -> str:
    """The name of an equation in an address, by the first that is cited: S4.63, 92; S3.9 is s4-63.

    >>> anchor("S4.63, 92; S3.9"), anchor("S2, edge-factored score"), anchor("S3")
    ('s4-63', 's2-edge-factored-score', 's3')
    """
    first = " ".join(citation.split(";")[0].split())
    numbered = re.match(r"(S\d)\.(\d+)", first)
    text = f"{numbered[1]}-{numbered[2]}" if numbered else first
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def is_formulas(block: str) -> bool:
    return bool(LOOKS.search(block)) and not PROGRAM.search(block) and "{" + '"' not in block


def with_formulas(text: str, cite: str, inline: bool = True) -> str:
    """A page in which indented formulas, and symbols with indices in sentences, are MathML."""

    def block(match: re.Match[str]) -> str:
        if not is_formulas(match[1]):
            return match[1]
        return f'<div class="formulas">{"".join(line(each, cite) for each in match[1].splitlines())}</div>\n'

    pieces = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)  # fenced code stays
    for i in range(0, len(pieces), 2):
        found = BLOCK.sub(block, pieces[i])
        pieces[i] = "\n".join(map(symbols, found.split("\n"))) if inline else found
    return "".join(pieces)


def symbols(text: str) -> str:
    """A line of prose with its symbols as MathML; code, formulas and rules of tables stay."""
    if text.startswith(('<div class="formulas"', "    ")):
        return text
    parts = re.split(r"(`[^`]*`|\]\([^)]*\))", text)
    parts[::2] = [
        INLINE.sub(lambda match: formula(match[1]).replace(' displaystyle="true"', ""), part) for part in parts[::2]
    ]
    return "".join(parts)
