"""Context-free grammars in Chomsky normal form. Start with `math.md`, then `grammar.py` and `structure.py`.

rules.py, grammar.py, tree.py   rules as people write them, the grammar that is made of them, its trees
structure.py, solver.py     CKY over any semiring; both solvers of the queries
kernels.py                  any grammar and any range of scores by numba: log Z, marginals, argmax, samples
prefixes.py                 words that may follow a prefix, of any grammar
dense.py, dense_kernels.py, dense_tree_kernels.py    dense grammars, by matrix products
closed.py, closed_kernels.py    sparse grammars with chains of unary rules, in closed form
unary_chains.py, closed_best.py    the chains of unary rules, and the k best trees with them
"""
