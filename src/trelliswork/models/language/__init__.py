"""Language models: p(sentence), learned from text.

config.py      settings of the text, of each model and of what is generated
corpus.py      text files as sentences, their units, and all of them as numbers
base.py        the interface of language models: scores of tokens, perplexity
ngram.py       n-gram models; `ngram_kernels.py` scores many sentences in one call
network.py     networks: texts as streams, scores, storage, training from files
recurrent.py   recurrent networks, also in both directions, as inputs of other networks
limited.py     a window of words, and a transformer with a memory
mixture.py     mixtures with a continuous cache
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
    from trelliswork.models.language.limited import TransformerLanguageModel, WindowLanguageModel
    from trelliswork.models.language.mixture import Mixture
    from trelliswork.models.language.ngram import NgramLanguageModel
    from trelliswork.models.language.recurrent import RecurrentLanguageModel

__all__ = [
    "LanguageModel",
    "Mixture",
    "NgramLanguageModel",
    "RecurrentLanguageModel",
    "TransformerLanguageModel",
    "WindowLanguageModel",
]

__getattr__ = lazy_names(__name__, {
        "base": "LanguageModel", "limited": "TransformerLanguageModel WindowLanguageModel", "mixture": "Mixture",
        "ngram": "NgramLanguageModel", "recurrent": "RecurrentLanguageModel",
    })  # fmt: skip
