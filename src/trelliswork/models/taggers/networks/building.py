"""From data or a model folder to the parts of a tagger that is a network, and what `Tagger` and `Segmenter` share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from torch import Tensor, nn

from trelliswork.data import Sentence, WordVectors
from trelliswork.errors import TrellisworkError
from trelliswork.models.base import Description
from trelliswork.models.networks.attribution import Attribution
from trelliswork.models.networks.features import TokenFeatures
from trelliswork.models.networks.stored_network import network_described
from trelliswork.models.storage import StoredConfig
from trelliswork.models.taggers.labels import Labels, labels_described, record_of_labels
from trelliswork.models.taggers.networks.config import SCORERS, SEGMENT_SCORERS, TaggerConfig
from trelliswork.nn.inputs import DirectConnections, TokenBatch
from trelliswork.nn.scorers import TransitionScorer
from trelliswork.runtime.arrays import Float, Int

if TYPE_CHECKING:
    from trelliswork.models.taggers.networks.segmenter import Segmenter
    from trelliswork.models.taggers.networks.tagger import Tagger

Value = TypeVar("Value")
Parts = tuple[TaggerConfig, TokenFeatures, Labels]
Margins = Callable[[TokenBatch, Sequence[Value], Sequence[Value]], Float[Tensor, " batch"]]


def parts_from_data(
    train: Sequence[Sentence], config: TaggerConfig | None, scheme: str | None, vectors: WordVectors | None
) -> Parts:
    """Return what a tagger is made of, for tagged sentences.

    Args:
        train: the training data.
        config: the settings; those of `TaggerConfig()` if None.
        scheme: the scheme of the tags, inferred when None.
        vectors: pretrained vectors, whose words are read in addition to those of the training data.

    Returns:
        The settings with the width of the vectors, the vocabularies, and the labels.
    """
    if not train:
        raise TrellisworkError("expected tagged sentences to build a tagger from, got none; check the data")
    config = replace(config or TaggerConfig(), vector_dim=0 if vectors is None else vectors.dim)
    labels = Labels.from_sentences(train, scheme=scheme, label_scheme=config.label_scheme)
    features = TokenFeatures.from_sentences(train, config, () if vectors is None else vectors.words)
    return config, features, labels


def parts_from_stored(config: StoredConfig) -> Parts:
    """Return what a tagger is made of, from its config.json."""
    settings = TaggerConfig.from_dict(config["settings"])
    labels = Labels.from_stored(config["labels"], config["scheme"], config["data_scheme"])
    return settings, TokenFeatures.from_stored(settings, config), labels


def stored_labels(labels: Labels) -> dict[str, object]:
    """Return labels as plain values, the arguments of `Labels.from_stored`."""
    return {"labels": labels.vocabulary.to_list(), "scheme": labels.scheme, "data_scheme": labels.data_scheme}


def describe_tagger(model: Tagger | Segmenter) -> Description:
    """Describe a network with labels, and all transitions that it has learned."""
    labels = model.labels
    return network_described(
        model, model.STRUCTURE, labels_described(labels), record_of_labels(labels), model.transitions()
    )


def network_seconds(n: int, *, explain: bool) -> float:
    """Return about how many seconds a network takes for n words, in addition to the structure above it.

    Attention has something to do for each pair of words, and an explanation runs the network many times.
    """
    return 5e-5 * n + 5e-8 * n**2 + 3e-2 * explain * n


def attribute_rivals(
    model: Tagger | Segmenter, margins: Margins[Value], sentence: Sentence, value: Value, rivals: Sequence[Value]
) -> list[Attribution]:
    """Return the shares of the words in the difference between the scores of a value and of each rival.

    Args:
        model: the network that reads the words.
        margins: by how much the scores of values are above those of their rivals, a row of the batch for each.
        sentence: the words.
        value: the answer, as its distribution has it.
        rivals: other values of the same sentence.

    Returns:
        An attribution for each rival.
    """

    def of_copies(batch: TokenBatch, which: Int[Tensor, " rows"]) -> Tensor:
        return margins(batch, [value] * len(which), [rivals[d] for d in which.tolist()])

    return model.attribute(sentence, of_copies, len(rivals))


# From settings to the parts of a tagger that score labels.


def make_direct_connections(config: TaggerConfig, features: TokenFeatures, n_labels: int) -> DirectConnections | None:
    """Return the layer that scores labels past the network, if there are templates.

    Args:
        config: the settings of the tagger.
        features: what it reads of words.
        n_labels: number of labels that are scored.

    Returns:
        The layer, or None.
    """
    return DirectConnections(features.n_attributes, n_labels) if config.templates else None


def make_scorer(config: TaggerConfig, dim: int, n_labels: int) -> nn.Module:
    """Return the layer from vectors of tokens to scores of labels.

    Args:
        config: the settings of the tagger.
        dim: width of the vectors.
        n_labels: number of labels that are scored.

    Returns:
        The layer, from [batch, n, dim] to [batch, n, n_labels].
    """
    scorer: nn.Module = SCORERS[config.scorer].make(config, dim, n_labels)
    return scorer


def make_transition_scorer(config: TaggerConfig, dim: int, n_labels: int) -> TransitionScorer | None:
    """Return the layer that scores pairs of labels by the input; None if they score the same everywhere.

    Args:
        config: the settings of the tagger.
        dim: width of the vectors.
        n_labels: number of labels that are scored.

    Returns:
        The layer, from [batch, n, dim] to [batch, n - 1, n_labels, n_labels], or None.
    """
    return TransitionScorer(dim, n_labels) if config.transitions == "network" else None


def make_segment_scorer(config: TaggerConfig, dim: int, n_labels: int) -> nn.Module:
    """Return the layer from vectors of tokens to scores of segments.

    Args:
        config: the settings of the tagger.
        dim: width of the vectors.
        n_labels: number of kinds that are scored.

    Returns:
        The layer, from [batch, n, dim] to [batch, n, max_length, n_labels].
    """
    scorer: nn.Module = SEGMENT_SCORERS[config.segments].make(config, dim, num_labels=n_labels)
    return scorer
