"""A network that is written to a model folder and read back: what every one of them does, whatever it reads."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from trelliswork.data import Sentence
from trelliswork.errors import ModelError
from trelliswork.models.base import Description, Model, Rows, Scores
from trelliswork.models.export_folder import model_card
from trelliswork.models.loading import with_kept
from trelliswork.models.networks.pretrained import (
    encoder_seconds,
    freeze_encoders,
    prepare_encoders,
    release_encoders,
    weights_to_store,
    with_tokenizer,
    without_tokenizer,
)
from trelliswork.models.recipe import Material, Note
from trelliswork.models.storage import (
    StoredConfig,
    StoredModel,
    check_output,
    is_newer,
    read_model,
    upgrade,
    write_model,
)

if TYPE_CHECKING:
    from trelliswork.models.networks.config import NetworkConfig
    from trelliswork.models.networks.features import TokenFeatures
    from trelliswork.nn.crf import CRF
    from trelliswork.nn.semi_crf import SemiCRF

LONGEST_REASON = 500  # characters
TIMES_EXPLAINED = 30  # that an explanation reads a sentence


class StoredNetwork(Model, nn.Module):
    """Weights, scores and settings; a subclass says what of it goes into config.json and how it comes back."""

    encodings_directory: str | None = None  # keeps the vectors of frozen encoders from run to run
    CPU_ONLY: ClassVar[bool] = False  # whether it answers by kernels that read arrays in memory

    def __init__(self) -> None:
        super().__init__()
        self.metrics: Scores = {}

    @abstractmethod
    def stored_config(self) -> dict[str, object]:
        """Return what `from_stored` needs, as plain values; its "settings" are shown to people too."""

    @classmethod
    @abstractmethod
    def from_stored(cls, config: StoredConfig) -> Self:
        """Return a model with the settings, labels and vocabularies of `stored_config`, its weights still to come."""

    @property
    def n_parameters(self) -> int:
        """Number of trained values."""
        return sum(parameter.numel() for parameter in self.parameters())

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Enter a context in which answers are given and nothing is learned."""
        was_training = self.training
        self.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            self.train(was_training)

    @classmethod
    def learnable(cls, material: Material, config: Any, file: str, note: Note) -> list[Sentence]:
        """Return the training data that such a model can learn from; a note says what is left out.

        Args:
            material: the training material.
            config: the settings of the network.
            file: the name of the training file, for errors.
            note: called with what is worth knowing.

        Returns:
            The sentences to learn from.
        """
        return material.train

    def calibrate(self, sentences: Sequence[Sentence]) -> bool:
        """Fit what is left open until the weights are final to held-out sentences; return whether there was any."""
        return False

    def begin_training(self, train: Sequence[Sentence], dev: Sequence[Sentence], epoch: int, note: Note) -> None:
        """Keep the vectors of pretrained encoders as long as these are frozen; `epoch` is the first to come.

        Args:
            train: Sentences to learn from.
            dev: Sentences to validate on.
            epoch: The first epoch to come, counted from 1.
            note: Called with sentences that are worth telling.
        """
        prepare_encoders(self, [*train, *dev], epoch, note, self.encodings_directory)

    def begin_epoch(self, epoch: int, n_epochs: int) -> None:
        """Freeze pretrained encoders in the epochs, counted from 1, in which the settings want them frozen."""
        freeze_encoders(self, epoch)

    def end_training(self) -> None:
        """Give back what only training needs."""
        release_encoders(self)

    def encoder_cost(self, n: int, *, explain: bool = False) -> float:
        """Return about how many seconds pretrained encoders take for n words, which an explanation reads often."""
        return encoder_seconds(self, n) * (TIMES_EXPLAINED if explain else 1)

    def check_output(self, directory: str | Path) -> None:
        """Raise `OutputError` if `save` could not write there."""
        check_output(directory)

    def save(self, directory: str | Path, *, extra: Mapping[str, str] | None = None) -> None:
        """Write the model folder (see `storage`); `extra` holds further text files by name."""
        config, files = without_tokenizer(self.stored_config())
        kind, files = type(self).__name__, {**files, **(extra or {})}
        card, weights = model_card(self), weights_to_store(self, self.stored_weights())
        write_model(directory, StoredModel(kind, config, weights, self.metrics, card, files, self.kept_models()))

    @classmethod
    def load(cls, directory: str | Path, *, features: object = None) -> Self:
        """Read a model folder; a missing, truncated, foreign or newer one is a `ModelError`.

        A network has no feature function: `features` is not used.
        """
        stored = read_model(directory, cls.__name__)
        _check_layers(directory, stored)
        config = with_tokenizer(stored.config, directory)
        weights = {name: torch.tensor(array) for name, array in stored.weights.items()}
        try:
            # Initial values are overwritten: leave the caller's seed alone.
            with torch.random.fork_rng(devices=[]), SizeGuard(weights):
                model = cls.from_stored(config)
            model.restore_weights(weights)
        except KeyError as error:
            raise ModelError(f"{directory}: config.json lacks {error}; copy the model again") from error
        except (TypeError, AttributeError, RuntimeError, ValueError, IndexError, ArithmeticError) as error:
            last = (str(error).strip() or type(error).__name__).splitlines()[-1]
            reason = shorten(last, LONGEST_REASON, placeholder=" ...")  # torch lists all weights that are missing
            if is_newer(stored.config):
                raise ModelError(f"{directory}: config.json is too new ({reason}); {upgrade(stored.config)}") from error
            raise ModelError(f"{directory}: config.json and weights do not fit ({reason}); copy it again") from error
        model.metrics = dict(stored.metrics)
        return with_kept(model, directory).eval()

    def stored_weights(self) -> dict[str, Tensor]:
        """Return the weights by name, each once."""
        return self.state_dict()

    def restore_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Take weights over: the inverse of `stored_weights`."""
        self.load_state_dict(dict(weights))


def _check_layers(directory: str | Path, stored: StoredModel) -> None:
    """Refuse settings with more layers than there are weights, before lists of that length are made."""
    settings = stored.config.get("settings")
    layers = settings.get("layers") if isinstance(settings, dict) else None
    if isinstance(layers, int) and layers > max(len(stored.weights), 100):
        problem = f"{layers:,} layers, {len(stored.weights)} weights"
        raise ModelError(f"{directory}: config.json and weights do not fit ({problem}); copy it again")


# Building a network from settings that somebody may have changed: never larger than the weights it is built for.

_MAKERS = {torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn}
_SPARE_VALUES = 1 << 22  # masks and tables that are not among the weights
_SPARE_TENSORS = 1000


class SizeGuard(TorchFunctionMode):
    """Inside, tensors are made until they hold clearly more than `weights` do; then it is a `ModelError`.

    The sizes are compared before memory is taken, so that a wrong setting costs neither gigabytes nor minutes.

    >>> with SizeGuard({"weight": torch.zeros(3, 4)}):
    ...     torch.nn.Linear(100_000, 100_000)
    Traceback (most recent call last):
    trelliswork.errors.ModelError: the settings ask for a network of more than 4,194,328 values, the weights have 12
    """

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.n_weights = sum(each.numel() for each in weights.values())
        self.most_values = 2 * self.n_weights + _SPARE_VALUES
        self.most_tensors = 10 * len(weights) + _SPARE_TENSORS
        self.n_values = self.n_tensors = 0

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in _MAKERS:
            self._count(kwargs["size"] if "size" in kwargs else args[0] if _is_shape(args[0]) else args)
        return func(*args, **kwargs)

    def _count(self, shape: Sequence[int]) -> None:
        self.n_values += math.prod(shape)
        self.n_tensors += 1
        if self.n_values > self.most_values:
            asked = f"a network of more than {self.most_values:,} values, the weights have {self.n_weights:,}"
            raise ModelError(f"the settings ask for {asked}")
        if self.n_tensors > self.most_tensors:
            raise ModelError(f"the settings ask for a network of more than {self.most_tensors:,} parts")


def _is_shape(argument: object) -> bool:
    return isinstance(argument, tuple | list)  # torch.Size is a tuple


# What a network is, in words and numbers.

ENCODERS = {"lstm": "an LSTM from both ends", "gru": "a GRU from both ends", "none": "word vectors"}


class _OverWords(Protocol):
    """A network with vocabularies."""

    @property
    def config(self) -> NetworkConfig: ...
    @property
    def features(self) -> TokenFeatures: ...


def network_described(
    model: _OverWords, structure: str, labels: Rows, record: Rows, transitions: Sequence[tuple[float, str, str]]
) -> Description:
    """Return a network over words under some structure.

    Args:
        model: the network, with its settings and vocabularies.
        structure: the structure above it, in words.
        labels: rows about its labels, for people.
        record: the same for JSON.
        transitions: (score, before, after), the strongest first.

    Returns:
        The description.
    """
    encoder = ENCODERS.get(model.config.encoder, f"a {model.config.encoder} network")
    under = f"{'an' if structure[0] in 'aeio' else 'a'} {structure}"
    if getattr(model.config, "normalization", "global") == "local":
        under = f"local normalisation{structure.partition(' CRF')[2]}"
    sizes = {name: f"{len(items):,} entries" for name, items in model.features.vocabularies.items()}
    settings = model.config.to_dict()
    sections = [("lookup tables", sizes), ("network", settings)]
    return Description(f"{encoder} under {under}", labels, record, settings, sections, transitions)


def strongest_transitions(crf: CRF | SemiCRF, labels: Sequence[str]) -> list[tuple[float, str, str]]:
    """Return (score, before, after) of the legal neighbours that a layer has learned, the strongest first."""
    if crf.transitions is None:
        return []
    allowed = getattr(crf, "allowed_transitions", None)
    legal = allowed.tolist() if allowed is not None else [[True] * len(labels)] * len(labels)
    scored = [
        (score, labels[i], labels[j])
        for i, row in enumerate(crf.transitions.tolist())
        for j, score in enumerate(row)
        if legal[i][j]
    ]
    return sorted(scored, reverse=True)
