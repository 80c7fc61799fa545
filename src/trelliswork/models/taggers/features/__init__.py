"""Taggers over sparse attributes, without a network.

tagger.py, attribute_tagger.py   from sentences to tags: attributes by templates, or given with the data
encoding.py, corpus.py           numbered attributes, block by block and in several processes; what is learned from
stored.py                        the model on disk, with the names of attributes
votes.py                         which attributes voted for which label
crf/                             the model: which weights there are, and the distribution that they give
hidden_units/                    the model with binary units between attributes and labels
learners/                        from a corpus to weights, one file for each learner
kernels/                         the numba code of all of these
recipe.py                        training by name, and how long an iteration takes with many tags
export.py, crf_tagger.py         for other programs: CRFsuite's file, or JSON and a Python file
estimator/                       what `trelliswork.sklearn.CRF` needs to be a drop-in for sklearn-crfsuite
"""
