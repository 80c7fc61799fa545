"""From tagged sentences to what a feature CRF learns from: numbered attributes, labels, and the weights to be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain as chained
from typing import Any, NamedTuple

import numpy as np

from trelliswork.data import Sentence
from trelliswork.data.attributes import AttributeRows, Conjunctions, FeatureFunction, HashedIndex, KeyIndex, Templates
from trelliswork.data.attributes.expansion import expand
from trelliswork.data.attributes.found import Found
from trelliswork.data.attributes.hashing import HashedNames, new_index
from trelliswork.data.attributes.rows import offsets_of
from trelliswork.data.attributes.templates import Column
from trelliswork.errors import ConstraintError, DataError, ScoreError, TrellisworkError
from trelliswork.models.taggers.features.crf.kinds import kind_of
from trelliswork.models.taggers.features.crf.legality import FIX, first_impossible, legal_of
from trelliswork.models.taggers.features.crf.marks import MARKS
from trelliswork.models.taggers.features.crf.model import FeatureCRF
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.hidden_units.model import HiddenUnitCRF
from trelliswork.models.taggers.features.hidden_units.parameters import HiddenParameters
from trelliswork.models.taggers.features.hidden_units.pretraining import Pretraining
from trelliswork.models.taggers.features.kernels.records import Legal
from trelliswork.models.taggers.features.learners.base import Corpus
from trelliswork.models.taggers.features.learners.config import LearningConfig
from trelliswork.models.taggers.features.learners.counting import counted_parameters
from trelliswork.models.taggers.features.learners.induction import Round, extended_corpus, induce
from trelliswork.models.taggers.features.learners.learning import hidden_unit_learner, parameters_of
from trelliswork.models.taggers.labels import Labels, missing_roles, tags_of_gold
from trelliswork.models.taggers.partial_tags import partial_gold, scheme_of
from trelliswork.tags.schemes import canonical, infer_scheme, repaired

Array = np.ndarray[Any, Any]


def columns_of(sentences: Sequence[Sentence]) -> tuple[Array, list[Column]]:
    """Lengths, and the words and further columns of all tokens."""
    n_columns = len(sentences[0].features) if sentences else 0
    for sentence in sentences:
        if len(sentence.features) != n_columns:
            got = f"expected {n_columns} columns beside the words, got {len(sentence.features)}"
            raise DataError(sentence.file or "sentence", got, line=sentence.line)
    lengths = np.array([len(sentence) for sentence in sentences], np.int64)
    words = Column.of(chained.from_iterable(sentence.words for sentence in sentences))
    others = [Column.of(chained.from_iterable(each.features[c] for each in sentences)) for c in range(n_columns)]
    return lengths, [words, *others]


def attributes_of(templates: Templates, lengths: Array, columns: Sequence[Column]) -> Found:
    """The attributes that templates make."""
    every = templates.templates
    wanted = [row for row, template in enumerate(every) if template.references or not template.pairs]
    keys, counts, places = expand(templates, wanted, lengths, columns)
    on_pairs = None
    if any(template.pairs and template.references for template in every):
        on_pairs = np.array([template.pairs for template in every])[places.templates]
    return Found(counts, keys, None, lambda entries: templates.names(places[entries], lengths, columns), on_pairs)


class TaggedData(NamedTuple):
    """Tagged sentences, and how to read them.

    `scheme` is that of the tags, found out if it is None. With `partial`, the tag ? is unknown and B-NP|B-VP is one of
    these. A sentence counts as often as its entry of `weights` says. Hidden units may be pre-trained on `untagged`
    sentences.
    """

    sentences: Sequence[Sentence]
    scheme: str | None = None
    partial: bool = False
    weights: Sequence[float] | Array | None = None
    untagged: Sequence[Sentence] = ()

    @classmethod
    def of(cls, given: Sequence[Sentence] | TaggedData) -> TaggedData:
        """The same for sentences of which nothing else is said; there must be some."""
        data = given if isinstance(given, TaggedData) else cls(given)
        if not data.sentences:
            raise TrellisworkError("expected tagged sentences to learn from, got none; check the data")
        return data

    def gold(self, constrained: bool) -> Gold:
        """The tags as they are written (a weight is learned only for what was seen), and their codes and sets.

        If `constrained`, tags that break their scheme are read as conlleval reads them.
        """
        tags: list[Sequence[str]] = [tags_of_gold(sentence) for sentence in self.sentences]
        if self.partial:
            return _partly_known(self.sentences, tags, self.scheme, constrained)
        found = canonical(self.scheme) if self.scheme is not None else infer_scheme(tags)
        if constrained and found != "plain":
            tags = [repaired(each, found) for each in tags]
        labels = Labels.as_written(tags, found)
        gold = np.concatenate([labels.vocabulary.indices(each) for each in tags]).astype(np.int64)
        return Gold(labels, gold, None, legal_of(labels.vocabulary.to_list(), found) if constrained else None)


class Gold(NamedTuple):
    """The labels, and what is known of each token: codes and sets, as `crf.observed` has them."""

    labels: Labels
    codes: Array
    sets: Array | None
    legal: Legal | None = None


def _partly_known(
    train: Sequence[Sentence], tags: Sequence[Sequence[str]], scheme: str | None, constrained: bool
) -> Gold:
    seen, codes, sets = partial_gold(tags)
    found = scheme_of(tags) if scheme is None else canonical(scheme)
    known = list(seen)
    if constrained:
        unseen = missing_roles(known, found)  # what an unknown tag may be, though no other token has it
        known, sets = [*known, *unseen], np.pad(sets, ((0, 0), (0, len(unseen))))
        sets[0] = True
    legal = legal_of(known, found) if constrained else None
    if legal is not None:
        wrong = first_impossible(legal, np.array([len(each) for each in tags]), codes, sets)
        if wrong is not None:
            each = train[wrong]
            problem = f"no legal {found} tags fit {' '.join(tags[wrong])}"
            raise ConstraintError(f"{each.file or 'sentence'}:{each.line}: {problem}; {FIX}")
    return Gold(Labels.from_stored(known, found, found), codes, sets, legal)


@dataclass
class FeatureCorpus:
    """Rows of attributes and a model without weights; sentences after the labelled ones are there to pre-train on."""

    rows: AttributeRows
    crf: FeatureCRF
    names_of: Callable[[Array], list[str]]
    first: Array  # where each atomic attribute occurs first
    words: Array  # the number of each token's word

    @classmethod
    def of(
        cls,
        sentences: Sequence[Sentence],
        templates: Templates,
        function: FeatureFunction | None,
        gold: Gold,
        config: LearningConfig,
        on_round: Callable[[Round], bool] | None = None,
    ) -> FeatureCorpus:
        lengths, columns = columns_of(sentences)
        found = attributes_of(templates, lengths, columns).and_by(function, sentences)
        index, labels, kind = new_index(config.hash_bits), tuple(gold.labels.vocabulary), kind_of(config.model)
        offsets = offsets_of(found.counts)
        atomic = AttributeRows(lengths, offsets, index.add(found.keys), found.values)
        on_pairs, names_of = found.on_pairs(atomic.ids, len(index)), found.names_of
        if on_pairs is not None and isinstance(index, HashedIndex):
            raise ScoreError("hash_bits needs templates that look at single tags; got one such as B01:%x[0,1]")
        first = atomic.first_entries(len(index))
        del found  # as large as the rows
        if config.hidden_units:
            atomic, index, first = _on_enough_tokens(atomic, index, first, config.min_count)
            crf = _with_units(labels, index, config.hidden_units, gold.legal)
            return cls(atomic, crf, names_of, first, columns[0].codes)
        arcs = kind.transitions and has_b(templates)
        corpus = Corpus(atomic, gold.codes, sets=gold.sets, on_pairs=on_pairs, legal=gold.legal)
        conjunctions = induce(corpus, len(index), len(labels), config, arcs=arcs, on_round=on_round)
        corpus = extended_corpus(corpus, conjunctions)
        parameters = _parameters(corpus, index, conjunctions.n_attributes, len(labels), config, arcs=arcs)
        weights = np.zeros(len(parameters))
        crf = FeatureCRF(labels, index, parameters, weights, kind.normalised, conjunctions)
        return cls(corpus.rows, crf, names_of, first, columns[0].codes)

    def names(self, crf: FeatureCRF, kept: Array) -> Sequence[str]:
        """The names of the attributes that were kept, each as it was first found; numbers for hashed ones."""
        if isinstance(crf.index, HashedIndex):
            return HashedNames(crf.conjunctions)
        n_atomic = len(self.first)
        named = crf.conjunctions.names(self.names_of(self.first[kept[kept < n_atomic]]))
        if crf.normalised != "jointly":
            return named
        return [*named, *(MARKS[mark] for mark in kept[kept >= n_atomic] - n_atomic)]

    def pretrained(self, config: LearningConfig) -> Array:
        """The weights that hidden units begin with: those of a model of clusters of words."""
        parameters = self.crf.parameters
        assert isinstance(parameters, HiddenParameters), "checked by check_units"
        learner = hidden_unit_learner(config)
        return Pretraining(seed=config.seed).first_weights(self.rows, self.words, parameters, learner)


def check_units(templates: Templates, config: LearningConfig, pretrain: Sequence[Sentence]) -> None:
    """Refuse what hidden units cannot be combined with, and pre-training without them."""
    if pretrain and not config.hidden_units:
        raise TrellisworkError("pre-training needs hidden units, got none; give hidden_units=100 or no such sentences")
    if config.hidden_units and not has_b(templates):
        raise DataError("template", "expected the line B for a model with hidden units, got none; add it")
    if config.hidden_units and any(each.pairs and each.references for each in templates.templates):
        raise DataError("template", "expected B alone for a model with hidden units, got one such as B01:%x[0,1]")


def _with_units(
    labels: tuple[str, ...], index: KeyIndex | HashedIndex, n_units: int, legal: Legal | None
) -> FeatureCRF:
    parameters = replace(HiddenParameters.dense(len(index), len(labels), n_units), legal=legal)
    weights = np.zeros(len(parameters), np.float32)
    return HiddenUnitCRF(labels, index, parameters, weights, conjunctions=Conjunctions.none(len(index)))


def _on_enough_tokens(
    rows: AttributeRows, index: KeyIndex | HashedIndex, first: Array, min_count: float
) -> tuple[AttributeRows, KeyIndex, Array]:
    """Without the attributes that are on fewer than `min_count` tokens."""
    assert isinstance(index, KeyIndex), "hidden units have names for their attributes"
    often = np.bincount(rows.ids, minlength=len(index)) >= min_count
    kept = rows.kept(often[rows.ids], np.cumsum(often) - 1)
    return kept, KeyIndex.of(index.keys()[often]), first[often]


def has_b(templates: Templates) -> bool:
    """Whether neighbouring tags are scored by themselves; as in CRF++: no line B, no such weights."""
    return any(each.pairs and not each.references for each in templates.templates)


def _parameters(
    corpus: Corpus,
    index: KeyIndex | HashedIndex,
    n_attributes: int,
    n_labels: int,
    config: LearningConfig,
    *,
    arcs: bool,
) -> Parameters:
    """What there is a weight for."""
    if isinstance(index, KeyIndex) and kind_of(config.model).counted:
        counted = counted_parameters(corpus.rows, corpus.gold, index, n_labels, transitions=arcs)
        return replace(counted, legal=corpus.legal)
    if config.order == 2 and not arcs:
        raise DataError("template", "expected the template B, which order 2 needs, got none; add a line B")
    found = parameters_of(corpus, n_attributes, n_labels, config, arcs=arcs).with_latent(config.latent)
    return found.with_second_order(corpus.rows, corpus.gold, corpus.sets) if config.order == 2 else found
