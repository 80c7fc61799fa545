"""Joint n-grams of chunk pairs: trained in seconds, exact in every answer.

alignment.py           chunk pairs by expectation maximisation
lattice_kernels.py     all targets of a source at once
step_kernels.py        the lattice as a random walk
search_kernels.py      the k best targets
trace_kernels.py       all alignments with one target
chunk_model.py         chunk pairs and their n-grams
arpa.py                models as ARPA files
source_lattice.py      one source and its positions, with the questions that kernels answer
explanation.py         which chunk pairs an answer is made of
piece_choices.py       what each piece of the source may become
model.py, recipe.py    the model, and how it is trained by name
config.py              settings
"""
