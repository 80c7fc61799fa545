"""A tagger over sparse features: templates, weights for what was seen, a linear-chain CRF. No network.

>>> tagger = FeatureTagger.fit(train_sentences)                       # doctest: +SKIP
>>> tagger.tag([Sentence(("Ann", "sings", "."))])                     # doctest: +SKIP
[['B-NP', 'B-VP', 'O']]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from trelliswork.data import Sentence
from trelliswork.data.attributes import AttributeRows, FeatureFunction, HashedIndex, Templates
from trelliswork.data.attributes.dicts import Function
from trelliswork.data.attributes.key_index import HINT, HashedNames
from trelliswork.data.attributes.rows import owners_of
from trelliswork.data.attributes.templates import Reference, default_templates
from trelliswork.data.attributes.wording import Wording
from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.lazy import lazy_module
from trelliswork.logs import count
from trelliswork.models.base import Description, Readable, Scores
from trelliswork.models.export_folder import model_card
from trelliswork.models.loading import with_kept
from trelliswork.models.storage import StoredConfig, StoredModel, check_output, read_model, write_model
from trelliswork.models.taggers.features import crf as parts
from trelliswork.models.taggers.features.crf.kinds import kind_of
from trelliswork.models.taggers.features.crf.legality import legal_of
from trelliswork.models.taggers.features.crf.model import MARKS, FeatureCRF
from trelliswork.models.taggers.features.encoding import Source, attributes_of, columns_of
from trelliswork.models.taggers.features.hidden_units.model import HiddenParameters
from trelliswork.models.taggers.features.learners.base import Corpus, Progress
from trelliswork.models.taggers.features.learners.config import LearningConfig
from trelliswork.models.taggers.features.stored import NAMES, crf_arrays, crf_of_arrays, names_text, read_names
from trelliswork.models.taggers.features.votes import Explanation, explain
from trelliswork.models.taggers.gold import broken_note, unknown_note
from trelliswork.models.taggers.labels import Labels, Pins, labels_described, record_of_labels
from trelliswork.models.taggers.posterior import ChainPosterior, Confidences, confidences_of, constrained
from trelliswork.models.taggers.sentence_tagger import SentenceTagger
from trelliswork.training.exclusive import CheckpointFolder

if TYPE_CHECKING:
    from trelliswork.distributions.grouped_chain import TagDistribution
    from trelliswork.models.taggers.features import corpus as training_data
    from trelliswork.models.taggers.features.corpus import TaggedData
    from trelliswork.models.taggers.features.learners import learning
    from trelliswork.models.taggers.features.learners.induction import Round
else:  # what only training needs
    training_data = lazy_module("trelliswork.models.taggers.features.corpus")
    learning = lazy_module("trelliswork.models.taggers.features.learners.learning")


class FeatureTagger(SentenceTagger):
    """Templates, a function over the sentence, or both make attributes; a `FeatureCRF` scores them.

    `columns_seen` is how many columns next to the words there were in training, all of which a function may read.

    Args:
        templates: make attributes of words and columns.
        labels: the labels by their numbers.
        crf: the weights.
        config: the settings that it was learned with.
        names: the names of its attributes by number; empty if they are hashed.
        features: a function that makes further attributes.
        columns_seen: columns next to the words in training.
    """

    KIND = "FeatureTagger"
    explains = supports_ensembling = True

    def __init__(
        self,
        templates: Templates,
        labels: Labels,
        crf: FeatureCRF,
        config: LearningConfig,
        names: Sequence[str] = (),
        *,
        features: FeatureFunction | None = None,
        columns_seen: int = 0,
    ) -> None:
        self.templates, self.labels, self.crf, self.config, self.names = templates, labels, crf, config, names
        self.features, self.columns_seen = features, columns_seen
        self.metrics: Scores = {}

    @classmethod
    def fit(
        cls,
        train: Sequence[Sentence] | TaggedData,
        config: LearningConfig | None = None,
        *,
        templates: Templates | None = None,
        features: Function | str | FeatureFunction | None = None,
        on_progress: Callable[[Progress, FeatureTagger], bool] | None = None,
        on_round: Callable[[Round], bool] | None = None,
    ) -> FeatureTagger:
        """Learn from tagged sentences; `TaggedData` says more about them: weights, a scheme, tags known in part.

        `features` is a function (or "package.module:function") that is given a sentence without its tags and returns
        for each token a dict or a list of names; with `templates` too, tokens have the attributes of both.
        `on_progress` sees every iteration and a tagger with its weights, `on_round` what a round of induction added; if
        one returns True, that was the last.

        Args:
            train: tagged sentences, or `TaggedData` of them.
            config: the settings of learning; `LearningConfig()` if None.
            templates: make the attributes; those that the columns suggest if None and without a function.
            features: a function, or "package.module:function", that makes attributes.
            on_progress: called after every iteration with its figures and a tagger with its weights.
            on_round: called after every round of induction.

        Returns:
            The tagger.
        """
        config, data = config or LearningConfig(), training_data.TaggedData.of(train)
        sentences, untagged, together = data.sentences, data.untagged, data.where.together
        learning.check_together(config, together)
        gold = data.gold(config.constrained)
        shares = None if data.weights is None else learning.check_weights(data.weights, len(sentences))
        function = None if features is None else FeatureFunction.of(features)
        n_columns = len(sentences[0].features)
        if templates is None:
            templates = default_templates(1 + n_columns) if function is None else Templates.parse(["B"])
        templates.check(1 + n_columns)
        training_data.check_units(templates, config, untagged)
        every, source = [*sentences, *untagged] if untagged else sentences, Source(templates, function, n_columns)
        labels, gold = gold.labels, gold.share(sentences, together)
        corpus = training_data.FeatureCorpus.of(every, source, gold, config, on_round, data.where)
        crf, samples = corpus.crf, None
        start = corpus.pretrained(every, config) if untagged else None
        rows = corpus.rows.first(len(sentences)) if untagged else corpus.rows
        tagger = cls(templates, labels, crf, config, features=function, columns_seen=n_columns)
        own = None if shares is None else shares[together.rank :: together.size]
        given = Corpus(rows, gold.codes, own, gold.sets, where=data.where)
        steps = learning.learn_from(given, crf.parameters, config, start)
        corpus.forget_rows()
        del rows, gold, given  # learners keep what they need
        for progress in steps:
            tagger.crf, samples = replace(crf, weights=progress.weights), progress.samples
            if on_progress is not None and on_progress(progress, tagger):
                break
        del steps  # and what the learner held
        if samples is not None:
            tagger.crf = parts.averaged_crf(tagger.crf, samples, voting=config.algorithm == "herding")
        tagger.crf, kept = tagger.crf.compact()
        tagger.names = corpus.names(tagger.crf, kept)
        return tagger

    # Answers

    def rows(self, sentences: Sequence[Sentence]) -> AttributeRows:
        """Return the attributes of sentences that the model knows."""
        lengths, columns = columns_of(sentences)
        self.templates.check(len(columns), sentences[0].file if sentences else "sentence")
        attributes = attributes_of(self.templates, lengths, columns).with_function(self.features, sentences)
        return self.crf.rows(lengths, attributes.counts, attributes.keys, attributes.values)

    def _tag_all(self, sentences: Sequence[Sentence], pins: Sequence[Pins] | None) -> list[list[str]]:
        """Return the best tags of each sentence; without `pins` the attributes of all are made at once."""
        if pins is not None or not sentences:
            return super()._tag_all(sentences, pins)
        return self.tags_of(sentences, self.rows([sentence for sentence in sentences if len(sentence)]))

    def tags_of(self, sentences: Sequence[Sentence], rows: AttributeRows) -> list[list[str]]:
        """Return the best tags of each sentence, given the attributes of those that have tokens."""
        rows_of_tags = iter(self.crf.predict(rows))
        return [next(rows_of_tags) if len(sentence) else [] for sentence in sentences]

    def chain(self, sentences: Sequence[Sentence]) -> TagDistribution:
        """Return p(labels | words) of a batch of sentences; values are indices into `labels.vocabulary`."""
        return self.crf.chain(self.rows(sentences))

    def distribution(self, sentences: Sequence[Sentence], pins: Sequence[Pins] | None = None) -> TagDistribution:
        """Return p(labels | words, pins) of a batch of sentences.

        `pins` holds, for each sentence, tags that are known: `{0: "B-NP"}` says that the first token begins an NP.
        """
        sentences = self.sentences_of(sentences)
        return constrained(self.chain(sentences), self.labels, sentences, pins)

    def _posterior(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> ChainPosterior:
        return ChainPosterior(self.distribution(batch, pins), self.labels, batch)

    def _confidences(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> list[Confidences]:
        if not self.crf.has_array_chain or any(pins or ()):
            return super()._confidences(batch, pins)
        return confidences_of(self.crf.array_chain(self.rows(batch)), self.labels, batch)

    def explain(self, sentences: Readable) -> list[Explanation]:
        """Return the features that voted for the tags, token by token."""
        if isinstance(self.crf.parameters, HiddenParameters):
            raise ModelError("expected a CRF whose features vote for tags, got hidden units; train with --model crf")
        given = self.sentences_of(sentences)
        rows, words = self.rows(given), [sentence.words for sentence in given]
        return explain(self.crf, rows, words, self.names, self.wording, self.labels.scheme)

    @property
    def wording(self) -> Wording:
        """Attributes in words; columns have the names that they had in the training data."""
        return Wording(self.templates.templates, ["word", *self.column_names])

    def notes(self, train: Sequence[Sentence], dev: Sequence[Sentence]) -> list[str]:
        read_otherwise = self.crf.parameters.legal is not None
        return [*unknown_note(self.labels, dev), *(broken_note(self.labels, train) if read_otherwise else ())]

    def knows(self, word: str) -> bool | None:
        """Return whether the template of the word alone has seen it; None without such a template, or without names."""
        of_word = [each for each in self.templates.templates if each.references == [Reference(0, 0)]]
        return None if self.hashed or not of_word else of_word[0].filled([word]) in self._all_names

    @cached_property
    def _all_names(self) -> frozenset[str]:
        return frozenset(self.names)

    @property
    def n_columns(self) -> int:
        named = max((part.column for each in self.templates.templates for part in each.references), default=0)
        return named if self.features is None else max(named, self.columns_seen)

    @property
    def n_parameters(self) -> int:
        return len(self.crf.weights)

    @property
    def size(self) -> str:
        return f"{count(self.n_parameters, 'weight')} of {count(len(self.names), 'attribute')}"

    @property
    def hashed(self) -> bool:
        """True if attributes have numbers only, and no names."""
        return isinstance(self.crf.index, HashedIndex)

    def describe(self, top: int = 20) -> Description:
        sizes: dict[str, object] = {"templates": len(self.templates.templates), "attributes": len(self.crf.index)}
        sizes |= {"conjunctions": len(self.crf.conjunctions) or None}
        sizes |= {"function": self.features.name if self.features is not None else None}
        sizes |= {"names": HINT if self.hashed else None}
        top_weights = list(strongest(self, top))
        wording = self.wording
        votes = {f"{wording(name)} -> {label}": f"{weight:+.2f}" for weight, name, label in top_weights}
        listed = [{"attribute": name, "tag": label, "weight": round(weight, 4)} for weight, name, label in top_weights]
        n_units = self.config.hidden_units
        kind = f"a CRF with {n_units} hidden units" if n_units else kind_of(self.config.model).phrase
        return Description(
            f"{kind} over features",
            labels=labels_described(self.labels),
            record={"features": listed, **record_of_labels(self.labels)},
            settings=self.config.to_dict(),
            sections=[
                ("features", sizes | self.config.to_dict()),
                ("strongest features (score added to a tag)", votes),
            ],
            transitions=sorted(self.crf.arc_names(), reverse=True),
        )

    # Disk

    def check_output(self, directory: str | Path) -> None:
        """Raise `OutputError` if `save` could not write there."""
        check_output(directory)

    def save(self, directory: str | Path, *, extra: Mapping[str, str] | None = None) -> None:
        """Write the model folder (see `storage`)."""
        config = {
            "settings": self.config.to_dict(),
            "data_scheme": self.labels.data_scheme,
            "labels": self.labels.vocabulary.to_list(),
            "templates": [template.text for template in self.templates.templates],
            "skip_outside": self.templates.skip_outside,
            "n_attributes": len(self.crf.index),
        }
        if self.features is not None:
            config |= {"features": self.features.path, "columns_seen": self.columns_seen}
        names = {} if self.hashed else {NAMES: names_text(self.names)}
        texts = {**names, **(extra or {})}
        arrays, card = crf_arrays(self.crf), model_card(self)
        write_model(directory, StoredModel(self.KIND, config, arrays, self.metrics, card, texts, self.kept_models()))
        CheckpointFolder(directory).clear()  # of a network that it replaces

    @classmethod
    def load(cls, directory: str | Path, *, features: Function | str | FeatureFunction | None = None) -> FeatureTagger:
        """Read a model folder; a missing, truncated, foreign or newer one is a `ModelError`.

        If a function made the attributes, give it as `features`: a model folder never chooses the code that runs.
        """
        stored = read_model(directory, cls.KIND)
        try:
            tagger = cls._from_stored(stored, directory)
            if "features" in stored.config:
                tagger.features = FeatureFunction.again(stored.config["features"], features, str(directory))
                tagger.columns_seen = int(stored.config["columns_seen"])
            conjunctions = tagger.crf.conjunctions
            n_names = len(tagger.crf.index) if not len(conjunctions) else conjunctions.n_attributes
            tagger.names = HashedNames(conjunctions) if tagger.hashed else read_names(directory, n_names)
        except KeyError as error:
            raise ModelError(f"{directory}: the model lacks {error}; copy it again") from error
        except TrellisworkError:
            raise
        except (TypeError, ValueError, IndexError, AttributeError, ArithmeticError) as error:
            raise ModelError(f"{directory}: config.json and weights do not fit ({error}); copy it again") from error
        tagger.metrics = dict(stored.metrics)
        return with_kept(tagger, directory)

    @classmethod
    def _from_stored(cls, stored: StoredModel, directory: str | Path) -> FeatureTagger:
        config, arrays = stored.config, dict(stored.weights)
        if not all(isinstance(label, str) for label in config["labels"]):
            raise ValueError("expected labels that are all text, got different ones")
        try:
            labels = Labels.from_stored(config["labels"], config["data_scheme"], config["data_scheme"])
            settings = LearningConfig.from_dict({"constrained": False} | config["settings"])
            legal = legal_of(config["labels"], labels.scheme) if settings.constrained else None
            crf = crf_of_arrays(arrays, tuple(config["labels"]), config["n_attributes"], settings, legal)
            return cls(cls._stored_templates(config), labels, crf, settings)
        except TrellisworkError as error:
            raise ModelError(f"{directory}: config.json and weights do not fit ({error}); copy it again") from error

    @classmethod
    def _stored_templates(cls, config: StoredConfig) -> Templates:
        return Templates.parse(config["templates"], skip_outside=config["skip_outside"])


def strongest(tagger: FeatureTagger, n: int) -> Iterator[tuple[float, str, str]]:
    """Yield (weight, attribute, label) of the n largest weights in absolute value, largest first.

    Marks are left out; hidden units have none.
    Where an attribute looks at two labels, the label is written as before -> label.
    """
    if isinstance(tagger.crf.parameters, HiddenParameters):
        return
    parameters, labels = tagger.crf.parameters, tagger.crf.column_names
    weights = np.concatenate([tagger.crf.weights[: parameters.n_states], tagger.crf.weights[parameters.pair_weights]])
    owner = owners_of(parameters.offsets)
    pairs = np.empty(0, np.int64) if parameters.pairs is None else parameters.pairs.listed(len(labels) ** 2)
    order = np.argsort(-np.abs(weights), kind="stable")
    marks = np.array([name in MARKS for name in tagger.names])
    if marks.any():
        order = order[(order >= parameters.n_states) | ~marks[owner[np.minimum(order, parameters.n_states - 1)]]]
    for place in order[:n]:
        if place < parameters.n_states:
            yield float(weights[place]), tagger.names[owner[place]], labels[parameters.labels[place]]
            continue
        attribute, arc = divmod(int(pairs[place - parameters.n_states]), len(labels) ** 2)
        before, label = divmod(arc, len(labels))
        yield float(weights[place]), tagger.names[attribute], f"{labels[before]} -> {labels[label]}"
