"""The columns of a CSV file: given by the user, taken from another file, or recognised by their names."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trelliswork.data.choices import Choices, Column, column_number
from trelliswork.errors import DataError

_SENTENCE = {f"{noun}{end}" for noun in ("sentence", "sent") for end in ("", "id", "idx", "no", "num", "number")}
_WORD = {"word", "words", "token", "tokens", "form"}
_CERTAIN = {"tag", "tags", "label", "labels"}
_LIKELY = {"ner", "nertag", "entity", "chunk", "chunktag", "iob", "bio"}


@dataclass(frozen=True)
class Header:
    """The names of the columns, and what is wanted of them. Columns are numbered from 1."""

    names: tuple[str, ...]
    file: str
    choices: Choices

    @property
    def sentence(self) -> int | None:
        """The column of sentence ids."""
        return next(iter(self._called(_SENTENCE)), None)

    @property
    def word(self) -> int:
        choices = self.choices
        if choices.word_column:
            found = self._asked(choices.word_column, "word")
        else:
            named = self._called(_WORD)
            if not named:
                wanted = "expected a header with a column called word or token"
                raise self._error(f"{wanted}, got {self}; name it in the first row or give --word-column")
            found = named[0]
        if found == self.sentence:
            raise self._error(f"expected words in column {found}, got the ids of sentences; give --word-column")
        return found

    def tag(self, required: bool) -> int | None:
        """The column asked for, the one called tag or label, the last that may hold tags, or just the last."""
        asked = self.choices.tag_column
        if asked and not required and not self._has(asked):
            return None
        if asked:
            return self._asked(asked, "tag")
        free = [i for i in self._columns() if i not in (self.word, self.sentence)]
        for found in (self._called(_CERTAIN), self._called(_LIKELY), free if required else []):
            if found := [i for i in found if i in free]:
                return found[-1]
        if required:
            raise self._error(f"expected a column of tags in addition to the words, got {self}; give --tag-column")
        return None

    def features(self, tag: int | None) -> tuple[int, ...]:
        """The columns asked for, or all others."""
        asked = self.choices.feature_columns
        if self.choices.may_lack and not all(map(self._has, asked or ())):
            return ()
        if asked is not None:
            return tuple(self._asked(each, "feature") for each in asked)
        return tuple(i for i in self._columns() if i not in (self.word, tag, self.sentence))

    def __str__(self) -> str:
        return ", ".join(self.names)

    def _columns(self) -> list[int]:
        """All but the row numbers that pandas writes, whose name is empty, index or Unnamed: 0."""
        return [i for i, name in enumerate(self.names, 1) if not re.fullmatch(r"|index|unnamed.*", name.lower())]

    def _called(self, names: set[str]) -> list[int]:
        return [i for i, name in enumerate(self.names, 1) if re.sub(r"[^a-z]", "", name.lower()) in names]

    def _has(self, column: Column) -> bool:
        if isinstance(column, int):
            return column <= len(self.names)
        return column.lower() in map(str.lower, self.names)

    def _asked(self, column: Column, role: str) -> int:
        number = column_number(column, self.names, role, self.file, 1)
        if not 1 <= number <= len(self.names):
            raise self._error(f"expected the {role} column in 1..{len(self.names)}, got {number}; there are {self}")
        return number

    def _error(self, problem: str) -> DataError:
        return DataError(self.file, problem, line=1)
