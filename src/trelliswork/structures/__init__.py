"""One folder for each family of y. A newcomer adds a structure by copying one and adding its name here.

Each has `structure.py` (parts and the reference recursions over any semiring), kernels for the hot queries
and `math.md`. The contract tests and the benchmarks run over this list.
"""

STRUCTURES = (
    "automata",
    "beam",
    "chain",
    "constituency",
    "ctc",
    "edit",
    "factors",
    "grammar",
    "projective",
    "segments",
    "spanning",
)
