"""Sparse attributes of tokens: from templates, dicts or a function to integer ids, in bulk.

templates.py     CRF++ templates, those of a file without any, and what they see of a word
dicts.py         attributes as given: dicts or lists of names, or what a function returns
key_index.py     from keys to numbers: a table of all, or hashes of bounded size
rows.py          the numbers of each token, one array for a corpus; pairs of attributes as attributes of their own
wording.py       attributes in words
*_kernels.py     the numba code of these
"""

from trelliswork.data.attributes.dicts import FeatureFunction, attribute_items, from_dicts, token_lists
from trelliswork.data.attributes.key_index import HashedIndex, HashedNames, KeyIndex
from trelliswork.data.attributes.rows import AttributeRows, Conjunctions
from trelliswork.data.attributes.templates import Template, Templates

__all__ = [
    "AttributeRows",
    "Conjunctions",
    "FeatureFunction",
    "HashedIndex",
    "HashedNames",
    "KeyIndex",
    "Template",
    "Templates",
    "attribute_items",
    "from_dicts",
    "token_lists",
]
