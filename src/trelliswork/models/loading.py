"""Any model from its folder, on a device; the catalogue has the class of each kind that a folder may name."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from trelliswork.data.crfsuite import is_crfsuite_model
from trelliswork.data.folder_files import read_object
from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.lazy import named
from trelliswork.models.catalogue import home_of
from trelliswork.models.storage import CONFIG, RULES, finish_replacing, stored_kind
from trelliswork.text import Token
from trelliswork.text.first_rules import FirstRules
from trelliswork.training.exclusive import COLUMNS, KEPT, LEMMAS, TOKENISER

if TYPE_CHECKING:
    from trelliswork.data.attributes.dicts import FeatureFunction, Function
    from trelliswork.models.base import Model

Loaded = TypeVar("Loaded", bound="Model")
COLUMN_TAGGERS = "trelliswork.models.taggers.column_taggers:ColumnTaggers"
LEMMATISER = "trelliswork.models.lemmatiser:Lemmatiser"


def load(directory: str | Path, *, features: Function | str | FeatureFunction | None = None) -> Model:
    """Return the model in a folder, whichever kind it is; `features` as for `FeatureTagger.load`.

    A folder that holds folders of models, as several seeds leave it, is an `Ensemble` of them, or a
    `TransducerEnsemble`.
    """
    folders, kind = model_folders(directory), known_kind(directory)
    if folders:  # several models answer together
        kind = "TransducerEnsemble" if class_of(kind).learns_from == "pairs" else "Ensemble"
    model: Model = class_of(kind).load(directory, features=features)
    return model


load_tagger = load


def known_kind(directory: str | Path) -> str:
    """Return the kind of the model in a folder, or of the first of several; what is not a model is a `ModelError`.

    Nothing is imported, so that a wrong path is reported at once.
    """
    if is_crfsuite_model(directory):
        raise ModelError(
            f"{directory}: expected a model folder, got a model of CRFsuite; run trelliswork convert first"
        )
    return stored_kind(next(iter(model_folders(directory)), directory), home_of, "Tagger")


class FolderTokeniser:
    """The tokeniser in a model folder, which is read when it is first used."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def loaded(self) -> Any:
        """The model itself."""
        model: Any = load(self.folder)
        if model.reads != "text":
            raise ModelError(f"{self.folder}: expected a tokeniser, got a {type(model).__name__}; copy the model again")
        return model

    def tokenise(self, text: str) -> list[list[Token]]:
        """Return the sentences of a text."""
        sentences: list[list[Token]] = self.loaded.tokenise(text)
        return sentences

    def save(self, directory: str | Path) -> None:
        """Write its folder to another place; where it is already, nothing is to be done."""
        if not (Path(directory).exists() and os.path.samefile(directory, self.folder)):
            self.loaded.save(directory)


def tokeniser_in(directory: str | Path) -> FolderTokeniser | None:
    """Return the tokeniser that a model folder keeps."""
    folder = Path(directory) / TOKENISER
    return FolderTokeniser(folder) if (folder / CONFIG).exists() else None


def with_kept(model: Loaded, directory: str | Path) -> Loaded:
    """Return a model with the other models that its folder keeps, and the rules that it was trained with."""
    model.tokeniser, columns = tokeniser_in(directory) or _rules_of(directory), Path(directory) / COLUMNS
    if model_folders(columns):
        model.column_taggers = named(COLUMN_TAGGERS)(folder=columns)
    if (lemmas := Path(directory) / LEMMAS / CONFIG).is_file():
        model.lemmatiser = named(LEMMATISER)(folder=lemmas.parent)
    return model


def _rules_of(directory: str | Path) -> FirstRules | None:
    """Return the rules by which a model without a tokeniser reads raw text; None if they are those of today."""
    return FirstRules() if read_object(Path(directory) / CONFIG).get(RULES, 1) == 1 else None


def class_of(kind: str) -> Any:
    """Import the class of a kind of model."""
    return named(home_of(kind))


def model_folders(directory: str | Path) -> list[Path]:
    """Return the folders of models in a folder that is none itself, by name."""
    folder = Path(directory)
    finish_replacing(folder)
    if not folder.is_dir() or (folder / CONFIG).exists():
        return []
    return sorted(each for each in folder.iterdir() if each.name not in KEPT and (each / CONFIG).is_file())


# Networks are moved to a device, other models compute on the CPU.


def place(model: Model, wanted: str) -> str:
    """Move the networks of a model, or of an ensemble, to the device that is wanted; the device."""
    members = getattr(model, "taggers", None) or getattr(model, "members", None)
    parts = members if isinstance(members, list) else [model]
    networks: list[Any] = [each for each in parts if hasattr(each, "state_dict")]
    if not networks:
        if wanted not in ("auto", "cpu"):
            kind = type(model).__name__
            raise TrellisworkError(f"--device {wanted} is for networks, and a {kind} computes on the CPU; leave it out")
        return "cpu"
    alone = next((type(each).__name__ for each in networks if each.CPU_ONLY), "")
    device: str = named("trelliswork.runtime.devices:device_for")(wanted, on_cpu_alone=alone)  # needs torch
    for each in networks:
        each.to(device)
    return device
