"""`trelliswork train` with a network: vectors, the model that is named, changed by each option that is given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from trelliswork.data import WordVectors, read_vectors
from trelliswork.data.crfsuite import is_crfsuite
from trelliswork.data.settings import settings_given
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.models.base import count
from trelliswork.models.loading import class_of
from trelliswork.models.recipe import Material, Note, Options, Recipe, Run
from trelliswork.models.taggers.networks.config import TaggerConfig
from trelliswork.models.taggers.networks.presets import PRESETS
from trelliswork.training.config import TrainingConfig
from trelliswork.training.finished import finished_run
from trelliswork.training.loop import train
from trelliswork.training.result import TrainingResult


class NetworkRecipe(Recipe):
    """A class of networks with settings for the network and for its training."""

    def __init__(self, options: Options) -> None:
        if options.get("pretrain") is not None:
            raise TrellisworkError(
                f"--pretrain needs --model hucrf, got --model {options['model']}; add it or leave it out"
            )
        self.options, self.preset = options, PRESETS[options["model"]]
        self.network = TaggerConfig(**{**self.preset.network, **settings_given(options, TaggerConfig)})
        self.training = TrainingConfig(**{**self.preset.learning, **settings_given(options, TrainingConfig)})
        self.kind: Any = class_of(self.preset.kind)
        self._model: Any = None

    def settings(self) -> dict[str, Any]:
        return {**self.network.to_dict(), **self.training.to_dict()}

    def search_values(self) -> dict[str, Any]:
        return {**self.settings(), "kind": self.preset.kind}

    def read_files(self) -> WordVectors | None:
        if is_crfsuite(self.options["train"]):
            problem = "a network reads words, and this file has attributes; add --model crf"
            raise DataError(self.options["train"], problem)
        return _read_word_vectors(self.options.get("vectors"), self.network.vector_dim)

    def begin(self, material: Material, note: Note) -> None:
        train = self.kind.learnable(material, self.network, self.options["train"], note)
        self.material = material._replace(train=train)
        self._model = self._built(self.training.seed)
        self.network = self._model.config  # now with the width of the vectors
        for text in self._model.notes(train, material.dev):
            note(text)
        if material.files is not None:
            self._describe_vectors(material.files, note)
        note(f"model: {self._model.size}")

    def _built(self, seed: int) -> Any:
        """A new model; vectors that cover no word of the training data are an error."""
        material, vectors = self.material, self.material.files
        model = self.kind.from_material(material, self.network, self.options, seed)
        if vectors is not None and model.features.coverage(material.train) == 0:
            problem = "expected vectors of words of the training data, got none of them"
            raise DataError(self.options["vectors"], f"{problem}; give vectors of its language")
        material.told(model)
        return model

    def _describe_vectors(self, vectors: WordVectors, note: Note) -> None:
        file, n = self.options["vectors"], len(vectors.words)
        share = self._model.features.coverage(self.material.train)
        size = f"{count(n, 'vector')} of {vectors.dim} numbers"
        note(f"{file}: {size}, for {100 * share:.1f}% of the training tokens")
        if (vectors.n_announced or 0) > n:  # the file may have been cut
            note(f"note: {file}: its first line promises {vectors.n_announced:,} vectors, it has {n:,}")

    def learn(self, run: Run) -> tuple[Any, TrainingResult]:
        training = replace(self.training, seed=run.seed)
        model, self._model = self._model, None
        if model is None or run.seed != self.training.seed:
            model = self._built(run.seed)
        if run.resume and run.folder is not None and (done := finished_run(run.folder, model, training)):
            run.progress.note(f"seed {run.seed}: finished already")
            return model, done
        told = run.on_score
        result = train(
            model, self.material.train, self.material.dev, training, out=run.folder, resume=run.resume,
            progress=run.progress, locked=True,
            on_epoch=None if told is None else lambda record: told(record.epoch, record.score),
        )  # fmt: skip
        return model, result

    def together(self) -> bool:
        found: bool = self.kind.answers_together
        return found


def _read_word_vectors(path: str | None, dim: int) -> WordVectors | None:
    """The vectors in a file, which must have `dim` numbers each unless that is 0."""
    if path is None:
        if dim:
            raise TrellisworkError(f"vector_dim is {dim} and there are no vectors; add --vectors FILE or set it to 0")
        return None
    vectors = read_vectors(path)
    if dim not in (0, vectors.dim):
        problem = f"expected vectors of {dim} numbers, as vector_dim says, got {vectors.dim}"
        raise DataError(path, f"{problem}; give another file or leave vector_dim out")
    return vectors
