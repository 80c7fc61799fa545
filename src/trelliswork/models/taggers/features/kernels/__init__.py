"""All numba code of the feature taggers; nothing here validates.

records.py                  families of arrays that kernels read and write
decoding.py                 scores, best labels and sparse changes, for learners that decode
plan.py                     lays a corpus out for the passes over it
likelihood.py               loss and gradient where every label is known
sets.py                     the same with partly known labels, latent states or attributes of two labels
local.py                    loss and gradient of locally normalised models
sgd.py, online.py, margin.py, herding.py   one epoch of each learner
induction.py                gains of conjunctions; the diagonal of the Hessian
units.py, adam.py           hidden units
"""
