"""Factor graphs: discrete variables, factors over any of them; exact by junction tree, and three approximations.

graph.py                    the shape of a graph, and the same as flat arrays
structure.py, elimination.py    exact sums along a junction tree
solver.py, kernels.py       both solvers of the queries; the same by numba, with the k best assignments
propagation.py              loopy belief propagation
search.py, gibbs_kernels.py, ad3_kernels.py    Gibbs sampling, and AD3 for the best assignment
"""
