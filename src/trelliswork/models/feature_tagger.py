"""A tagger over sparse features: templates, weights for what was seen, a linear-chain CRF. No network.

>>> tagger = FeatureTagger.fit(train_sentences)                       # doctest: +SKIP
>>> tagger.tag([Sentence(("Ann", "sings", "."))])                     # doctest: +SKIP
[['B-NP', 'B-VP', 'O']]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from trelliswork.data import Sentence, Vocabulary
from trelliswork.data.attributes import AttributeRows, Conjunctions, FeatureFunction, KeyIndex, Templates
from trelliswork.data.attributes.defaults import default_templates
from trelliswork.data.attributes.found import Found
from trelliswork.data.attributes.function import Function
from trelliswork.data.attributes.hashing import HashedIndex, HashedNames, new_index
from trelliswork.data.attributes.templates import Column
from trelliswork.distributions.grouped_chain import TagDistribution
from trelliswork.errors import DataError, ModelError, TrellisworkError
from trelliswork.models.card import model_card
from trelliswork.models.feature_crf.averaged import AveragedCRF, averaged
from trelliswork.models.feature_crf.config import LearningConfig
from trelliswork.models.feature_crf.counting import MARKS, counted_parameters
from trelliswork.models.feature_crf.induction import Round, induce
from trelliswork.models.feature_crf.kinds import kind_of
from trelliswork.models.feature_crf.learning import Progress, check_weights, learn, parameters_of
from trelliswork.models.feature_crf.model import FeatureCRF
from trelliswork.models.feature_crf.parameters import PairWeights, Parameters
from trelliswork.models.feature_crf.stored_index import index_arrays, index_of
from trelliswork.models.feature_crf.votes import Explanation, explain
from trelliswork.models.labels import Labels, tags_of_gold
from trelliswork.models.partial_tags import partial_gold, scheme_of
from trelliswork.models.sentence_tagger import SentenceTagger
from trelliswork.models.storage import StoredModel, check_output, read_model, write_model
from trelliswork.structures.chain.schemes import canonical, infer_scheme

Array = np.ndarray[Any, Any]
NAMES = "attributes.txt"


class FeatureTagger(SentenceTagger):
    """Templates, a function over the sentence, or both make attributes; a `FeatureCRF` scores them.

    `columns_seen` is how many columns beside the words there were in training, all of which a function may read.
    """

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
        self.metrics: dict[str, Any] = {}

    @classmethod
    def fit(
        cls,
        train: Sequence[Sentence],
        config: LearningConfig | None = None,
        *,
        templates: Templates | None = None,
        features: Function | str | FeatureFunction | None = None,
        scheme: str | None = None,
        weights: Sequence[float] | Array | None = None,
        partial: bool = False,
        on_progress: Callable[[Progress, FeatureTagger], bool] | None = None,
        on_round: Callable[[Round], bool] | None = None,
    ) -> FeatureTagger:
        """Learn from tagged sentences.

        `features` is a function (or "package.module:function") that is given a sentence without its tags and returns
        for each token a dict or a list of names; with `templates` too, tokens have the attributes of both.
        A sentence counts as often as its entry of `weights` says. With `partial`, the tag ? is unknown and B-NP|B-VP is
        one of these. `on_progress` sees every iteration and a tagger with its weights, `on_round` what a round of
        induction added; if one returns True, that was the last.
        """
        config = config or LearningConfig()
        if not train:
            raise TrellisworkError("expected tagged sentences to learn from, got none; check the data")
        labels, gold, sets = _gold_of(train, scheme, partial)
        shares = None if weights is None else check_weights(weights, len(train))
        function = None if features is None else FeatureFunction.of(features)
        if templates is None:
            templates = default_templates(1 + len(train[0].features)) if function is None else Templates.parse(["B"])
        lengths, columns = columns_of(train)
        templates.check(len(columns))
        kind = kind_of(config.model)
        # as in CRF++: no B, no arcs
        arcs = kind.transitions and any(each.pairs and not each.references for each in templates.templates)
        if config.order == 2 and not arcs:
            raise DataError("template", "expected the template B, which order 2 needs, got none; add a line B")
        found = _found(templates, lengths, columns).and_by(function, train)
        index, n_labels = new_index(config.hash_bits), len(labels.vocabulary)
        offsets = np.concatenate([[0], np.cumsum(found.counts)])
        atomic = AttributeRows(lengths, offsets, index.add(found.keys), found.values)
        on_pairs = found.on_pairs(atomic.ids, len(index))
        conjunctions = induce(
            atomic, gold, len(index), n_labels, config, arcs=arcs, sets=sets, on_pairs=on_pairs, on_round=on_round
        )
        rows = conjunctions.extended(atomic)
        parameters = parameters_of(
            rows, gold, conjunctions.n_attributes, n_labels, config, arcs=arcs, sets=sets,
            on_pairs=conjunctions.widened(on_pairs),
        ).with_latent(config.latent)  # fmt: skip
        if config.order == 2:
            parameters = parameters.with_second_order(rows, gold, sets)
        n_named = len(index)
        if isinstance(index, KeyIndex) and kind.counted:
            parameters = counted_parameters(rows, gold, index, n_labels, transitions=arcs)
        tags, start = tuple(labels.vocabulary), np.zeros(len(parameters))
        crf, samples = FeatureCRF(tags, index, parameters, start, kind.normalised, conjunctions), None
        tagger = cls(templates, labels, crf, config, features=function, columns_seen=len(columns) - 1)
        for progress in learn(rows, gold, parameters, config, sentence_weights=shares, sets=sets):
            tagger.crf, samples = replace(crf, weights=progress.weights), progress.samples
            if on_progress is not None and on_progress(progress, tagger):
                break
        tagger.crf, kept = averaged(tagger.crf, samples, voting=config.algorithm == "herding").compact()
        tagger.names = _names(tagger.crf, kept, atomic, found, n_named)
        return tagger

    # Answers

    def rows(self, sentences: Sequence[Sentence]) -> AttributeRows:
        """The attributes of sentences that the model knows."""
        lengths, columns = columns_of(sentences)
        self.templates.check(len(columns), sentences[0].file if sentences else "sentence")
        found = _found(self.templates, lengths, columns).and_by(self.features, sentences)
        return self.crf.rows(lengths, found.counts, found.keys, found.values)

    def chain(self, sentences: Sequence[Sentence]) -> TagDistribution:
        return self.crf.chain(self.rows(sentences))

    def explain(self, sentences: Sequence[Sentence]) -> list[Explanation]:
        """Which features voted for which tag, token by token; sentences must have words."""
        return explain(self.crf, self.rows(sentences), [sentence.words for sentence in sentences], self.names)

    @property
    def n_columns(self) -> int:
        named = max((part.column for each in self.templates.templates for part in each.references), default=0)
        return named if self.features is None else max(named, self.columns_seen)

    @property
    def n_parameters(self) -> int:
        return len(self.crf.weights)

    @property
    def hashed(self) -> bool:
        """Whether attributes have numbers only, and no names."""
        return isinstance(self.crf.index, HashedIndex)

    # Disk

    def check_output(self, directory: str | Path) -> None:
        """Raise `OutputError` if `save` could not write there."""
        check_output(directory)

    def save(self, directory: str | Path, *, extra: Mapping[str, str] | None = None) -> None:
        """Write the model folder (see `storage`)."""
        config = {
            "settings": asdict(self.config),
            "data_scheme": self.labels.data_scheme,
            "labels": self.labels.vocabulary.to_list(),
            "templates": [template.text for template in self.templates.templates],
            "skip_outside": self.templates.skip_outside,
            "n_attributes": len(self.crf.index),
        }
        if self.features is not None:
            config |= {"features": self.features.path, "columns_seen": self.columns_seen}
        parameters = self.crf.parameters
        arrays = {
            **index_arrays(self.crf), "conjunctions": self.crf.conjunctions.pairs,
            "labels": parameters.labels, "arcs": parameters.arcs, "weights": self.crf.weights.astype(np.float32),
        }  # fmt: skip
        if parameters.pairs is not None:
            arrays |= {"pair_offsets": parameters.pairs.offsets, "pair_arcs": parameters.pairs.arcs}
        if isinstance(self.crf, AveragedCRF):
            arrays["samples"] = self.crf.samples.astype(np.float32)
        weights = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
        names = {} if self.hashed else {NAMES: "".join(f"{_one_line(name)}\n" for name in self.names)}
        texts = {**names, **(extra or {})}
        write_model(directory, StoredModel("FeatureTagger", config, weights, self.metrics, self.card(), texts))

    def card(self) -> str:
        """The text of MODEL_CARD.md."""
        kind, data = kind_of(self.config.model).phrase, f"for {self.labels.data_scheme} tags"
        return model_card(
            "FeatureTagger",
            summary=f"{kind[0].upper()}{kind[1:]} over {len(self.names):,} attributes, {data}.",
            labels=self.labels.vocabulary.to_list(),
            settings=asdict(self.config),
            metrics=self.metrics,
            n_parameters=self.n_parameters,
        )

    @classmethod
    def load(cls, directory: str | Path, *, features: Function | str | None = None) -> FeatureTagger:
        """Read a model folder; a missing, truncated, foreign or newer one is a `ModelError`.

        If a function made the attributes, it is imported by the name that it had, or is the one given.
        """
        stored = read_model(directory, "FeatureTagger")
        try:
            tagger = cls._from_stored(stored.config, {name: each.numpy() for name, each in stored.weights.items()})
            if "features" in stored.config:
                tagger.features = FeatureFunction.again(stored.config["features"], features, str(directory))
                tagger.columns_seen = int(stored.config["columns_seen"])
            conjunctions = tagger.crf.conjunctions
            if tagger.hashed:
                tagger.names = HashedNames(conjunctions)
            else:
                tagger.names = _read_names(Path(directory) / NAMES, conjunctions.n_attributes)
        except KeyError as error:
            raise ModelError(f"{directory}: the model lacks {error}; copy it again") from error
        except TrellisworkError:
            raise
        except (TypeError, ValueError, IndexError) as error:
            raise ModelError(f"{directory}: config.json and weights do not fit ({error}); copy it again") from error
        tagger.metrics = dict(stored.metrics)
        return tagger

    @classmethod
    def _from_stored(cls, config: Mapping[str, Any], arrays: Mapping[str, Array]) -> FeatureTagger:
        labels = Labels(Vocabulary(config["labels"]), config["data_scheme"], config["data_scheme"])
        templates = Templates.parse(config["templates"], skip_outside=config["skip_outside"])
        settings = LearningConfig(**config["settings"])
        index, offsets = index_of(arrays, config["n_attributes"], settings.hash_bits)
        conjunctions = Conjunctions(len(index), arrays.get("conjunctions", np.empty((0, 2), np.int32)))
        conjunctions.check()
        pairs = PairWeights(arrays["pair_offsets"], arrays["pair_arcs"]) if "pair_arcs" in arrays else None
        n_states = len(config["labels"]) * settings.latent
        parameters = Parameters(n_states, offsets, arrays["labels"], arrays["arcs"], pairs, settings.latent)
        parameters.check(conjunctions.n_attributes)
        if arrays["weights"].shape != (len(parameters),) or not np.isfinite(arrays["weights"]).all():
            raise ValueError(f"{len(parameters)} finite weights expected, others found")
        samples = arrays["samples"].astype(np.float64) if "samples" in arrays else None
        if samples is not None and (samples.shape[1:] != (len(parameters),) or not np.isfinite(samples).all()):
            raise ValueError(f"samples of {len(parameters)} finite weights expected, others found")
        weights, normalised = arrays["weights"].astype(np.float64), kind_of(settings.model).normalised
        crf = FeatureCRF(tuple(config["labels"]), index, parameters, weights, normalised, conjunctions)
        return cls(templates, labels, averaged(crf, samples, voting=settings.algorithm == "herding"), settings)


def columns_of(sentences: Sequence[Sentence]) -> tuple[Array, list[Column]]:
    """Lengths, and the words and further columns of all tokens."""
    n_columns = len(sentences[0].features) if sentences else 0
    for sentence in sentences:
        if len(sentence.features) != n_columns:
            got = f"expected {n_columns} columns beside the words, got {len(sentence.features)}"
            raise DataError(sentence.file or "sentence", got, line=sentence.line)
    lengths = np.array([len(sentence) for sentence in sentences], np.int64)
    words = Column.of(word for sentence in sentences for word in sentence.words)
    others = [Column.of(x for sentence in sentences for x in sentence.features[c]) for c in range(n_columns)]
    return lengths, [words, *others]


def _found(templates: Templates, lengths: Array, columns: Sequence[Column]) -> Found:
    """The attributes that templates make."""
    keys, counts, places = _attributes(templates, lengths, columns)
    of_template = np.array([template.pairs for template in templates.templates])
    on_pairs = (
        of_template[places[:, 1]] if any(each.pairs and each.references for each in templates.templates) else None
    )
    return Found(counts, keys, None, lambda entries: templates.names(places[entries], lengths, columns), on_pairs)


def _names(crf: FeatureCRF, kept: Array, rows: AttributeRows, found: Found, n_atomic: int) -> Sequence[str]:
    """The names of the attributes that were kept, each as it was first found; numbers for hashed ones."""
    if isinstance(crf.index, HashedIndex):
        return HashedNames(crf.conjunctions)
    first = np.full(n_atomic, len(rows.ids))
    np.minimum.at(first, rows.ids, np.arange(len(rows.ids)))
    named = crf.conjunctions.names(found.names_of(first[kept[kept < n_atomic]]))
    if crf.normalised != "jointly":
        return named
    return [*named, *(MARKS[mark] for mark in kept[kept >= n_atomic] - n_atomic)]


def _one_line(name: str) -> str:
    """A name as one line of a file."""
    return name.replace("\r", "\\r").replace("\n", "\\n")


def _read_names(path: Path, n_attributes: int) -> list[str]:
    """The names of the attributes, one a line."""
    try:
        names = path.read_text(encoding="utf-8").split("\n")[:-1]
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}); copy the model again") from error
    if len(names) != n_attributes:
        raise ModelError(f"{path}: expected {n_attributes} names, got {len(names)}; copy the model again")
    return names


def _gold_of(train: Sequence[Sentence], scheme: str | None, partial: bool) -> tuple[Labels, Array, Array | None]:
    """The tags as they are written (a weight is learned only for what was seen), and their codes and sets."""
    tags = [tags_of_gold(sentence) for sentence in train]
    found = canonical(scheme) if scheme is not None else scheme_of(tags) if partial else infer_scheme(tags)
    if partial:
        known, gold, sets = partial_gold(tags)
        return Labels(Vocabulary(known), found, found), gold, sets
    vocabulary = Vocabulary(dict.fromkeys(tag for sentence in tags for tag in sentence))
    gold = np.concatenate([vocabulary.indices(each) for each in tags]).astype(np.int64)
    return Labels(vocabulary, found, found), gold, None


def _attributes(templates: Templates, lengths: Array, columns: Sequence[Column]) -> tuple[Array, Array, Array]:
    """Keys of all attributes token by token, how many each token has, and (token, template) of each."""
    wanted = [row for row, template in enumerate(templates.templates) if template.references or not template.pairs]
    keys, present = templates.keys(lengths, columns)
    keys, present = keys[:, wanted], present[:, wanted]
    places = np.argwhere(present)
    places[:, 1] = np.array(wanted, np.int64)[places[:, 1]]
    return keys[present], present.sum(1), places


def strongest(tagger: FeatureTagger, n: int) -> Iterator[tuple[float, str, str]]:
    """(weight, attribute, label) of the n largest weights in absolute value, largest first; marks are left out.

    Where an attribute looks at two labels, the label is written as before -> label.
    """
    parameters, labels = tagger.crf.parameters, tagger.crf.column_names
    weights = np.concatenate([tagger.crf.weights[: parameters.n_states], tagger.crf.weights[parameters.pair_weights]])
    owner = np.repeat(np.arange(len(parameters.offsets) - 1), np.diff(parameters.offsets))
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
