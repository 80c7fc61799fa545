"""Sparse attributes of tokens: from templates, dicts or a function to integer ids, in bulk."""

from trelliswork.data.attributes.conjunctions import Conjunctions
from trelliswork.data.attributes.dicts import attribute_items, from_dicts, token_lists
from trelliswork.data.attributes.function import FeatureFunction
from trelliswork.data.attributes.hashing import HashedIndex, HashedNames
from trelliswork.data.attributes.key_index import KeyIndex
from trelliswork.data.attributes.rows import AttributeRows
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
