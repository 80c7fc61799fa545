"""Language models: p(sentence), learned from text.

config.py      settings of the text, of n-gram models and of what is generated
corpus.py      text files as sentences, their units, and all of them as numbers
base.py        the interface of language models: scores of tokens, perplexity
ngram.py       n-gram models; `ngram_kernels.py` scores many sentences in one call
sampling.py    continuations of a text: samples, beams
constraint.py  regular expressions and files of acceptors that answers must match
recipe.py      `trelliswork train --model ngram`
vectors.py     word vectors; `vector_learning.py` learns them, `vector_kernels.py` has skip-gram, and
               `vector_recipe.py` is `trelliswork train --model vectors`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trelliswork.lazy import lazy_names

if TYPE_CHECKING:
    from trelliswork.models.language.base import LanguageModel
    from trelliswork.models.language.ngram import NgramLanguageModel

__all__ = ["LanguageModel", "NgramLanguageModel"]

__getattr__ = lazy_names(__name__, {"base": "LanguageModel", "ngram": "NgramLanguageModel"})
