"""Learners of a feature CRF: from a corpus to weights.

base.py                          the interface: `learner.learn(corpus, parameters)` yields `Progress`
config.py, learning.py           the settings, and the learner that they choose
likelihood.py                    loss and gradient, of whole sentences or token by token; L-BFGS on them
sgd.py                           stochastic gradient descent
online.py                        perceptron, passive-aggressive, AROW
margin.py                        structured support vector machine
herding.py                       conditional herding, and whether its weights stay bounded
counting.py                      HMM and naive Bayes, by relative frequencies
posterior.py                     weights drawn from the posterior, for averages
induction.py                     conjunctions of attributes that pay
"""
