"""Language models: p(sentence), learned from text.

config.py      settings of the text and of n-gram models
corpus.py      text files as sentences, their units, and all of them as numbers
base.py        what every language model answers: scores of tokens, perplexity
ngram.py       n-gram models; `ngram_kernels.py` scores many sentences in one call
generation.py  what a model is asked for
sampling.py    what a model continues a text with: samples, beams
constraint.py  regular expressions and files of acceptors that answers must match
recipe.py      `trelliswork train --model ngram`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trelliswork.lazy import lazy_names

if TYPE_CHECKING:
    from trelliswork.models.language.base import LanguageModel
    from trelliswork.models.language.ngram import NgramLanguageModel

__all__ = ["LanguageModel", "NgramLanguageModel"]

__getattr__ = lazy_names(__name__, {"base": "LanguageModel", "ngram": "NgramLanguageModel"})
