"""Neural edit transducers: a network scores the steps of an edit lattice, and a search finds the best strings.

network.py, kernels.py           the network, the scores of its edit steps from vectors of x and y, their gradient
search.py, search_kernels.py     the most probable strings; of a long source, a part at a time
pinned_search.py                 the same among strings of which parts are known

Start with `math.md`.
"""
