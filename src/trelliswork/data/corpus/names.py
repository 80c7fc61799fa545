"""The names of the built-in corpus: people, firms, places and products, mostly made up.

Made-up names join a stem and an ending that hints at the type (-ville, -son, -corp). Some endings belong to two
types (-ton, -ford, -er), so the ending alone does not settle it. `ambiguous` names serve all four types: only the
words around them tell.
"""

from __future__ import annotations

import random

CLOSED: dict[str, str] = {
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
    """The names of a kind, most frequent first: familiar ones among made-up ones, in a fixed order.

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
