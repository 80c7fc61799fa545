"""A linear-chain CRF over sparse attributes: the model, without its learners.

parameters.py, observed.py   which weights there are: those of pairs that occur in the data
states.py, kinds.py          states of the chain (labels, latent copies, pairs), and the classical models
model.py, averaged.py        weights in, distributions out; averages over several weight vectors
local_chain.py, marks.py     what locally normalised and counted models add
plan.py, edges.py            a corpus laid out for the kernels
"""
