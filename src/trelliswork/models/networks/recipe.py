"""`trelliswork train` with a network: vectors, the model that is named, changed by each option that is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from trelliswork.data import Choices, WordVectors, read_vectors
from trelliswork.data.crfsuite import is_crfsuite
from trelliswork.data.settings import settings_given
from trelliswork.errors import DataError, OutputError, TrellisworkError
from trelliswork.lazy import named
from trelliswork.logs import count
from trelliswork.models.base import Model
from trelliswork.models.catalogue import VECTORS, entry_of
from trelliswork.models.networks.pretrained import description_of, learning_defaults
from trelliswork.models.recipe import Material, Note, Options, Recipe, RunOptions
from trelliswork.runtime.devices import device_for
from trelliswork.training.config import TrainingConfig
from trelliswork.training.loop import carry_out
from trelliswork.training.progress import OnEpoch
from trelliswork.training.result import TrainingResult, finished_run
from trelliswork.training.run import Run


class NetworkRecipe(Recipe):
    """A network of the catalogue, with settings for the network and for its training."""

    def __init__(self, options: Options) -> None:
        self.options, self.entry = options, entry_of(options["model"])
        self.kind: Any = named(self.entry.home)
        self.network = self.kind.CONFIG(**{**self.basis(), **settings_given(options, self.kind.CONFIG)})
        learning = learning_defaults(self.network, self.entry.learning)
        self.training = TrainingConfig(**{**learning, **settings_given(options, TrainingConfig)})
        alone = self.entry.kind if self.kind.CPU_ONLY else ""
        self.device = device_for(options.get("device") or "auto", on_cpu_alone=alone)
        self._model: Any = None

    def basis(self) -> Mapping[str, object]:
        """Return the settings of the network that no option changes."""
        return self.entry.values

    def settings(self) -> dict[str, object]:
        return {**self.network.to_dict(), **self.training.to_dict()}

    def search_values(self) -> dict[str, object]:
        return {**self.settings(), "kind": self.entry.kind}

    def layout(self, choices: Choices) -> Choices:
        for files in map(named, self.entry.data):
            if hasattr(files, "format"):  # how texts of pairs and transcripts are cut
                choices = replace(choices, pairs=files(**settings_given(self.options, files)).format)
        return choices

    def read_files(self) -> WordVectors | None:
        if VECTORS not in self.entry.data:
            return None
        if self.entry.learns_from != "pairs" and is_crfsuite(self.options["train"]):
            problem = "a network reads words, and this file has attributes; add --model crf"
            raise DataError(self.options["train"], problem)
        vectors = _read_word_vectors(self.options.get("vectors"), self.network.vector_dim)
        if vectors is None and self.options.get("tune_vectors"):
            raise TrellisworkError("--tune-vectors needs vectors to train on; add --vectors FILE or leave it out")
        return vectors

    def begin(self, material: Material, note: Note) -> None:
        train = self.kind.learnable(material, self.network, self.options["train"], note)
        self.material = material._replace(train=train)
        self._choose_batches(note)
        self._model = self._built(self.training.seed, note)
        self.network = self._model.config  # now with the width of the vectors
        for text in self._model.notes(train, material.dev):
            note(text)
        if material.files is not None:
            self._describe_vectors(material.files, note)
        note(f"model: {self._model.size}, on {self.device}")
        if text := description_of(self.network, self.training):
            note(text)

    def _choose_batches(self, note: Note) -> None:
        """Make batches smaller for few sentences, unless their size is given."""
        n_tokens = sum(map(len, self.material.train))
        wanted = batch_tokens_for(n_tokens)
        if self.options.get("batch_tokens") is None and wanted < self.training.batch_tokens:
            self.training = replace(self.training, batch_tokens=wanted)
            note(f"batches of {wanted} tokens, as there are only {n_tokens:,} (--batch-tokens)")

    def _built(self, seed: int, note: Note = lambda text: None) -> Any:
        """Return a new model; vectors that cover no word of the training data are an error."""
        material, vectors = self.material, self.material.files
        model = self.kind.from_material(material, self.network, self.options, seed)
        if vectors is not None and model.vector_coverage(material.train) == 0:
            problem = "expected vectors of words of the training data, got none of them"
            raise DataError(self.options["vectors"], f"{problem}; give vectors of its language")
        model = self.initialised(model, seed, note)
        material.annotate(model)
        model.encodings_directory = self.options.get("pretrained_cache")
        return model.to(self.device)

    def initialised(self, model: Any, seed: int, note: Note) -> Any:
        """Return a new model with the weights that it begins with.

        Args:
            model: A model that has just been made.
            seed: Seed of the run.
            note: Called with sentences that are worth telling.

        Returns:
            The model to train, which may be another one.
        """
        return model

    def _describe_vectors(self, vectors: WordVectors, note: Note) -> None:
        file, n = self.options["vectors"], len(vectors.words)
        share = self._model.vector_coverage(self.material.train)
        size = f"{count(n, 'vector')} of {vectors.dim} numbers"
        note(f"{file}: {size}, for {100 * share:.1f}% of the training tokens")
        if (vectors.n_announced or 0) > n:  # the file may have been cut
            note(f"note: {file}: its first line promises {vectors.n_announced:,} vectors, it has {n:,}")

    def learn(self, run: RunOptions) -> tuple[Model, TrainingResult]:
        training = replace(self.training, seed=run.seed)
        model, self._model = self._model, None
        if model is None or run.seed != self.training.seed:
            model = self._built(run.seed)
        if run.resume and run.folder is not None and (done := finished_run(run.folder, model, training)):
            if not run.of_several:
                raise OutputError(_finished(run.folder, done, training))
            run.progress.note(f"seed {run.seed}: finished already")
            return model, done
        on_score, progress = run.on_score, run.progress
        if on_score is not None:
            progress = OnEpoch(progress, lambda record: on_score(record.epoch, record.score))
        prepared = Run(model, self.material.train, self.material.dev or None, training, run.folder)
        result = carry_out(prepared, progress, resume=run.resume)
        if model.calibrate(self.material.dev) and run.folder is not None:
            model.save(run.folder)
        return model, result

    def together(self) -> bool:
        together: bool = self.kind.supports_ensembling
        return together


FEWEST_BATCHES, FEWEST_TOKENS = 50, 100  # of an epoch; in a batch


def batch_tokens_for(n_tokens: int) -> int:
    """Return the most tokens that make a batch, so that an epoch has steps enough to learn something.

    >>> batch_tokens_for(4_000), batch_tokens_for(20_000)
    (100, 400)
    """
    return max(FEWEST_TOKENS, n_tokens // FEWEST_BATCHES)


def _finished(folder: Path, done: TrainingResult, training: TrainingConfig) -> str:
    n_epochs = len(done.history)
    more = f"--epochs {2 * n_epochs}" if n_epochs >= training.epochs else f"--patience {2 * training.patience}"
    return (
        f"{folder}: its training is finished after {n_epochs} epochs, there is nothing to resume; "
        f"add {more} to go on, or train anew with --force"
    )


def _read_word_vectors(path: str | None, dim: int) -> WordVectors | None:
    """Return the vectors in a file, which must have `dim` numbers each unless that is 0."""
    if path is None:
        if dim:
            raise TrellisworkError(f"vector_dim is {dim} and there are no vectors; add --vectors FILE or set it to 0")
        return None
    vectors = read_vectors(path)
    if dim not in (0, vectors.dim):
        problem = f"expected vectors of {dim} numbers, as vector_dim says, got {vectors.dim}"
        raise DataError(path, f"{problem}; give another file or leave vector_dim out")
    return vectors
