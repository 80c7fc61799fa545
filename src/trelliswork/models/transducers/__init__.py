"""From strings to strings: grapheme-to-phoneme, transliteration, lemmas, translation, queries.

transducer.py   what all of them answer
network.py      what networks have in common
config.py       settings of the files of pairs
"""
