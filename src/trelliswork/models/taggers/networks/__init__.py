"""Taggers and segmenters that score with a neural network.

building.py                 from data to their parts, and the functions that they share
tagger.py, segmenter.py     words under a linear chain, segments under a semi-Markov CRF
multi_tagger.py, tasks.py   several columns of tags on one encoder
vector_tagger.py            real-valued vectors instead of words
config.py                   the settings
recipe.py                   training by name, and from the weights of a trained network
dropout_average.py          answers averaged over dropout masks
word_votes.py               which words speak for a tag
onnx_export/                graphs for other runtimes
"""
