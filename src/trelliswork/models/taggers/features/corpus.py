"""From tagged sentences to what a feature CRF learns from: numbered attributes, labels, and the weights to be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain as chained
from typing import NamedTuple

import numpy as np

from trelliswork.data import Sentence
from trelliswork.data.attributes import AttributeRows, Conjunctions, HashedIndex, KeyIndex, Templates
from trelliswork.data.attributes.key_index import HashedNames
from trelliswork.data.attributes.templates import Column
from trelliswork.errors import ConstraintError, DataError, ScoreError, TrellisworkError
from trelliswork.models.taggers.features.crf.kinds import kind_of
from trelliswork.models.taggers.features.crf.legality import FIX, first_impossible, legal_of
from trelliswork.models.taggers.features.crf.model import MARKS, FeatureCRF
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.encoding import Encoded, Source
from trelliswork.models.taggers.features.hidden_units.model import HiddenParameters, HiddenUnitCRF
from trelliswork.models.taggers.features.hidden_units.pretraining import Pretraining
from trelliswork.models.taggers.features.kernels.records import Legal
from trelliswork.models.taggers.features.learners.base import Corpus
from trelliswork.models.taggers.features.learners.config import LearningConfig
from trelliswork.models.taggers.features.learners.counting import counted_parameters
from trelliswork.models.taggers.features.learners.induction import Round, extended_corpus, induce
from trelliswork.models.taggers.features.learners.learning import hidden_unit_learner, parameters_of
from trelliswork.models.taggers.gold import partial_gold, scheme_of
from trelliswork.models.taggers.labels import Labels, missing_roles, tags_of_gold
from trelliswork.runtime.arrays import Array
from trelliswork.tags.schemes import canonical, infer_scheme, repair
from trelliswork.training.together import ALONE, OneProcess, Where


class TaggedData(NamedTuple):
    """Tagged sentences, and how to read them.

    `scheme` is that of the tags, found out if it is None. With `partial`, the tag ? is unknown and B-NP|B-VP is one of
    these. A sentence counts as often as its entry of `weights` says. Hidden units may be pre-trained on `untagged`
    sentences. `where` says which processes share out the sentences, all of which each of them is given, and where what
    is encoded is kept.
    """

    sentences: Sequence[Sentence]
    scheme: str | None = None
    partial: bool = False
    weights: Sequence[float] | Array | None = None
    untagged: Sequence[Sentence] = ()
    where: Where = ALONE

    @classmethod
    def of(cls, given: Sequence[Sentence] | TaggedData) -> TaggedData:
        """Return the same for sentences of which nothing else is said; there must be some."""
        data = given if isinstance(given, TaggedData) else cls(given)
        if not data.sentences:
            raise TrellisworkError("expected tagged sentences to learn from, got none; check the data")
        return data

    def gold(self, constrained: bool) -> Gold:
        """Return the tags as they are written (a weight is learned only for what was seen), and their codes and sets.

        If `constrained`, tags that break their scheme are read as conlleval reads them.
        """
        if self.partial:
            return _partly_known(self.sentences, [*_Tags(self.sentences)], self.scheme, constrained)
        tags = self._tags()
        scheme = canonical(self.scheme) if self.scheme is not None else infer_scheme(tags)
        if constrained and scheme != "plain":
            tags = self._tags(scheme)
        labels = Labels.as_written(tags, scheme)
        codes = self.where.scratch.growing(np.int64)
        for each in tags:
            codes.add(np.array(labels.vocabulary.indices(each), np.int64))
        return Gold(labels, codes.whole(), None, legal_of(labels.vocabulary.to_list(), scheme) if constrained else None)

    def _tags(self, scheme: str | None = None) -> Sequence[Sequence[str]]:
        """Return the tags of all sentences, repaired if a scheme is given; on disk they are made again each time."""
        tags = _Tags(self.sentences, scheme)
        return tags if self.where.scratch.on_disk else [*tags]


class _Tags(Sequence[Sequence[str]]):
    """The tags of sentences, as they are written or without what breaks a scheme."""

    def __init__(self, sentences: Sequence[Sentence], scheme: str | None = None) -> None:
        self._sentences, self._scheme = sentences, scheme

    def __len__(self) -> int:
        return len(self._sentences)

    def __getitem__(self, i: int) -> Sequence[str]:  # type: ignore[override]
        tags = tags_of_gold(self._sentences[i])
        return tags if self._scheme is None else repair(tags, self._scheme)

    def __iter__(self) -> Iterator[Sequence[str]]:
        return map(self.__getitem__, range(len(self)))


class Gold(NamedTuple):
    """The labels, and what is known of each token: codes and sets, as `crf.observed` has them."""

    labels: Labels
    codes: Array
    sets: Array | None
    legal: Legal | None = None

    def share(self, sentences: Sequence[Sentence], together: OneProcess) -> Gold:
        """Return what is known of the tokens of every n-th sentence, those of this process."""
        if together.alone:
            return self
        own = np.arange(len(sentences)) % together.size == together.rank
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        return self._replace(codes=self.codes[np.repeat(own, lengths)])


def _partly_known(
    train: Sequence[Sentence], tags: Sequence[Sequence[str]], scheme: str | None, constrained: bool
) -> Gold:
    seen, codes, sets = partial_gold(tags)
    scheme_found = scheme_of(tags) if scheme is None else canonical(scheme)
    known = list(seen)
    if constrained:
        unseen = missing_roles(known, scheme_found)  # what an unknown tag may be, though no other token has it
        known, sets = [*known, *unseen], np.pad(sets, ((0, 0), (0, len(unseen))))
        sets[0] = True
    legal = legal_of(known, scheme_found) if constrained else None
    if legal is not None:
        wrong = first_impossible(legal, np.array([len(each) for each in tags]), codes, sets)
        if wrong is not None:
            each = train[wrong]
            problem = f"no legal {scheme_found} tags fit {' '.join(tags[wrong])}"
            raise ConstraintError(f"{each.file or 'sentence'}:{each.line}: {problem}; {FIX}")
    return Gold(Labels.from_stored(known, scheme_found, scheme_found), codes, sets, legal)


@dataclass
class FeatureCorpus:
    """Rows of attributes and a model without weights; sentences after the labelled ones are there to pre-train on."""

    rows: AttributeRows
    crf: FeatureCRF
    encoded: Encoded

    @classmethod
    def of(
        cls,
        sentences: Sequence[Sentence],
        source: Source,
        gold: Gold,
        config: LearningConfig,
        on_round: Callable[[Round], bool] | None = None,
        where: Where = ALONE,
    ) -> FeatureCorpus:
        """Number the attributes and labels of sentences.

        Args:
            sentences: Sentences; those after the labelled ones are there to pre-train on.
            source: Where attributes come from: templates, or a function.
            gold: Labels of the labelled ones.
            config: Settings of learning, such as how rare an attribute may be.
            on_round: Called after each round of feature induction; True ends it. None to look at none.
            where: Where large arrays lie and who else takes part.

        Returns:
            The corpus and a model without weights.
        """
        encoded = Encoded.of(sentences, source, config.hash_bits, where)
        index, labels, kind = encoded.index, tuple(gold.labels.vocabulary), kind_of(config.model)
        if encoded.on_pairs is not None and isinstance(index, HashedIndex):
            raise ScoreError("hash_bits needs templates that look at single tags; got one such as B01:%x[0,1]")
        if config.hidden_units:
            _leave_out_rare(encoded, config.min_count)
            return cls(encoded.rows, _with_units(labels, encoded.index, config.hidden_units, gold.legal), encoded)
        arcs = kind.transitions and has_b(source.templates)
        corpus = Corpus(encoded.rows, gold.codes, None, gold.sets, encoded.on_pairs, gold.legal, where)
        conjunctions = induce(corpus, len(index), len(labels), config, arcs=arcs, on_round=on_round)
        corpus = extended_corpus(corpus, conjunctions)
        parameters = _parameters(corpus, index, conjunctions.n_attributes, len(labels), config, arcs=arcs)
        weights = np.zeros(len(parameters))
        crf = FeatureCRF(labels, index, parameters, weights, kind.normalised, conjunctions)
        return cls(corpus.rows, crf, encoded)

    def forget_rows(self) -> None:
        """Forget the rows: only the names are needed any more."""
        del self.rows, self.encoded.rows

    def names(self, crf: FeatureCRF, kept: Array) -> Sequence[str]:
        """Return the names of the attributes that were kept, each as it was first found; numbers for hashed ones."""
        if isinstance(crf.index, HashedIndex):
            return HashedNames(crf.conjunctions)
        n_atomic = len(self.encoded.places)
        atomic = self.encoded.names(kept[kept < n_atomic])
        named = crf.conjunctions.names(atomic) if len(crf.conjunctions) else atomic
        if crf.normalised != "jointly":
            return named
        return [*named, *(MARKS[mark] for mark in kept[kept >= n_atomic] - n_atomic)]

    def pretrained(self, sentences: Sequence[Sentence], config: LearningConfig) -> Array:
        """Return the weights that hidden units begin with: those of a model of clusters of the words."""
        parameters = self.crf.parameters
        assert isinstance(parameters, HiddenParameters), "checked by check_units"
        learner = hidden_unit_learner(config)
        words = Column.of(chained.from_iterable(sentence.words for sentence in sentences)).codes
        return Pretraining(seed=config.seed).first_weights(self.rows, words, parameters, learner)


def check_units(templates: Templates, config: LearningConfig, pretrain: Sequence[Sentence]) -> None:
    """Refuse what hidden units cannot be combined with, and pre-training without them.

    Args:
        templates: make the attributes.
        config: the settings of learning.
        pretrain: sentences to pre-train on; empty for none.
    """
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


def _leave_out_rare(encoded: Encoded, min_count: float) -> None:
    """Leave out the attributes that are on fewer than `min_count` tokens."""
    rows, index = encoded.rows, encoded.index
    assert isinstance(index, KeyIndex), "hidden units have names for their attributes"
    often = rows.counts(len(index)) >= min_count
    encoded.rows = rows.kept(often[rows.ids], np.cumsum(often) - 1)
    encoded.index, encoded.places = KeyIndex.of(index.keys()[often]), encoded.places[often]


def has_b(templates: Templates) -> bool:
    """Return whether neighbouring tags are scored by themselves; as in CRF++: no line B, no such weights."""
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
    """Return the weights that the model has."""
    if isinstance(index, KeyIndex) and kind_of(config.model).counted:
        counted = counted_parameters(corpus.rows, corpus.gold, index, n_labels, transitions=arcs)
        return replace(counted, legal=corpus.legal)
    if config.order == 2 and not arcs:
        raise DataError("template", "expected the template B, which order 2 needs, got none; add a line B")
    parameters = parameters_of(corpus, n_attributes, n_labels, config, arcs=arcs).with_latent(config.latent)
    if config.order == 2:
        parameters = parameters.with_second_order(corpus.rows, corpus.gold, corpus.sets).united(
            corpus.where.together.union
        )
    return parameters
