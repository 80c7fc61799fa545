"""Learning from files by the name of a model: what `trelliswork train` and `trelliswork tune` ask, and nothing else.

The catalogue says which recipe makes the model of a name.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from trelliswork.data import Choices, ColumnFormat, Sentence
from trelliswork.data.settings import options_of, settings_given
from trelliswork.errors import TrellisworkError
from trelliswork.lazy import named
from trelliswork.models.base import Model, Scores
from trelliswork.models.catalogue import entry_of
from trelliswork.text import Tokeniser
from trelliswork.training.progress import Progress

if TYPE_CHECKING:
    from trelliswork.models.lemmatiser import Lemmatiser
    from trelliswork.models.taggers.column_taggers import ColumnTaggers

Options = Mapping[str, Any]
Note = Callable[[str], None]


class Material(NamedTuple):
    """Training material: sentences, the layout of their file, and what else a recipe has read.

    `choices` is the layout for further files of the same kind, `about` is what the model remembers of its data.
    """

    train: list[Sentence]
    dev: list[Sentence]
    format: ColumnFormat | None
    scheme: str | None
    choices: Choices
    about: Mapping[str, object]
    files: Any = None
    tokeniser: Tokeniser | None = None  # to keep with the model, as are the taggers of columns and the lemmatiser
    column_taggers: ColumnTaggers | None = None
    lemmatiser: Lemmatiser | None = None

    def annotate(self, model: Model) -> None:
        """Let a model know what it was learned from, and what to keep."""
        model.metrics["data"] = dict(self.about)
        model.tokeniser, model.column_taggers = self.tokeniser, self.column_taggers
        model.lemmatiser = self.lemmatiser


class RunOptions(NamedTuple):
    """Place and manner of a run: the folder of the model, None to keep it in memory, and who sees how it goes.

    `on_score` is called with the step and the dev score now and then; it may raise to end the run.
    """

    folder: Path | None
    seed: int
    progress: Progress
    resume: bool = False
    on_score: Callable[[int, float | None], None] | None = None
    of_several: bool = False  # whether other seeds are trained next to it; a finished one is then passed over


class Result(Protocol):
    """Outcome of a run."""

    @property
    def best_score(self) -> float | None: ...
    @property
    def best_epoch(self) -> int: ...
    @property
    def metric(self) -> str: ...
    @property
    def seconds(self) -> float: ...
    @property
    def interrupted(self) -> bool: ...
    @property
    def summary(self) -> str:
        """In a few words."""


@dataclass
class LearningResult:
    """Outcome of a run without epochs, and the size of the model."""

    best_epoch: int = 0
    seconds: float = 0.0
    interrupted: bool = False
    best_score: float | None = None
    metric: str = ""
    size: str = ""

    @property
    def summary(self) -> str:
        return f"{self.best_epoch} iterations, {self.seconds:.1f} s, {self.size}"


class Recipe(ABC):
    """From options to a model; what cannot be combined is refused when it is made.

    A command makes the recipe, calls `prepare` once with what reads the data, and `learn` for each model.
    """

    steps: ClassVar[str] = "epochs"  # what `on_score` counts
    unpruned_steps: ClassVar[int] = 2  # of a trial, before it may be ended

    @abstractmethod
    def __init__(self, options: Options) -> None: ...

    def prepare(self, read_data: Callable[[Choices], Material], choices: Choices, note: Note) -> Material:
        """Read the files of the options and the data, in this order, and take them.

        Args:
            read_data: Reads the data to learn from in the layout that it is given.
            choices: The layout of the data as far as the user has said it.
            note: Reports one line about the data.

        Returns:
            What was read, from which `begin` can start further recipes.
        """
        files = self.read_files()
        material = self.read(read_data(self.layout(choices))._replace(files=files), note)
        self.begin(material, note)
        return material

    def layout(self, choices: Choices) -> Choices:
        """Return the layout of the files to learn from, with what the settings say about it."""
        return choices

    @abstractmethod
    def settings(self) -> dict[str, object]:
        """Return every setting by the name that it has in TOML files, as far as it is known."""

    @abstractmethod
    def read_files(self) -> object:
        """Read what the options name in addition to the data, which is read before."""

    def read(self, material: Material, note: Note) -> Material:
        """Return the material with what depends on the layout of the data."""
        return material

    @abstractmethod
    def begin(self, material: Material, note: Note) -> None:
        """Take the material; notes say what is worth knowing about it."""

    @abstractmethod
    def learn(self, run: RunOptions) -> tuple[Model, Result]:
        """Learn from what was taken; the model is saved in the folder of the run."""

    @abstractmethod
    def search_values(self) -> dict[str, Any]:
        """Return the values that a default space is made around, by the names of the fields of the settings."""

    def together(self) -> bool:
        """Return whether models of several seeds can answer together."""
        return False


# Models whose parts are counted, in seconds to minutes.


_OF_NETWORKS = {"resume": False, "tensorboard": None, "seeds": 1}


class CountingResult(LearningResult):
    """Seconds that counting took, and the scores that came of it."""

    @property
    def summary(self) -> str:
        return f"counted in {self.seconds:.1f} s: {self.size}"


class CountingRecipe(Recipe):
    """A model is counted in one go by its `fit(train, config)`: there is nothing to resume, and no seed.

    A model that also reads the dev data or the tag scheme (`material.scheme`) overrides `fitted`.
    """

    steps, what, result = "passes", "a grammar is", CountingResult

    def __init__(self, options: Options) -> None:
        self.options, entry = options, entry_of(options["model"])
        for option, default in _OF_NETWORKS.items():
            if options.get(option, default) != default:
                problem = f"--{option} is for networks, and {self.what} counted in one go"
                raise TrellisworkError(f"{problem}: leave it out")
        self.kind: Any = named(entry.home)
        config = named(entry.settings)
        self.config = config(**settings_given(options, config))

    def settings(self) -> dict[str, object]:
        return options_of(self.config)

    def search_values(self) -> dict[str, object]:
        values: dict[str, object] = self.config.to_dict()
        return values

    def read_files(self) -> None:
        """Return nothing: there are no other files."""

    def begin(self, material: Material, note: Note) -> None:
        self.material, self._note = material, note

    def fitted(self) -> tuple[Model, Scores]:
        """Return a model of the training data, and its scores on the dev data, if there are any."""
        model = self.kind.fit(self.material.train, self.config)
        return model, model.evaluate(self.material.dev)

    def learn(self, run: RunOptions) -> tuple[Model, CountingResult]:
        began = time.perf_counter()
        model, scores = self.fitted()
        result = self.result(best_epoch=1, seconds=time.perf_counter() - began, size=model.size)
        for text in model.notes(self.material.train, self.material.dev):
            self._note(text)
        self.material.annotate(model)
        model.metrics["training"] = {"seconds": round(result.seconds, 1)}
        if scores:
            model.metrics["dev"] = scores
            result.best_score, result.metric = scores["score"], scores["metric"]
        if run.on_score is not None:
            if result.best_score is None:
                raise TrellisworkError("expected data to compare models on, got none; add --dev FILE")
            run.on_score(1, result.best_score)
        if run.folder is not None:
            model.save(run.folder)
        return model, result
