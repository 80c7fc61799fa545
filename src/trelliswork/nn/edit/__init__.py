"""Neural edit transducers: a network scores the steps of an edit lattice, and a search finds the best strings.

cells.py, kernels.py             scores of edit steps from vectors of x and y, and their gradient
network.py                       the network
search.py, search_kernels.py     the most probable strings; windows.py restricts it to a part of a long source
pinned_search.py                 the same among strings of which parts are known

Start with `math.md`.
"""
