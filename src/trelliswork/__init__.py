"""Trelliswork: structured prediction, p(y | x) = exp(score(x, y)) / Z(x), exact and fast."""

__version__ = "0.1.0"
