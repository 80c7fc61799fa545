"""From strings to strings: grapheme-to-phoneme, transliteration, lemmas, translation, queries.

transducer.py   what all of them answer, and what may be pinned
network.py      what networks have in common
ensemble.py     several of them that answer together
config.py       settings of the files of pairs
"""
