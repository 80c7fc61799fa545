"""The settings of networks from questions to meanings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from trelliswork.data.settings import WIDEST, Around, Numbers, Settings, setting
from trelliswork.models.transducers.semantic.forms import FormName
from trelliswork.models.transducers.semantic.stems import StemLanguage


@dataclass(frozen=True)
class TreeConfig(Settings):
    """Settings of a Seq2Tree network: a BiLSTM over words and a hierarchical decoder with attention."""

    PANEL, BY_MODEL = "Network", True

    form: FormName = setting(
        "auto", "Kind of targets; equivalent forms are mapped to one", choices=get_args(FormName), option=True
    )
    word_dim: int = setting(100, "Dimension of word embeddings.", at_least=1, option=True, search=Around(2))
    vector_dim: int = setting(0, "Dimension of pretrained vectors, 0 if there are none; set by the file of vectors.")
    tune_vectors: bool = setting(False, "Fine-tune the pretrained vectors.", option=True)
    hidden: int = setting(128, "Hidden units of the decoder.", at_least=2, option=True, search=Around(2))
    layers: int = setting(1, "Number of encoder layers.", at_least=1, option=True)
    dropout: float = setting(
        0.3, "Dropout on vectors.", at_least=0, below=1, option=True, search=Numbers(0.2, 0.6, step=0.1)
    )
    word_dropout: float = setting(
        0.05, "Probability of replacing a word by <unk> in training.", at_least=0, below=1, option=True
    )
    min_count: int = setting(2, "Words seen fewer times than this map to <unk>.", at_least=1, option=True)
    stem: StemLanguage = setting(
        "none", "Language whose stems stand for the words of questions", choices=get_args(StemLanguage), option=True
    )
    open_names: bool = setting(
        True, "Anonymise names such as denver:ci in both sides by a lexicon learned from the training pairs.",
        option=True, off="keep_names",
    )  # fmt: skip
    smoothing: float = setting(0.0, "Label smoothing.", at_least=0, below=1, option=True)
    beam: int = setting(5, "Beam size.", at_least=1, below=WIDEST + 1, option=True)
    constrained: bool = setting(True, "Decode well-formed targets only.", option=True, off="unconstrained")


@dataclass(frozen=True)
class SqlConfig(TreeConfig):
    """Settings of a Seq2SQL network: Seq2Tree, and the database that its queries are tried on."""

    form: FormName = setting("sql", "Kind of targets.", choices=("sql",))
    open_names: bool = setting(False, "Not for SQL, whose values have no kind.", choices=(False,), option=None)
    database: str | None = setting(
        None, "SQLite database the questions are about, opened read-only.", option=True, metavar="FILE"
    )
    guided: bool = setting(
        True, "Execution-guided decoding: prefer queries that run and return rows.", option=True, off="unguided"
    )
    reward_epochs: int = setting(
        0, "Number of final epochs of REINFORCE on the reward of execution.", at_least=0, option=True
    )
    n_samples: int = setting(4, "Number of sampled queries per question in these epochs.", at_least=2)
    seconds: float = setting(1.0, "Time limit per query, in seconds.", above=0)
