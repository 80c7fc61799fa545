"""From questions to SQL: queries that the grammar and the schema allow, and that the database can answer.

    >>> model = Seq2SQL.from_data(pairs, SqlConfig(database="geography.sqlite"))       # doctest: +SKIP
    >>> train(model, pairs, dev_pairs, out="queries")                                  # doctest: +SKIP
    >>> tw.load("queries").predict("how many rivers are there in state_name0")         # doctest: +SKIP

The decoder is that of Seq2Tree: a subquery is a bracket. Execution-guided: of the queries of a beam, the answer is the
most probable one that runs and finds something.

Zhong, Xiong and Socher (2017), Seq2SQL: generating structured queries from natural language using reinforcement
learning; Wang et al. (2018), Robust text-to-SQL generation with execution-guided decoding.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Self

import torch
from torch import Tensor

from trelliswork.data import PairFormat, Sentence, Vocabulary, WordVectors
from trelliswork.data.database import Database, Rows
from trelliswork.errors import TrellisworkError
from trelliswork.models.base import Scores
from trelliswork.models.storage import StoredConfig
from trelliswork.models.transducers.network import END, EncodedPair
from trelliswork.models.transducers.semantic.config import SqlConfig, TreeConfig
from trelliswork.models.transducers.semantic.constraints import SPECIAL
from trelliswork.models.transducers.semantic.seq2tree import Seq2Tree
from trelliswork.models.transducers.semantic.sql import classes_of, sql_grammar
from trelliswork.models.transducers.transducer import Symbols, Transduced
from trelliswork.nn.decoders.constraints import Constraint
from trelliswork.nn.decoders.generation import GrammarConstraint
from trelliswork.nn.query_parts import execution_reward, reinforce_loss
from trelliswork.runtime.arrays import Float, Int
from trelliswork.structures.beam import sample
from trelliswork.structures.beam.search import Hypotheses
from trelliswork.training.shares import answered

PLACEHOLDER = re.compile(r"([\"'])([A-Za-z_]+?)(\d+)\1")  # "state_name0" stands for any value of STATE_NAME
N_EXAMPLES = 3  # values that are tried for each


class Seq2SQL(Seq2Tree):
    """Seq2Tree over SQL with a database; what it writes always parses, and names what the schema has.

    Args:
        config: settings.
        format: How texts are cut into symbols.
        source: Words of questions by number.
        target: Symbols of queries by number.
        limits: What the training data say, such as the longest query, and the schema of the database.
    """

    CONFIG, STRUCTURE = SqlConfig, "hierarchical decoder of SQL with attention, guided by execution"
    config: SqlConfig

    def __init__(
        self, config: SqlConfig, format: PairFormat, source: Vocabulary, target: Vocabulary, limits: StoredConfig
    ) -> None:
        super().__init__(config, format, source, target, limits)
        self.by_reward = False
        self.schema: dict[str, tuple[str, ...]] = {name: tuple(each) for name, each in limits["schema"].items()}

    @classmethod
    def from_data(
        cls, train: Sequence[Sentence], config: TreeConfig | None = None, *, format: PairFormat | None = None,
        seed: int = 0, vectors: WordVectors | None = None,
    ) -> Self:  # fmt: skip
        """Return a new model of pairs of questions and queries; the settings name the database."""
        config = config or SqlConfig()
        if not isinstance(config, SqlConfig) or config.database is None:
            raise TrellisworkError("expected the database that questions are about, got none; add --database FILE")
        return super().from_data(train, replace(config, form="sql"), format=format, seed=seed, vectors=vectors)

    @classmethod
    def limits_of(cls, trees: Sequence[Symbols], config: TreeConfig) -> dict[str, object]:
        assert isinstance(config, SqlConfig) and config.database is not None
        return {**super().limits_of(trees, config), "schema": Database(config.database).schema}

    @cached_property
    def database(self) -> Database | None:
        """Database that queries are tried on; None if the file does not exist."""
        file = self.config.database or ""
        return Database(file, seconds=self.config.seconds) if os.path.isfile(file) else None

    @cached_property
    def constraint(self) -> Constraint | None:
        """SQL that names what the schema has."""
        if not self.config.constrained:
            return None
        classes = classes_of((name for name in self.target if name not in SPECIAL), self.schema)
        return GrammarConstraint(sql_grammar(classes), self.target.to_list(), self.target.index(END), classes)

    # Learning by reward

    def begin_epoch(self, epoch: int, n_epochs: int) -> None:
        """Begin to learn by reward in the last epochs, as many as the settings say."""
        self.by_reward = self.database is not None and epoch > n_epochs - self.config.reward_epochs

    def loss(self, batch: Sequence[Sentence] | Sequence[EncodedPair]) -> Float[Tensor, ""]:
        """Return -log p(query | question) or, in epochs that learn by reward, an estimate of minus that reward."""
        if not (self.by_reward and self.training):
            return super().loss(batch)
        pairs = self.encoded(batch)
        drawn = self.drawn([pair.source for pair in pairs], self.config.n_samples)
        rewards = [
            [self._reward(query, pair) for query in row]
            for row, pair in zip(drawn.decisions.tolist(), pairs, strict=True)
        ]
        return reinforce_loss(drawn.scores, torch.tensor(rewards, device=self.device))

    def drawn(self, sources: Sequence[Int[Tensor, " n"]], n_samples: int) -> Hypotheses[tuple[Tensor, ...]]:
        """Return queries drawn from what the constraint allows; their scores are their log probabilities."""
        generation = self.generation(sources)
        return sample(generation, generation.score, n_samples)

    def _reward(self, query: Sequence[int], pair: EncodedPair) -> float:
        """Return the reward by the answers of the database, with examples for what is left open."""
        assert pair.target is not None
        answers, right = (self._tried(each) for each in (query, pair.target.tolist()))
        return execution_reward(None if None in answers else answers, right)

    def _tried(self, query: Sequence[int]) -> list[Rows | None]:
        end = self.target.index(END)
        symbols = tuple(self.target[i] for i in query if i >= 0 and i != end)
        return self.answers(self.form.written(symbols))

    # Answers

    def transduced(self, batch: Sequence[Symbols], top_k: int, sure: bool) -> list[Transduced]:
        """Return the queries that run and find something first, the others behind them."""
        if self.database is None or not self.config.guided:
            return super().transduced(batch, top_k, sure)
        answers = super().transduced(batch, max(top_k, self.config.beam), False)
        ranked = [sorted(each.best, key=lambda query: not self._answers(query[0])) for each in answers]
        trees = [self.form.read(queries[0][0]) for queries in ranked]
        parts = self._parts(batch, trees) if sure else [()] * len(batch)
        return [Transduced(queries[:top_k], each) for queries, each in zip(ranked, parts, strict=True)]

    def _answers(self, query: Symbols) -> bool:
        """Return whether a query finds something, with one value or another for what it leaves open."""
        return any(answer not in (None, (), ((None,),)) for answer in self.answers(query))

    def answers(self, query: Symbols, values: Mapping[str, str] | None = None) -> list[Rows | None]:
        """Return the answers of the database; names that `values` lack are tried with examples of their columns."""
        if self.database is None:
            raise TrellisworkError(f"expected the database {self.config.database}, got no such file; copy it there")
        text = filled(self.format.join_target(query), values or {})
        names = sorted({match[2].upper() for match in PLACEHOLDER.finditer(text)} & self.columns)
        if not names:
            return [self.database.answer(text)]
        tries = zip(*(self._examples(name) for name in names), strict=False)
        return [self.database.answer(_with_examples(text, dict(zip(names, each, strict=True)))) for each in tries]

    @cached_property
    def columns(self) -> set[str]:
        """The names of all columns."""
        return {column for each in self.schema.values() for column in each}

    def _examples(self, column: str) -> list[str]:
        assert self.database is not None
        tables = (table for table, columns in self.schema.items() if column in columns)
        query = f'SELECT DISTINCT "{column}" FROM "{next(tables)}" WHERE "{column}" IS NOT NULL'
        return [str(row[0]) for row in islice(self.database.answer(query) or (), N_EXAMPLES)]

    def evaluate(self, gold: Sequence[Sentence]) -> Scores:
        """Return the share of questions with the right answer, and of those with the right query."""
        scores = super().evaluate(gold)
        if self.database is None:
            return scores
        queries = [each.best[0][0] for each in answered(self.transduce, gold)]
        right = [
            self.form.compared(query) == self.form.compared(pair.target or ()) or self._agree(query, pair.target or ())
            for query, pair in zip(queries, gold, strict=True)
        ]
        share = sum(right) / max(1, len(right))
        return {**scores, "metric": "answer", "score": share, "answer": share}

    def _agree(self, query: Symbols, right: Symbols) -> bool:
        """Return whether two queries with the same open names are answered alike."""
        expected = self.answers(right)
        return None not in expected and self.answers(query) == expected


def filled(query: str, values: Mapping[str, str]) -> str:
    """Return a query with the values of names that are left open.

    >>> filled('SELECT x FROM y WHERE z = "state_name0"', {"state_name0": "texas"})
    'SELECT x FROM y WHERE z = "texas"'
    """
    return re.sub(r"([\"'])(\w+)\1", lambda match: _quoted(values.get(match[2], match[2]), match[1]), query)


def _quoted(value: str, mark: str) -> str:
    return mark + value.replace(mark, mark + mark) + mark


def _with_examples(query: str, examples: Mapping[str, str]) -> str:
    return PLACEHOLDER.sub(
        lambda match: _quoted(examples[match[2].upper()], match[1]) if match[2].upper() in examples else match[0], query
    )
