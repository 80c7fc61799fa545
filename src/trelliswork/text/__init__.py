"""From raw text to sentences of tokens, with the place of every token in the text.

>>> from trelliswork import text
>>> [[token.text for token in sentence] for sentence in text.tokenise("Mr. Smith's dog barks. Why?")]
[['Mr.', 'Smith', "'s", 'dog', 'barks', '.'], ['Why', '?']]

rules.py        what a tokeniser returns; the default one: rules for all languages, nothing to train
first_rules.py  the rules of version 1, for models that were trained with them
spacing.py      a plausible text of tokens whose white space is not known
habits.py       rules corrected by how a file of tokens cuts
documents.py    raw texts whose tokens are known: from CoNLL-U, or a text with its tokens
reading.py      texts and text files as sentences with the place of every word
scores.py       F1 of tokens, words and sentences against a known tokenisation

`trelliswork.models.tokenisers` has the tokeniser that is trained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trelliswork.lazy import lazy_names

if TYPE_CHECKING:
    from trelliswork.text.documents import Document, read_documents
    from trelliswork.text.reading import OFFSETS, Offsets, read_text, sentences_in
    from trelliswork.text.rules import RuleTokeniser, Token, Tokeniser, tokenise
    from trelliswork.text.scores import tokenisation_scores

__all__ = [
    "OFFSETS",
    "Document",
    "Offsets",
    "RuleTokeniser",
    "Token",
    "Tokeniser",
    "read_documents",
    "read_text",
    "sentences_in",
    "tokenisation_scores",
    "tokenise",
]
_HOMES = {
    "documents": "Document read_documents",
    "reading": "OFFSETS Offsets read_text sentences_in",
    "rules": "RuleTokeniser Token Tokeniser tokenise",
    "scores": "tokenisation_scores",
}
__getattr__ = lazy_names(__name__, _HOMES)
