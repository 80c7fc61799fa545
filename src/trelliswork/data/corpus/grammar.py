"""The grammar of the built-in corpus: weighted rules with marked heads, as a text that can be read.

Each line is `parent -> children ; weight`. A symbol is `LABEL/kind`: the label is what a treebank would show, the
kind is a finer distinction that keeps sentences sensible (people smile, firms hire, towns lie by rivers). A star
marks the head child. A symbol that is nobody's parent is a part of speech, filled with a word of the list `kind`
in `lexicon`. `NML` nodes are named entities, typed by their kind: PER, ORG, LOC, PROD, DATE.

The kinds are what makes names decidable in context: "Lincoln" is a person after "Dr", a place after "in", a firm
before "shares", a product after "the new".

A node has a label (`NP`, `VBD`, ...) and a kind (`who`, `PER.full`, ...: the grammar's finer distinctions). A leaf
carries a word; an inner node carries children and says which of them is its head, so that constituents and head-
dependent arcs can both be read from the same tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

ROOT = "S/top"

RULES = """
S/top -> NP/who *VP/who ./stop ; 8
S/top -> NP/firm *VP/firm ./stop ; 7
S/top -> NP/place *VP/place ./stop ; 4
S/top -> NP/item *VP/item ./stop ; 4
S/top -> PP/when ,/comma NP/who *VP/who ./stop ; 2
S/top -> PP/when ,/comma NP/firm *VP/firm ./stop ; 2
S/top -> PP/in ,/comma NP/item *VP/item ./stop ; 1
S/top -> S/clause ,/comma *VP/quote NP/who ./stop ; 2
S/top -> *S/clause ,/comma CC/and S/clause ./stop ; 4
S/top -> SBAR/when ,/comma NP/who *VP/who ./stop ; 2
S/top -> SBAR/when ,/comma NP/firm *VP/firm ./stop ; 1
S/top -> NP/long_firm *VP/says ./stop ; 1
S/clause -> NP/who *VP/who ; 4
S/clause -> NP/firm *VP/firm ; 3
S/clause -> NP/item *VP/item ; 3
S/clause -> NP/place *VP/place ; 1
SBAR/that -> IN/that *S/clause ; 3
SBAR/that -> *S/clause ; 1
SBAR/when -> IN/when *S/clause ; 1

NP/who -> *NML/PER.full ; 3
NP/who -> NNP/title *NML/PER.short ; 3
NP/who -> *NML/PER.short ; 4
NP/who -> NN/role *NML/PER.full ; 1
NP/who -> *PRP/subject ; 1
NP/who -> DT/the *NN/role ; 1
NP/who -> DT/a JJ/nation *NN/role ; 1
NP/who -> *NP/named ,/comma NP/trade ,/comma ; 1
NP/who -> *NP/named CC/also NP/named ; 1
NP/who -> NP/owner *NN/kin ; 1
NP/who -> *NP/role PP/of_firm ; 1
NP/named -> *NML/PER.full ; 2
NP/named -> *NML/PER.short ; 2
NP/trade -> DT/a *NN/role ; 2
NP/trade -> DT/a JJ/quality *NN/role ; 1
NP/role -> DT/the *NN/role ; 1
NP/owner -> *NML/PER.short POS/owns ; 3
NP/owner -> *NML/PER.full POS/owns ; 1
NML/PER.full -> NNP/first *NNP/last ; 7
NML/PER.full -> NNP/first *NNP/ambiguous ; 2
NML/PER.full -> NNP/ambiguous *NNP/last ; 2
NML/PER.short -> *NNP/last ; 6
NML/PER.short -> *NNP/ambiguous ; 4
NML/PER.short -> *NNP/first ; 3

NP/firm -> *NML/ORG.short ; 6
NP/firm -> *NML/ORG.long ; 4
NP/firm -> DT/the *NN/business ; 1
NP/long_firm -> *NML/ORG.long ; 1
NP/firm_owner -> *NML/ORG.short POS/owns ; 2
NP/firm_owner -> *NML/ORG.long POS/owns ; 1
NML/ORG.short -> *NNP/firm_name ; 6
NML/ORG.short -> *NNP/ambiguous ; 4
NML/ORG.long -> NNP/firm_name *NNP/firm_end ; 4
NML/ORG.long -> NNP/ambiguous *NNP/firm_end ; 2
NML/ORG.long -> NNP/ambiguous *NNP/institute ; 2
NML/ORG.long -> NNP/last CC/ampersand *NNP/last ; 1
NML/ORG.long -> *NNP/institute IN/of NNP/place_name ; 1

NP/place -> *NML/LOC.any ; 6
NP/place -> *NP/town PP/of_place ; 1
NP/town -> DT/the *NN/town ; 1
NP/place_owner -> *NML/LOC.any POS/owns ; 1
NML/LOC.any -> *NNP/place_name ; 7
NML/LOC.any -> *NNP/ambiguous ; 4
NML/LOC.any -> NNP/before_place *NNP/ambiguous ; 1
NML/LOC.any -> NNP/ambiguous *NNP/after_place ; 1
NML/LOC.any -> NNP/place_name *NNP/after_place ; 1

NP/item -> *NP/base ; 6
NP/item -> *NP/base PP/of_thing ; 2
NP/item -> *NP/base PP/about ; 1
NP/item -> NP/firm_owner *NNS/asset ; 2
NP/item -> NML/ORG.short *NNS/asset ; 1
NP/item -> NP/place_owner *NN/civic ; 2
NP/item -> NP/owner *NN/work ; 2
NP/item -> DT/the *NML/PROD.any ; 2
NP/item -> DT/the JJ/new *NML/PROD.any ; 1
NP/item -> NNP/capital_noun *NNS/asset ; 1
NP/base -> DT/the *NN/thing ; 4
NP/base -> DT/a *NN/thing ; 3
NP/base -> DT/the JJ/quality *NN/thing ; 3
NP/base -> DT/a JJ/quality *NN/thing ; 2
NP/base -> *NNS/thing ; 2
NP/base -> JJ/quality *NNS/thing ; 2
NP/base -> CD/count *NNS/thing ; 1
NP/base -> DT/the JJ/nation *NN/thing ; 1
NP/base -> PRP$/his *NN/thing ; 1
NP/base -> DT/the NN/thing *NN/thing ; 1
NP/base -> DT/a RB/degree JJ/quality *NN/thing ; 1
NP/goods -> DT/the *NML/PROD.any ; 2
NP/goods -> PRP$/its JJ/new *NML/PROD.any ; 2
NP/goods -> DT/a *NML/PROD.any ; 1
NML/PROD.any -> *NNP/product ; 4
NML/PROD.any -> *NNP/ambiguous ; 2
NML/PROD.any -> *NNP/ambiguous CD/model ; 1
NML/PROD.any -> *NNP/product CD/model ; 2

VP/who -> *VBD/act NP/item ; 4
VP/who -> *VBD/act NP/item PP/any ; 4
VP/who -> *VBD/feel PP/any ; 2
VP/who -> ADVP/how *VBD/feel ; 1
VP/who -> *VBD/say SBAR/that ; 4
VP/who -> *VBD/meet NP/whom ; 3
VP/who -> *VBD/visit NP/where ; 2
VP/who -> *VBD/visit NP/where PP/when ; 2
VP/who -> *VP/who_done CC/also VP/who_done ; 1
VP/who_done -> *VBD/act NP/item ; 2
VP/who_done -> *VBD/visit NP/where ; 1
VP/who_done -> *VBD/meet NP/whom PP/in ; 1
VP/who -> *VBD/join NP/firm ; 2
VP/who -> *VBD/intend S/aim ; 2
VP/who -> MD/modal *VP/base ; 3
VP/who -> VBD/was *ADJP/mood ; 1
VP/who -> VBD/was *VP/born ; 1
VP/who -> *VBD/labour PP/for_firm PP/in ; 1
VP/base -> *VB/act NP/item ; 3
VP/base -> *VB/act NP/item PP/when ; 1
VP/base -> *VB/feel PP/any ; 1
VP/base -> *VB/visit NP/where ; 1
VP/base -> *VB/meet NP/whom ; 1
VP/born -> *VBN/born PP/in ; 1
VP/quote -> *VBD/say ; 1
VP/says -> *VBD/state SBAR/that ; 1
VP/to -> TO/to *VP/base ; 1
S/aim -> *VP/to ; 1
NP/whom -> *NML/PER.full ; 2
NP/whom -> *NML/PER.short ; 3
NP/whom -> NNP/title *NML/PER.short ; 1
NP/whom -> *PRP/object ; 1
NP/whom -> NP/owner *NN/kin ; 1
NP/where -> *NML/LOC.any ; 4
NP/where -> NP/place_owner *NN/civic ; 1
NP/where -> DT/the *NN/town ; 1

VP/firm -> *VBD/trade NP/goods ; 2
VP/firm -> *VBD/trade NP/goods PP/in ; 2
VP/firm -> *VBD/trade NP/item ; 1
VP/firm -> *VBD/hire NP/staff ; 1
VP/firm -> *VBD/hire NP/staff PP/when ; 1
VP/firm -> *VBD/disclose SBAR/that ; 2
VP/firm -> *VBD/acquire NP/firm ; 2
VP/firm -> *VBD/expand PP/in ; 2
VP/firm -> *VBD/expand ADVP/how ; 1
VP/firm -> MD/modal *VP/firm_base ; 2
VP/firm -> VBZ/aims *S/firm_aim ; 1
VP/firm_base -> *VB/trade NP/goods ; 1
VP/firm_base -> *VB/hire NP/staff ; 1
VP/firm_base -> *VB/acquire NP/firm ; 1
S/firm_aim -> *VP/firm_to ; 1
VP/firm_to -> TO/to *VP/firm_base ; 1
NP/staff -> CD/count *NNS/staff ; 2
NP/staff -> JJ/skill *NNS/staff ; 1
NP/staff -> NN/role *NML/PER.full ; 1

VP/place -> *VBZ/lies PP/near ; 3
VP/place -> *VBZ/is ADJP/famous ; 2
VP/place -> *VBD/draw NP/crowd ; 2
VP/place -> *VBZ/has NP/sights ; 2
NP/crowd -> *NNS/crowd ; 1
NP/crowd -> CD/count *NNS/crowd ; 1
NP/sights -> DT/a JJ/quality *NN/civic ; 2
NP/sights -> CD/count *NNS/civic ; 1

VP/item -> *VBD/happen ; 2
VP/item -> *VBD/happen ADVP/how ; 2
VP/item -> *VBD/happen PP/any ; 3
VP/item -> VBD/was *ADJP/worth ; 2
VP/item -> VBD/was *VP/passive ; 3
VP/item -> *VBD/please NP/whom ; 2
VP/item -> MD/modal *VP/happen ; 1
VP/passive -> *VBN/act PP/by ; 3
VP/passive -> *VBN/act PP/when ; 1
VP/passive -> *VBN/act PP/in ; 1
VP/happen -> *VB/happen ADVP/how ; 1
VP/happen -> *VB/happen PP/when ; 1

ADVP/how -> *RB/manner ; 1
ADJP/mood -> RB/degree *JJ/mood ; 1
ADJP/mood -> *JJ/mood PP/about ; 1
ADJP/worth -> RB/degree *JJ/quality ; 2
ADJP/worth -> *JJ/quality ; 1
ADJP/famous -> *JJ/famous PP/for_thing ; 1

PP/any -> *PP/in ; 3
PP/any -> *PP/when ; 2
PP/any -> *PP/with ; 1
PP/in -> *IN/in NP/where ; 1
PP/near -> *IN/near NP/where ; 1
PP/when -> *IN/on NP/day ; 1
PP/when -> *IN/during NP/month ; 1
NP/day -> *NML/DATE.day ; 1
NP/month -> *NML/DATE.month ; 1
NML/DATE.day -> *NNP/weekday ; 1
NML/DATE.month -> *NNP/month ; 3
NML/DATE.month -> *NNP/month CD/year ; 1
PP/with -> *IN/with NP/whom ; 1
PP/by -> *IN/by NP/agent ; 1
NP/agent -> *NML/PER.full ; 2
NP/agent -> NNP/title *NML/PER.short ; 1
NP/agent -> *NML/ORG.long ; 1
PP/for_firm -> *IN/for NP/employer ; 1
NP/employer -> *NML/ORG.short ; 2
NP/employer -> *NML/ORG.long ; 1
PP/of_firm -> *IN/at NP/employer ; 1
PP/of_place -> *IN/of NP/named_place ; 1
NP/named_place -> *NML/LOC.any ; 1
PP/of_thing -> *IN/of NP/base ; 1
PP/about -> *IN/about NP/base ; 1
PP/for_thing -> *IN/for NP/sight ; 1
NP/sight -> PRP$/its *NN/civic ; 1
NP/sight -> PRP$/its JJ/quality *NNS/thing ; 1
"""


@dataclass(frozen=True, slots=True)
class Rule:
    """`parent -> children` with a weight and the index of the head child."""

    parent: str
    children: tuple[str, ...]
    head: int
    weight: float


@cache
def rules_by_parent() -> dict[str, tuple[Rule, ...]]:
    """Return the rules of the grammar, grouped by their parent.

    >>> rules_by_parent()["SBAR/when"]
    (Rule(parent='SBAR/when', children=('IN/when', 'S/clause'), head=1, weight=1.0),)
    """
    return parsed_rules(RULES)


def parsed_rules(text: str) -> dict[str, tuple[Rule, ...]]:
    """Return the rules of a text, grouped by their parent."""
    grouped: dict[str, list[Rule]] = {}
    for line in text.strip().splitlines():
        if line.strip():
            rule = _parse(line)
            grouped.setdefault(rule.parent, []).append(rule)
    return {parent: tuple(rules) for parent, rules in grouped.items()}


def _parse(line: str) -> Rule:
    left, _, weight = line.partition(";")
    parent, _, right = left.partition("->")
    children = right.split()
    head = next(i for i, child in enumerate(children) if child.startswith("*"))
    return Rule(parent.strip(), tuple(child.removeprefix("*") for child in children), head, float(weight))


# The derivation tree of a sentence, from which every layer of annotation is read.

CHUNK_LABELS = frozenset({"NP", "VP", "PP", "ADJP", "ADVP", "SBAR"})
NO_CHUNK_TAGS = frozenset({".", ",", "CC"})
ENTITY_LABEL = "NML"


@dataclass(frozen=True, slots=True)
class Derivation:
    """One node of a derivation.

    >>> leaves = Derivation("DT", "the", word="the"), Derivation("NN", "thing", word="plan")
    >>> tree = Derivation("NP", "thing", leaves, head=1)
    >>> tree.words(), str(tree)
    (['the', 'plan'], '(NP (DT the) (NN plan))')
    """

    label: str
    kind: str = ""
    children: tuple[Derivation, ...] = ()
    head: int = 0
    word: str = ""

    def leaves(self) -> Iterator[Derivation]:
        """Yield the leaves from left to right."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()

    def words(self) -> list[str]:
        """Return the words from left to right."""
        return [leaf.word for leaf in self.leaves()]

    def head_leaf(self) -> Derivation:
        """Return the leaf that the heads lead to."""
        return self.children[self.head].head_leaf() if self.children else self

    def with_words(self, words: Iterator[str]) -> Derivation:
        """Return the same tree over other words, taken in order."""
        if not self.children:
            return replace(self, word=next(words))
        return replace(self, children=tuple(child.with_words(words) for child in self.children))

    def __str__(self) -> str:
        inside = self.word if not self.children else " ".join(str(child) for child in self.children)
        return f"({self.label} {inside})"


def placed(node: Derivation, start: int = 0) -> Iterator[tuple[Derivation, int]]:
    """Yield all nodes, a parent before its children, each with its first position."""
    yield node, start
    for child in node.children:
        yield from placed(child, start)
        start += len(child.words())


def entity_spans(tree: Derivation) -> list[tuple[int, int, str]]:
    """Return the named entities: spans of the `NML` nodes, typed by the first part of their kind."""
    spans: list[tuple[int, int, str]] = []

    def visit(node: Derivation, start: int) -> int:
        end = start if node.children else start + 1
        for child in node.children:
            end = visit(child, end)
        if node.label == ENTITY_LABEL:
            spans.append((start, end, node.kind.partition(".")[0]))
        return end

    visit(tree, 0)
    return sorted(spans)


def chunk_spans(tree: Derivation) -> list[tuple[int, int, str]]:
    """Return base phrases: maximal runs of words that have the same phrase right above them.

    Nested verb phrases are one chunk ("will visit"), and the possessive 's opens the chunk of the noun it modifies.
    """
    owners = list(_owners(tree, None, None))
    spans: list[tuple[int, int, str]] = []
    start = 0
    for i in range(1, len(owners) + 1):
        if i < len(owners) and _same_chunk(owners[i - 1], owners[i]):
            continue
        owner = owners[start]
        if owner is not None:
            spans.append((start, i, owner.label))
        start = i
    return spans


def _same_chunk(left: Derivation | None, right: Derivation | None) -> bool:
    if left is None or right is None:
        return False
    return left is right or left.label == right.label == "VP"


def _owners(node: Derivation, above: Derivation | None, higher: Derivation | None) -> Iterator[Derivation | None]:
    """Return for each leaf the phrase it belongs to; `above` is the nearest phrase, `higher` the one above that."""
    if not node.children:
        outside = node.label in NO_CHUNK_TAGS
        yield None if outside else higher if node.label == "POS" else above
        return
    if node.label in CHUNK_LABELS:
        above, higher = node, above
    for child in node.children:
        yield from _owners(child, above, higher)
