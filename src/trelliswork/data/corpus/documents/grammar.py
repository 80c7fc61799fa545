"""The grammar of documents: a sentence for each kind of event, over a cast that the whole document shares.

The notation is that of `grammar`, whose rules serve here too. A kind that begins with @ is a member of the cast, or an
event that was told before; .o is behind those that are objects.
"""

from __future__ import annotations

from functools import cache

from trelliswork.data.corpus.grammar import Rule, parsed_rules, rules_by_parent

RULES = """
S/acquire -> NP/@firm *VP/acquire ./stop ; 1
S/hire -> NP/@firm *VP/hire ./stop ; 1
S/join -> NP/@person *VP/join ./stop ; 1
S/visit -> NP/@person *VP/visit ./stop ; 1
S/meet -> NP/@person *VP/meet ./stop ; 1
S/labour -> NP/@person *VP/labour ./stop ; 1
S/trade -> NP/@firm *VP/trade ./stop ; 1
S/expand -> NP/@firm *VP/expand ./stop ; 1
S/born -> NP/@person *VP/was_born ./stop ; 1
S/react -> NP/@event *VP/react ./stop ; 1
S/aside -> NP/base *VP/aside ./stop ; 1

VP/acquire -> *VBD/acquire NP/@target.o ; 2
VP/acquire -> *VBD/acquire NP/@target.o PP/when ; 1
VP/hire -> *VBD/hire NP/@person.o ; 1
VP/hire -> *VBD/hire NP/crew ; 1
NP/crew -> CD/count *NNS/staff ; 1
VP/join -> *VBD/join NP/@firm.o ; 1
VP/visit -> *VBD/visit NP/@place.o ; 1
VP/visit -> *VBD/visit NP/@place.o PP/when ; 1
VP/meet -> *VBD/meet NP/@friend.o ; 1
VP/meet -> *VBD/meet NP/@friend.o PP/in ; 1
VP/labour -> *VBD/labour PP/for_firm PP/in ; 1
VP/trade -> *VBD/trade NP/@product.o ; 1
VP/expand -> *VBD/expand PP/in ; 1
VP/was_born -> VBD/was *VP/born ; 1
VP/born -> *VBN/born PP/in ; 1
VP/react -> *VBD/react NP/@witness.o ; 1
VP/aside -> *VBD/happen ; 1
VP/aside -> *VBD/happen ADVP/how ; 1
VP/aside -> VBD/was *ADJP/worth ; 1
PP/for_firm -> *IN/for NP/@firm.o ; 1
PP/in -> *IN/in NP/@place.o ; 1
PP/after -> *IN/after NP/@event ; 1
"""

SCRIPTS: tuple[tuple[str, ...], ...] = (  # what happens in a document, in this order; some of it is left out
    ("expand", "acquire", "hire", "trade"),
    ("trade", "expand", "hire"),
    ("born", "labour", "join", "visit", "meet"),
    ("visit", "meet", "join", "hire"),
)

# How a later sentence speaks of an event; "deal", "move" and "visit" are said of several types.
NOUNS: dict[str, str] = {
    "Acquire": "deal deal takeover purchase",
    "Trade": "deal deal launch",
    "Hire": "move move appointment",
    "Join": "move move switch",
    "Expand": "move move growth",
    "Visit": "visit visit trip",
    "Meet": "visit visit meeting",
}


@cache
def document_rules() -> dict[str, tuple[Rule, ...]]:
    """The rules of documents before those of sentences."""
    return {**rules_by_parent(), **parsed_rules(RULES)}
