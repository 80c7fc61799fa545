"""The words of the built-in corpus, by the kinds that the grammar names. Names are in `names`.

Open lists are held out in part: every `HOLD_OUT`-th word never occurs in the training part, so that the dev and
test parts hold words a model has not seen. Nouns and verbs overlap on purpose (plan, report, test, ...).

Made-up names join a stem and an ending that hints at the type (-ville, -son, -corp). Some endings belong to two
types (-ton, -ford, -er), so the ending alone does not settle it. `ambiguous` names serve all four types: only the
words around them tell.
"""

from __future__ import annotations

import random
from functools import cache

HOLD_OUT = 5

CLOSED: dict[str, str] = {
    "stop": ".",
    "comma": ",",
    "and": "and but",
    "also": "and",
    "ampersand": "&",
    "owns": "'s",
    "to": "to",
    "the": "the the the this that every",
    "a": "a",
    "new": "new latest first",
    "its": "its",
    "his": "his her their",
    "subject": "he she they",
    "object": "him her them",
    "that": "that",
    "when": "when after because while",
    "after": "after after following",
    "of": "of",
    "in": "in in near outside across",
    "near": "near beside beyond",
    "on": "on on by",
    "during": "in since until",
    "with": "with without",
    "by": "by",
    "for": "for",
    "at": "at",
    "about": "about on",
    "modal": "will may can must should might",
    "was": "was",
    "is": "is",
    "has": "has",
    "aims": "plans hopes wants aims",
    "lies": "lies sits stands",
    "born": "born raised",
    "labour": "worked",
    "degree": "very rather quite unusually",
    "famous": "famous known popular",
    "count": "two three four six ten 12 20 45 80 150",
    "model": "2 3 5 7 9 200 300",
    "year": "1998 2004 2011 2015 2019 2022",
}

OPEN: dict[str, str] = {
    "thing": """plan report garden test letter design bridge study visit offer book order answer song window
        record table claim market picture review guide story engine search harvest promise map concert boat
        request kitchen change lamp draft drive orchard lesson project puzzle recipe watch carpet start ticket
        garment demand painting lantern move novel basket deal speech ladder present clock cook journal sketch
        blanket paper rose summit falcon target apple orange harbor beacon compass grant hope shell mark bill
        statement agreement shipment payment arrangement improvement settlement measurement treatment
        collection selection invention exhibition translation correction edition prediction solution
        kindness sweetness weakness darkness readiness quietness
        bookshop toyshop workshop coffeepot teapot flowerpot notebook cookbook guidebook sunrise moonrise
        glasshouse greenhouse treehouse lighthouse boathouse waterway railway pathway stairway""",
    "role": """teacher engineer painter nurse farmer singer judge baker writer driver builder doctor lawyer
        student designer sailor banker dancer gardener coach pilot guide cook artist pianist violinist chemist
        florist cyclist journalist translator inspector actor sculptor editor director potter weaver plumber
        carpenter photographer""",
    "kin": "brother sister mother father cousin uncle aunt daughter son neighbour friend husband wife niece",
    "work": """book novel painting song speech essay letter sketch garden recipe thesis portrait diary poem
        memoir""",
    "business": """company bank firm maker supplier retailer insurer brewer publisher airline bakery carmaker
        toymaker shoemaker watchmaker startup""",
    "asset": """share profit factory employee customer product plan sale report order contract
        dividend engineer warehouse branch""",
    "town": "town village city port resort valley island capital suburb district",
    "civic": """harbour mayor cathedral beach museum market bridge castle park square library station garden
        stadium theatre lighthouse waterfront airport""",
    "crowd": "visitor tourist pilgrim hiker painter surfer student traveller sailor cyclist",
    "staff": "engineer worker driver designer analyst clerk trainee chemist student tester planner welder",
    "quality": """quiet large small bright old useful careful modest simple strange heavy famous early narrow
        elegant cheap expensive broken plain handsome gentle rough tidy clever cold warm green golden wooden
        colourful careless hopeful peaceful graceful helpful harmless endless fearless
        remarkable reliable comfortable readable breakable washable
        dusty rusty sandy windy salty woolly glassy""",
    "skill": "skilled young local experienced seasonal foreign extra eager temporary qualified",
    "nation": """Italian Danish Spanish Irish Norwegian Dutch Swiss Welsh Mexican Kenyan Peruvian Korean
        Finnish Greek Polish Brazilian""",
    "mood": "happy proud sorry glad worried cheerful curious anxious doubtful angry nervous thankful hopeful",
    "manner": """quickly slowly quietly suddenly gently steadily sharply gladly badly smoothly eagerly
        carefully rapidly calmly neatly proudly patiently cheaply loudly""",
    "act": """plan report test design study offer book order answer record claim review guide search
        promise move watch present sketch paint repair open finish describe read write build draw bring find
        examine publish praise borrow mend clean polish collect correct translate measure carry copy
        memorize organize modernize finalize""",
    "feel": "smile sleep laugh sing retire walk cry dance wait rest cook travel hesitate sneeze yawn shiver",
    "say": "say think recall joke whisper argue explain add remember complain insist admit",
    "state": "say warn add stress",
    "meet": "meet thank marry interview greet phone hug teach advise invite amuse",
    "visit": "visit tour reach leave cross explore love admire",
    "join": "join found sue audit",
    "intend": "plan hope want decide promise agree refuse try offer",
    "trade": "unveil release launch market sell recall test price export redesign patent",
    "hire": "hire dismiss recruit employ train",
    "disclose": "announce disclose forecast report confirm deny predict",
    "acquire": "acquire buy own outbid rescue",
    "expand": "expand grow struggle invest advertise recover",
    "draw": "draw attract welcome host lure",
    "happen": "end fail start change rise fall improve work vanish continue disappear crack shine collapse fade",
    "react": "surprise worry delight disappoint shock thrill upset please amaze alarm",
    "please": "please surprise worry annoy delight puzzle bore help encourage",
}

IRREGULAR: dict[str, tuple[str, str]] = {  # base: (past, participle)
    "plan": ("planned", "planned"),
    "read": ("read", "read"),
    "write": ("wrote", "written"),
    "build": ("built", "built"),
    "draw": ("drew", "drawn"),
    "bring": ("brought", "brought"),
    "find": ("found", "found"),
    "sleep": ("slept", "slept"),
    "sing": ("sang", "sung"),
    "say": ("said", "said"),
    "think": ("thought", "thought"),
    "admit": ("admitted", "admitted"),
    "meet": ("met", "met"),
    "hug": ("hugged", "hugged"),
    "teach": ("taught", "taught"),
    "leave": ("left", "left"),
    "sell": ("sold", "sold"),
    "forecast": ("forecast", "forecast"),
    "buy": ("bought", "bought"),
    "outbid": ("outbid", "outbid"),
    "grow": ("grew", "grown"),
    "rise": ("rose", "risen"),
    "fall": ("fell", "fallen"),
    "shine": ("shone", "shone"),
    "upset": ("upset", "upset"),
}


def inflect(base: str, pos: str) -> str:
    """Return the form of a base word that a part of speech asks for.

    >>> inflect("carry", "VBD"), inflect("write", "VBN"), inflect("branch", "NNS"), inflect("plan", "NN")
    ('carried', 'written', 'branches', 'plan')
    """
    if pos in ("VBD", "VBN"):
        irregular = IRREGULAR.get(base)
        return irregular[pos == "VBN"] if irregular else _with_ending(base, "ed")
    return _with_ending(base, "s") if pos == "NNS" else base


def _with_ending(base: str, ending: str) -> str:
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies" if ending == "s" else base[:-1] + "ied"
    if ending == "ed":
        return base + ("d" if base.endswith("e") else "ed")
    return base + ("es" if base.endswith(("s", "sh", "ch", "x", "z")) else "s")


@cache
def words(kind: str, unseen: bool) -> tuple[str, ...]:
    """Return the words of a kind, most frequent first; the held-out ones are among them only if `unseen`."""
    if kind in CLOSED:
        return tuple(CLOSED[kind].split())
    if kind in CLOSED_NAMES:
        return tuple(CLOSED_NAMES[kind].split())
    everything = OPEN[kind].split() if kind in OPEN else open_list(kind)
    return tuple(word for i, word in enumerate(everything) if unseen or i % HOLD_OUT != HOLD_OUT - 1)


# The names of the built-in corpus: people, firms, places and products, mostly made up.

CLOSED_NAMES: dict[str, str] = {
    "ambiguous": """Jordan Lincoln Chase Sydney Madison Austin Houston Carter Hilton Wells Morgan Bristol Paris
        Florence Victoria Charlotte Jackson Lancaster Kent Chester Marlow Denver Harley Falcon Summit Beacon
        Compass Harbor Orion Savannah Logan Preston Clifton Ashford Camden Stratford Milton Dalton Avery
        Phoenix""",
    "title": "Mr Ms Mrs Dr Prof Captain Judge",
    "firm_end": "Inc Corp Ltd Group Holdings Partners Bank Motors Foods",
    "institute": "University Museum Institute College Bank Hospital",
    "before_place": "New Port Lake North South Mount",
    "after_place": "Valley Street Island Bay Hills Falls",
    "capital_noun": "Internet Olympic Christmas Easter Arctic",
    "weekday": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "month": "January February March April May June July August September October November December",
}

FIRST_NAMES = """Anna May Tom Rose Maria Will Peter Grace Mark Nina Paul April Omar June Lucy Grant Yuki Hope
    David Elena Frank Amir Clara Bill Ines Hugo Leila Simon Faith Noah Priya Oscar Tara Felix Mina Joel Ruth Ivan
    Carla Neil Sofia Ravi Helen Marco Alice Kofi Diana Luis Emma Karim"""

STEMS = """Ald Bark Bran Cald Carn Dor Eld Fen Garr Hald Hart Holl Kerr Lang Lind Mar Nor Oak Pell Quil Ram Red Rock
    Sand Stan Thorn Tol Und Vern Wald West Wick Yarr Zell"""

ENDINGS: dict[str, str] = {
    "last": "son sen man well ley ton ford er",
    "place_name": "ville burg port field dale mouth ton ford",
    "firm_name": "corp tech soft dyne ware tron er",
    "product": "ix ara eon Pad Jet ware",
}

FAMILIAR: dict[str, str] = {
    "last": "Smith Novak Rossi Tanaka Okafor Silva Haddad Larsen Moreau Weber",
    "place_name": "Oslo Lisbon Kyoto Nairobi Quito Dublin Verona Tunis Perth Riga",
    "firm_name": "Apple Orange Target Shell Nordwind Bluefin Papermoon Quickstep Ironleaf Sundial",
    "product": "Comet Nova Sparrow Lynx Pebble Zephyr Glider Ember",
}


def open_list(kind: str) -> list[str]:
    """Return the names of a kind, most frequent first: familiar ones among made-up ones, in a fixed order.

    >>> open_list("place_name")[:3] == open_list("place_name")[:3]
    True
    """
    if kind == "first":
        return FIRST_NAMES.split()
    made_up = [stem + ending for stem in STEMS.split() for ending in ENDINGS[kind].split()]
    random.Random(kind).shuffle(made_up)
    familiar = FAMILIAR[kind].split()
    woven = [name for pair in zip(familiar, made_up, strict=False) for name in pair]
    return woven + made_up[len(familiar) : 120]
