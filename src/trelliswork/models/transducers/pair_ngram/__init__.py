"""Joint n-grams of chunk pairs: trained in seconds, exact in every answer.

alignment.py           chunk pairs by expectation maximisation
lattice_kernels.py     all targets of a source at once
step_kernels.py        the lattice as a random walk
search_kernels.py      the k best targets
trace_kernels.py       all alignments with one target
chunk_model.py         chunk pairs and their n-grams
source_lattice.py      one source, with the questions that kernels answer
model.py               the model
"""
