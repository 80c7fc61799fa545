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
from trelliswork.data.attributes import AttributeRows, KeyIndex, Templates
from trelliswork.data.attributes.defaults import default_templates
from trelliswork.data.attributes.templates import Column
from trelliswork.distributions import LinearChain
from trelliswork.errors import DataError, ModelError, TrellisworkError
from trelliswork.models.card import model_card
from trelliswork.models.feature_crf.learning import LearningConfig, Progress, learn
from trelliswork.models.feature_crf.model import FeatureCRF
from trelliswork.models.feature_crf.parameters import Parameters
from trelliswork.models.feature_crf.votes import Explanation, explain
from trelliswork.models.labels import Labels, tags_of_gold
from trelliswork.models.sentence_tagger import ChainTagger
from trelliswork.models.storage import StoredModel, check_output, read_model, write_model
from trelliswork.structures.chain.schemes import canonical, infer_scheme

Array = np.ndarray[Any, Any]
NAMES = "attributes.txt"


class FeatureTagger(ChainTagger):
    """Templates make attributes of the columns; a `FeatureCRF` scores them."""

    def __init__(
        self, templates: Templates, labels: Labels, crf: FeatureCRF, config: LearningConfig, names: Sequence[str] = ()
    ) -> None:
        self.templates, self.labels, self.crf, self.config, self.names = templates, labels, crf, config, names
        self.metrics: dict[str, Any] = {}

    @classmethod
    def fit(
        cls,
        train: Sequence[Sentence],
        config: LearningConfig | None = None,
        *,
        templates: Templates | None = None,
        scheme: str | None = None,
        on_progress: Callable[[Progress, FeatureTagger], bool] | None = None,
    ) -> FeatureTagger:
        """Learn from tagged sentences.

        `on_progress` sees every iteration and a tagger with its weights; if it returns True, that was the last.
        """
        config = config or LearningConfig()
        if not train:
            raise TrellisworkError("expected tagged sentences to learn from, got none; check the data")
        labels = _labels_of(train, scheme)
        templates = templates or default_templates(1 + len(train[0].features))
        lengths, columns = columns_of(train)
        templates.check(len(columns))
        _refuse_observed_pairs(templates)
        keys, counts, places = _attributes(templates, lengths, columns)
        index = KeyIndex()
        rows = AttributeRows(lengths, np.concatenate([[0], np.cumsum(counts)]), index.add(keys))
        gold = np.concatenate([labels.vocabulary.indices(tags_of_gold(each)) for each in train]).astype(np.int64)
        parameters = Parameters.of(
            rows, gold, len(index), len(labels.vocabulary), all_states=config.all_states,
            all_transitions=config.all_transitions,
        ).frequent(rows, gold, config.min_count)  # fmt: skip
        if not any(template.pairs for template in templates.templates):  # as in CRF++: no B, no transitions
            parameters = replace(parameters, arcs=parameters.arcs[:0])
        tagger, weights = None, np.zeros(len(parameters))
        tags = tuple(labels.vocabulary)
        for progress in learn(rows, gold, parameters, config):
            weights = progress.weights
            if on_progress is not None:
                tagger = cls(templates, labels, FeatureCRF(tags, index, parameters, weights), config)
                if on_progress(progress, tagger):
                    break
        crf, kept = FeatureCRF(tags, index, parameters, weights).compact()
        first = np.full(len(index), len(places))
        np.minimum.at(first, rows.ids, np.arange(len(rows.ids)))
        names = templates.names(places[first[kept]], lengths, columns)
        return cls(templates, labels, crf, config, names)

    # Answers

    def rows(self, sentences: Sequence[Sentence]) -> AttributeRows:
        """The attributes of sentences that the model knows."""
        lengths, columns = columns_of(sentences)
        self.templates.check(len(columns), sentences[0].file if sentences else "sentence")
        keys, counts, _ = _attributes(self.templates, lengths, columns)
        return self.crf.rows(lengths, counts, keys)

    def chain(self, sentences: Sequence[Sentence]) -> LinearChain:
        return self.crf.chain(self.rows(sentences))

    def explain(self, sentences: Sequence[Sentence]) -> list[Explanation]:
        """Which features voted for which tag, token by token; sentences must have words."""
        return explain(self.crf, self.rows(sentences), [sentence.words for sentence in sentences], self.names)

    @property
    def n_columns(self) -> int:
        return max((part.column for each in self.templates.templates for part in each.references), default=0)

    @property
    def n_parameters(self) -> int:
        return len(self.crf.weights)

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
        index, parameters = self.crf.index, self.crf.parameters
        arrays = {
            "keys": index.table.view(np.int64), "numbers": index.numbers, "offsets": parameters.offsets,
            "labels": parameters.labels, "arcs": parameters.arcs, "weights": self.crf.weights.astype(np.float32),
        }  # fmt: skip
        weights = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
        texts = {NAMES: "".join(f"{_one_line(name)}\n" for name in self.names), **(extra or {})}
        write_model(directory, StoredModel("FeatureTagger", config, weights, self.metrics, self.card(), texts))

    def card(self) -> str:
        """The text of MODEL_CARD.md."""
        return model_card(
            "FeatureTagger",
            summary=f"A linear-chain CRF over {len(self.crf.index):,} attributes, for {self.labels.data_scheme} tags.",
            labels=self.labels.vocabulary.to_list(),
            settings=asdict(self.config),
            metrics=self.metrics,
            n_parameters=self.n_parameters,
        )

    @classmethod
    def load(cls, directory: str | Path) -> FeatureTagger:
        """Read a model folder; a missing, truncated, foreign or newer one is a `ModelError`."""
        stored = read_model(directory, "FeatureTagger")
        try:
            tagger = cls._from_stored(stored.config, {name: each.numpy() for name, each in stored.weights.items()})
            tagger.names = _read_names(Path(directory) / NAMES, len(tagger.crf.index))
        except KeyError as error:
            raise ModelError(f"{directory}: the model lacks {error}; copy it again") from error
        except ModelError:
            raise
        except (TypeError, ValueError, IndexError) as error:
            raise ModelError(f"{directory}: config.json and weights do not fit ({error}); copy it again") from error
        tagger.metrics = dict(stored.metrics)
        return tagger

    @classmethod
    def _from_stored(cls, config: Mapping[str, Any], arrays: Mapping[str, Array]) -> FeatureTagger:
        labels = Labels(Vocabulary(config["labels"]), config["data_scheme"], config["data_scheme"])
        templates = Templates.parse(config["templates"], skip_outside=config["skip_outside"])
        index = KeyIndex(arrays["keys"].view(np.uint64), arrays["numbers"], config["n_attributes"])
        parameters = Parameters(len(config["labels"]), arrays["offsets"], arrays["labels"], arrays["arcs"])
        index.check()
        parameters.check(len(index))
        if arrays["weights"].shape != (len(parameters),) or not np.isfinite(arrays["weights"]).all():
            raise ValueError(f"{len(parameters)} finite weights expected, others found")
        crf = FeatureCRF(tuple(config["labels"]), index, parameters, arrays["weights"].astype(np.float64))
        return cls(templates, labels, crf, LearningConfig(**config["settings"]))


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


def _refuse_observed_pairs(templates: Templates) -> None:
    for template in templates.templates:
        if template.pairs and template.references:
            problem = f"expected B alone; scores of neighbouring tags cannot depend on columns yet: {template.text}"
            raise DataError("template", f"{problem}; begin the line with U to score single tags")


def _labels_of(train: Sequence[Sentence], scheme: str | None) -> Labels:
    """The tags as they are written: a weight is learned only for what was seen."""
    tags = [tags_of_gold(sentence) for sentence in train]
    found = canonical(scheme) if scheme is not None else infer_scheme(tags)
    return Labels(Vocabulary(dict.fromkeys(tag for sentence in tags for tag in sentence)), found, found)


def _attributes(templates: Templates, lengths: Array, columns: Sequence[Column]) -> tuple[Array, Array, Array]:
    """Keys of all attributes token by token, how many each token has, and (token, template) of each."""
    single = [row for row, template in enumerate(templates.templates) if not template.pairs]
    keys, present = templates.keys(lengths, columns)
    keys, present = keys[:, single], present[:, single]
    places = np.argwhere(present)
    places[:, 1] = np.array(single, np.int64)[places[:, 1]]
    return keys[present], present.sum(1), places


def strongest(tagger: FeatureTagger, n: int) -> Iterator[tuple[float, str, str]]:
    """(weight, attribute, label) of the n largest weights in absolute value, largest first."""
    parameters, weights = tagger.crf.parameters, tagger.crf.weights[: tagger.crf.parameters.n_states]
    owner = np.repeat(np.arange(len(parameters.offsets) - 1), np.diff(parameters.offsets))
    for place in np.argsort(-np.abs(weights), kind="stable")[:n]:
        yield float(weights[place]), tagger.names[owner[place]], tagger.labels.vocabulary[parameters.labels[place]]
