"""Joint n-grams of chunk pairs: trained in seconds, exact in every answer.

alignment.py           chunk pairs by expectation maximisation
lattice_kernels.py     all targets of a source at once
step_kernels.py        the lattice as a random walk
search_kernels.py      the k best targets
trace_kernels.py       all alignments with one target
chunk_model.py         chunk pairs, their n-grams, and what each piece of the source may become
arpa.py                models as ARPA files
source_lattice.py      one source and its positions, with the questions that kernels answer
model.py, recipe.py    the model with its explanations, and its training by name
"""
