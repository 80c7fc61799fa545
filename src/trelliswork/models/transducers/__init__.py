"""From strings to strings: grapheme-to-phoneme, transliteration, lemmas, translation, queries.

transducer.py   base class of all: answers, scores, pins
network.py      base class of networks: vocabularies, examples, storage
edit.py         neural edit transducers: insert, substitute, copy and delete
attention/      recurrent and transformer networks with attention
pair_ngram/     n-grams of aligned chunk pairs
semantic/       from questions to lambda terms, Prolog and SQL
ensemble.py     several transducers that answer together
config.py       settings of pair files, pair n-grams, edit transducers and attention models
"""
