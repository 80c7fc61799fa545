"""From questions to logical forms: a hierarchical decoder that writes a tree bracket by bracket.

    >>> model = Seq2Tree.from_data(train_pairs)                               # doctest: +SKIP
    >>> train(model, train_pairs, dev_pairs, out="geo")                       # doctest: +SKIP
    >>> tw.load("geo").predict("which rivers are in var0")[0].value           # doctest: +SKIP
    '( A , ( _river ( A ) , _loc ( A , B ) , _const ( B , _stateid ( var0 ) ) ) )'

Dong and Lapata (2016), Language to logical form with neural attention.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from trelliswork.data import PairFormat, Sentence, Vocabulary
from trelliswork.errors import DataError, TermError, TrellisworkError
from trelliswork.models.base import PartProbability, Report, count
from trelliswork.models.transducers.network import BEGIN, END, UNKNOWN, EncodedPair, PairNetwork
from trelliswork.models.transducers.semantic.config import TreeConfig
from trelliswork.models.transducers.semantic.constraints import Arities, BracketConstraint, arities_in, names_alone
from trelliswork.models.transducers.semantic.forms import CLOSE, FORMS, OPEN, Form, FormName, form_of
from trelliswork.models.transducers.semantic.sql import SqlForm
from trelliswork.models.transducers.transducer import Symbols, Transduced
from trelliswork.nn.decoders.base import Decoder, Unrolled
from trelliswork.nn.decoders.constraints import Constraint
from trelliswork.nn.decoders.generation import Generation
from trelliswork.nn.decoders.tree import TreeDecoder
from trelliswork.nn.encoders.recurrent import RecurrentEncoder
from trelliswork.structures.beam import beam_search
from trelliswork.training.shares import answered

if TYPE_CHECKING:
    from jaxtyping import Float, Int

DEEPER, LONGER = 2, 1.5  # than the deepest and the longest tree of the training data: what may be generated
INF = float("inf")
SHOWN = {
    "brackets": "trees in brackets",
    "lambda": "lambda terms, up to names of variables and order of conjuncts",
    "prolog": "Prolog terms",
    "sql": "SQL",
}


class Seq2Tree(PairNetwork):
    """A BiLSTM over words, and a decoder that reads each bracket from the state of the symbol that opened it."""

    CONFIG, STRUCTURE = TreeConfig, "hierarchical decoder with attention (Seq2Tree)"
    config: TreeConfig
    decoder: Decoder
    flags: Tensor  # of each symbol, whether it opens or closes a bracket
    never: Tensor  # symbols that are not generated
    search = "beam"

    def __init__(
        self, config: TreeConfig, format: PairFormat, source: Vocabulary, target: Vocabulary, limits: Mapping[str, Any]
    ) -> None:
        super().__init__(config, format, source, target)
        self.form: Form = form_named(config.form)
        self.limits = dict(limits)  # of the training data: arities of heads, levels and length of trees
        self.inputs = nn.Embedding(len(source), config.word_dim)
        self.encoder = RecurrentEncoder(config.word_dim, hidden=config.hidden // 2, layers=config.layers)
        self.symbols = nn.Embedding(len(target), config.word_dim)
        self.decoder = TreeDecoder(
            config.word_dim, self.encoder.dim + config.word_dim, hidden=config.hidden, deepest=self.limits["deepest"],
            dropout=config.dropout,
        )  # fmt: skip
        self.output = nn.Linear(config.hidden, len(target))
        self.dropout = nn.Dropout(config.dropout)
        flags = [[float(symbol == OPEN), float(symbol == CLOSE)] for symbol in target]
        never = [symbol in (BEGIN, UNKNOWN) for symbol in target]
        self.register_buffer("flags", torch.tensor(flags), persistent=False)
        self.register_buffer("never", torch.tensor(never), persistent=False)
        self.n_outputs = len(target)

    @classmethod
    def from_data(
        cls, train: Sequence[Sentence], config: Any = None, *, format: PairFormat | None = None, seed: int = 0
    ) -> Self:
        """A new model of the words and symbols of some pairs; the form of targets is chosen by them, if it is open."""
        config = config or TreeConfig()
        if not train:
            raise TrellisworkError("expected pairs to build a model from, got none; check the data")
        targets = [pair.target or () for pair in train]
        config = replace(config, form=form_of(targets) if config.form == "auto" else config.form)
        trees = [_read(form_named(config.form), pair) for pair in train]
        words = (word for pair in train for word in pair.words)
        source = Vocabulary.from_items(words, min_count=config.min_count, unknown=UNKNOWN)
        symbols = (symbol for tree in trees for symbol in tree)
        target = Vocabulary.from_items(symbols, unknown=UNKNOWN, first=(BEGIN, END))
        limits = cls.limits_of(trees, config)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return cls(config, format or PairFormat("blanks", "blanks", "none"), source, target, limits)

    @classmethod
    def limits_of(cls, trees: Sequence[Symbols], config: Any) -> dict[str, Any]:
        """What of the training data bounds the trees that are written."""
        return {
            "arities": arities_in(trees),
            "alone": sorted(names_alone(trees)),
            "deepest": max(map(_depth, trees)) + 1 + DEEPER,
            "longest": int(LONGER * max(map(len, trees))) + 1,
        }

    # Learning

    def encode(self, pairs: Sequence[Sentence], *, with_tags: bool = False) -> list[EncodedPair]:
        """Pairs as indices; targets in the form that is learned."""
        found = []
        for pair in pairs:
            source = torch.tensor(self.source.indices(pair.words), dtype=torch.long)
            tree = self.target.indices(_read(self.form, pair)) if with_tags else None
            found.append(EncodedPair(source, None if tree is None else torch.tensor(tree), pair.words))
        return found

    def loss(self, batch: Sequence[Sentence] | Sequence[EncodedPair]) -> Float[Tensor, ""]:
        """-log p(target | source), summed over the batch; in training with the smoothing of the settings."""
        pairs = self.encoded(batch)
        return self._smoothed(pairs) if self.training else -self.log_likelihoods(pairs).sum()

    def _smoothed(self, pairs: Sequence[EncodedPair]) -> Float[Tensor, ""]:
        """A share of the loss is that of all symbols alike: Szegedy et al. (2016), Rethinking the inception
        architecture."""
        found, gold = self._unrolled(pairs)
        log_probs = self.next_log_probs(found.hidden[gold >= 0])
        right = log_probs.gather(-1, gold[gold >= 0][:, None]).sum()
        if not self.config.smoothing:
            return -right
        spread = log_probs.masked_fill(self.never, 0.0).sum() / (~self.never).sum()
        return -(1 - self.config.smoothing) * right - self.config.smoothing * spread

    def _unrolled(self, pairs: Sequence[EncodedPair]) -> tuple[Unrolled, Int[Tensor, "batch t"]]:
        """What the output layer reads before each symbol, the end included, and the symbols, -1 behind the end."""
        trees = [pair.target for pair in pairs if pair.target is not None]
        begin, end = (torch.tensor([self.target.index(name)]) for name in (BEGIN, END))
        read = pad_sequence([torch.cat([begin, tree]) for tree in trees], batch_first=True, padding_value=int(end))
        gold = pad_sequence([torch.cat([tree, end]) for tree in trees], batch_first=True, padding_value=-1)
        memory = self._memory([pair.source for pair in pairs])
        return self.decoder(memory, self.embed(read.to(self.device))), gold.to(self.device)

    def log_likelihoods(self, pairs: Sequence[EncodedPair]) -> Float[Tensor, " batch"]:
        """log p(target | source): the product of the sequences of the tree; training makes minus its sum small."""
        # [S4.246]
        found, gold = self._unrolled(pairs)
        log_probs = self.next_log_probs(found.hidden)
        return log_probs.gather(-1, gold.clamp(min=0)[..., None]).squeeze(-1).masked_fill(gold < 0, 0.0).sum(-1)

    def _memory(self, sources: Sequence[Int[Tensor, " n"]]) -> Any:
        """What the decoder attends to: each word as it is, and as its neighbours make it."""
        words = pad_sequence(list(sources), batch_first=True, padding_value=-1).to(self.device)
        mask, words = words >= 0, words.clamp(min=0)
        if self.training and self.config.word_dropout:
            dropped = torch.rand(words.shape, device=words.device) < self.config.word_dropout
            words = words.masked_fill(dropped, self.source.index(UNKNOWN))
        vectors = self.dropout(self.inputs(words))
        ahead, back = self.encoder(vectors, mask).chunk(2, -1)
        return self.decoder.remember(torch.cat([ahead, vectors * mask[..., None], back], -1), mask)

    # What generation asks

    def embed(self, symbols: Int[Tensor, "batch m"]) -> Float[Tensor, "batch m e"]:
        """The vectors of symbols, and whether they open or close a bracket."""
        return torch.cat([self.dropout(self.symbols(symbols)), self.flags[symbols]], -1)

    def next_log_probs(
        self, hidden: Float[Tensor, "batch m d"], weights: Float[Tensor, "batch m n"] | None = None
    ) -> Float[Tensor, "batch m v"]:
        """ln p(symbol | what was read so far); a symbol that no target has is impossible."""
        scores = self.output(hidden).masked_fill(self.never, -INF)
        return scores.log_softmax(-1)

    # Answers

    @cached_property
    def constraint(self) -> Constraint | None:
        """What may be written."""
        if not self.config.constrained:
            return None
        alone, deepest = self.limits["alone"], self.limits["deepest"]
        return BracketConstraint(self.target, self.form.name, self.arities, alone, deepest)

    @property
    def arities(self) -> Arities:
        """How many arguments heads have: the fewest and the most."""
        return {head: (least, most) for head, (least, most) in self.limits["arities"].items()}

    def generation(self, sources: Sequence[Int[Tensor, " n"]]) -> Generation:
        """All that may be written for some sources, symbol by symbol."""
        limits = torch.full((len(sources),), self.limits["longest"], device=self.device)
        begin, end = (self.target.index(name) for name in (BEGIN, END))
        return Generation(
            self, self._memory(sources), begin=begin, end=end, limits=limits, constraint=self.constraint
        )  # fmt: skip

    def transduced(self, batch: Sequence[Symbols], top_k: int, sure: bool) -> list[Transduced]:
        sources = [torch.tensor(self.source.indices(words), dtype=torch.long) for words in batch]
        generation = self.generation(sources)
        found = beam_search(generation, generation.score, max(self.config.beam, top_k))
        trees = [self._ranked(*row) for row in zip(found.decisions.tolist(), found.scores.tolist(), strict=True)]
        parts = self._parts(batch, [next(iter(each)) for each in trees]) if sure else [()] * len(batch)
        return [
            Transduced([(self.form.written(tree), score) for tree, score in list(each.items())[:top_k]], sure_of)
            for each, sure_of in zip(trees, parts, strict=True)
        ]

    def _ranked(self, decisions: Sequence[Sequence[int]], scores: Sequence[float]) -> dict[Symbols, float]:
        """Trees and their log probabilities, best first."""
        end, found = self.target.index(END), dict[Symbols, float]()
        for hypothesis, score in zip(decisions, scores, strict=True):
            if score > -INF:
                found.setdefault(tuple(self.target[i] for i in hypothesis if i >= 0 and i != end), score)
        return found

    def _parts(self, batch: Sequence[Symbols], trees: Sequence[Symbols]) -> list[list[PartProbability]]:
        """For each symbol of the trees, the word that it looks at most, and its probability given those before it."""
        sources = [torch.tensor(self.source.indices(words), dtype=torch.long) for words in batch]
        pairs = [
            EncodedPair(source, torch.tensor(self.target.indices(tree), dtype=torch.long), words)
            for source, tree, words in zip(sources, trees, batch, strict=True)
        ]
        found, gold = self._unrolled(pairs)
        shares = self.next_log_probs(found.hidden).gather(-1, gold.clamp(min=0)[..., None]).squeeze(-1).exp().tolist()
        words = found.weights.argmax(-1).tolist()
        return [
            [PartProbability(words[row][t], words[row][t] + 1, symbol, shares[row][t]) for t, symbol in enumerate(tree)]
            for row, tree in enumerate(trees)
        ]

    def evaluate(self, gold: Sequence[Sentence]) -> dict[str, Any]:
        """The share of questions whose meaning is right: equal in names of variables and order where they matter."""
        answers = answered(self.transduce, gold)
        right = [
            self.form.compared(answer.best[0][0]) == _read(self.form, pair)
            for pair, answer in zip(gold, answers, strict=True)
        ]
        share = sum(right) / max(1, len(right))
        return {"metric": "exact match", "score": share, "exact match": share, "n": len(right)}

    def report(self, gold: Sequence[Sentence], *, threshold: float | None = None) -> Report:
        """The shares of questions that are right."""
        if threshold is not None:
            raise TrellisworkError("--threshold is for spans, and a meaning is one string; leave it out")
        scores = self.evaluate(gold)
        shown = [name for name in ("exact match", "answer") if name in scores]
        return Report("\n".join(f"{name:<24}{100 * scores[name]:6.2f}" for name in shown), scores)

    # What it is

    def notes(self, train: Sequence[Sentence], dev: Sequence[Sentence]) -> list[str]:
        for pair in dev:
            _read(self.form, pair)  # a broken one is said before anything is learned
        found = [f"targets: {SHOWN[self.form.name]} (--form)"]
        repaired = sum(self.form.is_repaired(pair.target or ()) for pair in (*train, *dev))
        if repaired:
            found.append(f"note: {count(repaired, 'target')} without all closing brackets; they are added at the end")
        return [*found, *super().notes(train, dev)]

    def stored_config(self) -> dict[str, Any]:
        return super().stored_config() | {"limits": self.limits}

    @classmethod
    def from_stored(cls, config: Mapping[str, Any]) -> Self:
        source, target = (Vocabulary.from_list(config[side], unknown=UNKNOWN) for side in ("source", "target"))
        settings, format = cls.CONFIG.from_dict(config["settings"]), PairFormat(**config["format"])
        return cls(settings, format, source, target, config["limits"])


def form_named(name: FormName) -> Form:
    """The form of a name that is settled."""
    return SqlForm() if name == "sql" else FORMS[name]


def _depth(tree: Symbols) -> int:
    """The deepest level of brackets."""
    depth = deepest = 0
    for symbol in tree:
        depth += (symbol == OPEN) - (symbol == CLOSE)
        deepest = max(deepest, depth)
    return deepest


def _read(form: Form, pair: Sentence) -> Symbols:
    """The target of a pair as it is learned."""
    if pair.target is None:
        raise TrellisworkError("expected pairs with targets to learn from, got a source alone; give its target")
    try:
        return form.read(pair.target)
    except TermError as error:
        raise DataError(pair.file or "pairs", f"{error}; mend the target", line=pair.line) from error
