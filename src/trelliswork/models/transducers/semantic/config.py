"""The settings of networks from questions to meanings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from trelliswork.data.settings import Settings, setting
from trelliswork.models.transducers.semantic.forms import FormName
from trelliswork.training.search_space import Around, Numbers


@dataclass(frozen=True)
class TreeConfig(Settings):
    """What a Seq2Tree network is made of: a BiLSTM over words and a hierarchical decoder with attention."""

    PANEL, BY_MODEL = "Network", True

    form: FormName = setting(
        "auto", "What targets are; equal meanings are learned as one", choices=get_args(FormName), option=True
    )
    word_dim: int = setting(100, "Width of word vectors.", at_least=1, option=True, search=Around(2))
    hidden: int = setting(128, "Hidden units of the decoder.", at_least=2, option=True, search=Around(2))
    layers: int = setting(1, "Layers of the encoder.", at_least=1, option=True)
    dropout: float = setting(
        0.3, "Share of vectors dropped.", at_least=0, below=1, option=True, search=Numbers(0.2, 0.6, step=0.1)
    )
    word_dropout: float = setting(0.05, "Share of words read as unknown in training.", at_least=0, below=1, option=True)
    min_count: int = setting(2, "Words seen fewer times than this are unknown.", at_least=1, option=True)
    smoothing: float = setting(0.0, "Share of the loss spread over all symbols.", at_least=0, below=1, option=True)
    beam: int = setting(5, "Hypotheses kept while decoding.", at_least=1, option=True)
    constrained: bool = setting(True, "Decode well-formed targets alone.", option=True, off="unconstrained")


@dataclass(frozen=True)
class SqlConfig(TreeConfig):
    """What a Seq2SQL network is made of: Seq2Tree, and the database that its queries are tried on."""

    form: FormName = setting("sql", "What targets are.", choices=("sql",))
    database: str | None = setting(
        None, "SQLite database that questions are about; it is only read.", option=True, metavar="FILE"
    )
    guided: bool = setting(True, "Prefer queries that run and find something.", option=True, off="unguided")
    reward_epochs: int = setting(
        0, "Epochs at the end that learn by the answers of the database (REINFORCE).", at_least=0, option=True
    )
    n_samples: int = setting(4, "Queries drawn for each question in these epochs.", at_least=2)
    seconds: float = setting(1.0, "Longest time that a query may take.", above=0)
