"""The settings of language models: what text is made of, and how n-grams are counted and smoothed."""

from __future__ import annotations

from dataclasses import dataclass

from trelliswork.data.settings import OneOf, Settings, setting
from trelliswork.errors import TrellisworkError

PLAIN_TEXT = "plain text"  # what language models learn from, as `Model.learns_from` has it


@dataclass(frozen=True)
class TextFiles(Settings):
    """Text that a language model is learned from."""

    PANEL = "Language models"

    pretokenised: bool = setting(
        False, "Read one sentence per line, words separated by white space; without it, raw text is cut into sentences "
        "and words.", option=True,
    )  # fmt: skip
    more: tuple[str, ...] = setting((), "Further files of text.")


@dataclass(frozen=True)
class TextConfig(Settings):
    """What a language model predicts."""

    PANEL = TextFiles.PANEL

    units: str = setting(
        "words", "What is predicted one after the other", choices=("words", "characters", "subwords"), option=True
    )
    merges: int = setting(
        8000, "Number of byte-pair merges that subwords are made by.", at_least=1, option=True,
        goes_with={"units": ("subwords",)},
    )  # fmt: skip
    least_count: int = setting(
        1, "Units seen fewer times than this map to <unk>.", at_least=1, option=True, search=OneOf((1, 2, 3))
    )


@dataclass(frozen=True)
class NgramConfig(Settings):
    """How n-grams are counted and smoothed.

    Chen and Goodman (1999), An empirical study of smoothing techniques for language modeling.
    """

    PANEL, BY_MODEL = TextFiles.PANEL, True

    order: int = setting(5, "Order of the n-gram model.", at_least=1, below=8, option=True, search=OneOf((3, 4, 5, 6)))
    smoothing: str = setting(
        "kneser-ney", "Smoothing: modified Kneser-Ney, Witten-Bell, or stupid back-off, whose scores do not sum to 1",
        choices=("kneser-ney", "witten-bell", "stupid"), option=True, search=OneOf(("kneser-ney", "witten-bell")),
    )  # fmt: skip
    cutoffs: str = setting(
        "", "Least counts of n-grams by length, such as 1,1,2: longer n-grams seen fewer times are left out.",
        option=True, metavar="N,N,...",
    )  # fmt: skip
    prune: float = setting(
        0.0, "Leave out n-grams without which perplexity rises by less than this share, such as 1e-8.", at_least=0,
        option=True, search=OneOf((0.0, 1e-9, 1e-8)),
    )  # fmt: skip
    counts_on_disk: str | None = setting(
        None, "Count in temporary files in this directory: for counts larger than memory.", option=True, metavar="DIR"
    )

    @property
    def least_counts(self) -> tuple[int, ...]:
        """Return the cut-offs as numbers."""
        try:
            return tuple(int(each) for each in self.cutoffs.split(",") if each)
        except ValueError as error:
            problem = f"cutoffs must be whole numbers with commas between them, such as 1,1,2; got {self.cutoffs!r}"
            raise TrellisworkError(problem) from error
