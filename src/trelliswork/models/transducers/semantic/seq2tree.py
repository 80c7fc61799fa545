"""From questions to logical forms: a hierarchical decoder that writes a tree bracket by bracket.

    >>> model = Seq2Tree.from_data(train_pairs)                               # doctest: +SKIP
    >>> train(model, train_pairs, dev_pairs, out="geo")                       # doctest: +SKIP
    >>> tw.load("geo").predict("which rivers are in var0")[0].value           # doctest: +SKIP
    '( A , ( _river ( A ) , _loc ( A , B ) , _const ( B , _stateid ( var0 ) ) ) )'

Dong and Lapata (2016), Language to logical form with neural attention.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from trelliswork.data import PairFormat, Sentence, Vocabulary, WordVectors
from trelliswork.errors import TrellisworkError
from trelliswork.logs import count
from trelliswork.models.base import PartProbability, Report, Scores
from trelliswork.models.recipe import Material, Options
from trelliswork.models.storage import StoredConfig
from trelliswork.models.transducers.network import BEGIN, END, UNKNOWN, EncodedPair, PairNetwork
from trelliswork.models.transducers.semantic.config import TreeConfig
from trelliswork.models.transducers.semantic.constraints import (
    Arities,
    BracketConstraint,
    check_limits,
    form_named,
    limits_of,
    opened_pairs,
    opened_tree,
    tree_of,
)
from trelliswork.models.transducers.semantic.forms import CLOSE, OPEN, Form, form_of
from trelliswork.models.transducers.semantic.names import NameLexicon, NamingGenerator, OpenedQuestion
from trelliswork.models.transducers.semantic.stems import stemming
from trelliswork.models.transducers.transducer import Symbols, Transduced
from trelliswork.nn.decoders.attention import Memory
from trelliswork.nn.decoders.base import Decoder, Unrolled
from trelliswork.nn.decoders.constraints import Constraint
from trelliswork.nn.decoders.generation import Generation
from trelliswork.nn.decoders.tree import TreeDecoder
from trelliswork.nn.dropout import Dropout
from trelliswork.nn.encoders.recurrent import RecurrentEncoder
from trelliswork.runtime.arrays import INF, Float, Int
from trelliswork.structures.beam import beam_search
from trelliswork.training.shares import answered

SHOWN = {
    "brackets": "trees in brackets",
    "lambda": "lambda terms, up to names of variables and order of conjuncts",
    "prolog": "Prolog terms, compared up to names of variables and order of conjuncts",
    "sql": "SQL",
}


class Seq2Tree(PairNetwork):
    """A BiLSTM over words, and a decoder that reads each bracket from the state of the symbol that opened it.

    Args:
        config: settings.
        format: How texts are cut into symbols.
        source: Words of questions by number.
        target: Symbols of trees by number.
        limits: What the training data say: arities of heads, levels and length of trees, names.
    """

    CONFIG, STRUCTURE = TreeConfig, "hierarchical decoder with attention (Seq2Tree)"
    config: TreeConfig
    decoder: Decoder
    flags: Tensor  # of each symbol, whether it opens or closes a bracket
    never: Tensor  # symbols that are not generated
    search = "beam"

    def __init__(
        self, config: TreeConfig, format: PairFormat, source: Vocabulary, target: Vocabulary, limits: StoredConfig
    ) -> None:
        super().__init__(config, format, source, target)
        self.form: Form = form_named(config.form)
        self.limits = dict(limits)  # of the training data: arities of heads, levels and length of trees, names
        self.lexicon, self._stemmed = NameLexicon.from_stored(self.limits["lexicon"]), stemming(config.stem)
        self.inputs = QuestionWords(
            len(source), self.limits["known"], config.word_dim, config.vector_dim, tune=config.tune_vectors
        )
        self.encoder = RecurrentEncoder(self.inputs.dim, hidden=config.hidden // 2, layers=config.layers)
        self.symbols = nn.Embedding(len(target), config.word_dim)
        self.decoder = TreeDecoder(
            config.word_dim, self.encoder.dim + self.inputs.dim, hidden=config.hidden, deepest=self.limits["deepest"],
            dropout=config.dropout,
        )  # fmt: skip
        self.output = nn.Linear(config.hidden, len(target))
        self.dropout = Dropout(config.dropout)
        flags = [[float(symbol == OPEN), float(symbol == CLOSE)] for symbol in target]
        never = [symbol in (BEGIN, UNKNOWN) for symbol in target]
        self.register_buffer("flags", torch.tensor(flags), persistent=False)
        self.register_buffer("never", torch.tensor(never), persistent=False)
        self.n_outputs = len(target)

    @classmethod
    def from_data(
        cls, train: Sequence[Sentence], config: TreeConfig | None = None, *, format: PairFormat | None = None,
        seed: int = 0, vectors: WordVectors | None = None,
    ) -> Self:  # fmt: skip
        """Return a new model of the words and symbols of some pairs; they choose the form of targets if it is open."""
        config = config or TreeConfig()
        if not train:
            raise TrellisworkError("expected pairs to build a model from, got none; check the data")
        if config.form == "auto":
            config = replace(config, form=form_of([pair.target or () for pair in train]))
        if vectors is not None and config.stem != "none":
            raise TrellisworkError("expected --stem or --vectors, got both; vectors are of whole words: leave one out")
        config = replace(config, vector_dim=0 if vectors is None else vectors.dim)
        lexicon, questions, trees = opened_pairs(train, form_named(config.form), config.open_names)
        source, n_known = words_of(list(map(stemming(config.stem), questions)), config.min_count, vectors)
        symbols = (symbol for tree in trees for symbol in tree)
        target = Vocabulary.from_items(symbols, unknown=UNKNOWN, first=(BEGIN, END))
        limits = {**cls.limits_of(trees, config), "lexicon": lexicon.stored(), "known": n_known}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = cls(config, format or PairFormat("blanks", "blanks", "none"), source, target, limits)
        if vectors is not None:
            model.inputs.load(source, vectors)
        return model

    @classmethod
    def from_material(cls, material: Material, config: TreeConfig, options: Options, seed: int) -> Self:
        return cls.from_data(material.train, config, format=material.choices.pairs, seed=seed, vectors=material.files)

    @classmethod
    def limits_of(cls, trees: Sequence[Symbols], config: TreeConfig) -> dict[str, object]:
        """Return what of the training data bounds the trees that are written."""
        return limits_of(trees)

    # Learning

    def encode(self, pairs: Sequence[Sentence], *, with_tags: bool = False) -> list[EncodedPair]:
        """Return pairs as indices; targets in the form that is learned."""
        encoded = []
        for pair in pairs:
            opened = self.lexicon.opened(pair.words)
            tree = None
            if with_tags:
                symbols = opened_tree(self.form, opened, tree_of(self.form, pair))
                tree = torch.tensor(self.target.indices(symbols), dtype=torch.long)
            encoded.append(EncodedPair(self._numbers(opened), tree, pair.words))
        return encoded

    def _numbers(self, opened: OpenedQuestion) -> Int[Tensor, " n"]:
        return torch.tensor(self.source.indices(self._stemmed(opened.words)), dtype=torch.long)

    def loss(self, batch: Sequence[Sentence] | Sequence[EncodedPair]) -> Float[Tensor, ""]:
        """Return -log p(target | source), summed over the batch; in training with the smoothing of the settings."""
        pairs = self.encoded(batch)
        return self._smoothed(pairs) if self.training else -self.log_likelihoods(pairs).sum()

    def _smoothed(self, pairs: Sequence[EncodedPair]) -> Float[Tensor, ""]:
        """Return the loss with label smoothing: a share of it is spread over all symbols.

        Szegedy et al. (2016), Rethinking the inception architecture for computer vision.
        """
        unrolled, gold = self._unrolled(pairs)
        log_probs = self.next_log_probs(unrolled.hidden[gold >= 0])
        right = log_probs.gather(-1, gold[gold >= 0][:, None]).sum()
        if not self.config.smoothing:
            return -right
        spread = log_probs.masked_fill(self.never, 0.0).sum() / (~self.never).sum()
        return -(1 - self.config.smoothing) * right - self.config.smoothing * spread

    def _unrolled(self, pairs: Sequence[EncodedPair]) -> tuple[Unrolled, Int[Tensor, "batch t"]]:
        """Return what the output layer reads before each symbol, the end included, and the symbols, then -1."""
        trees = [pair.target for pair in pairs if pair.target is not None]
        begin, end = (torch.tensor([self.target.index(name)]) for name in (BEGIN, END))
        read = pad_sequence([torch.cat([begin, tree]) for tree in trees], batch_first=True, padding_value=int(end))
        gold = pad_sequence([torch.cat([tree, end]) for tree in trees], batch_first=True, padding_value=-1)
        memory = self._memory([pair.source for pair in pairs])
        return self.decoder(memory, self.embed(read.to(self.device))), gold.to(self.device)

    def log_likelihoods(self, pairs: Sequence[EncodedPair]) -> Float[Tensor, " batch"]:
        """Return log p(target | source) of each pair: the sum over all symbols of the tree."""
        # [S4.246]
        unrolled, gold = self._unrolled(pairs)
        log_probs = self.next_log_probs(unrolled.hidden)
        return log_probs.gather(-1, gold.clamp(min=0)[..., None]).squeeze(-1).masked_fill(gold < 0, 0.0).sum(-1)

    def _memory(self, sources: Sequence[Int[Tensor, " n"]]) -> Memory:
        """Return what the decoder attends to: each word as it is, and as its neighbours make it."""
        words = pad_sequence(list(sources), batch_first=True, padding_value=-1).to(self.device)
        mask, words = words >= 0, words.clamp(min=0)
        vectors = self.dropout(self.inputs(words, self.config.word_dropout if self.training else 0.0))
        ahead, back = self.encoder(vectors, mask).chunk(2, -1)
        memory: Memory = self.decoder.remember(torch.cat([ahead, vectors * mask[..., None], back], -1), mask)
        return memory

    # What generation asks

    def embed(self, symbols: Int[Tensor, "batch m"]) -> Float[Tensor, "batch m e"]:
        """Return the vectors of symbols, and whether they open or close a bracket."""
        return torch.cat([self.dropout(self.symbols(symbols)), self.flags[symbols]], -1)

    def next_log_probs(
        self, hidden: Float[Tensor, "batch m d"], weights: Float[Tensor, "batch m n"] | None = None
    ) -> Float[Tensor, "batch m v"]:
        """Return ln p(symbol | what was read so far); a symbol that no target has is impossible."""
        scores = self.output(hidden).masked_fill(self.never, -INF)
        return scores.log_softmax(-1)

    # Answers

    @cached_property
    def constraint(self) -> Constraint | None:
        """Constraint on the targets that may be written; None if the settings have none."""
        if not self.config.constrained:
            return None
        alone, deepest = self.limits["alone"], self.limits["deepest"]
        return BracketConstraint(self.target, self.form.name, self.arities, alone, deepest)

    @property
    def arities(self) -> Arities:
        """Numbers of arguments of heads: the fewest and the most."""
        return {head: (least, most) for head, (least, most) in self.limits["arities"].items()}

    def generation(self, sources: Sequence[Int[Tensor, " n"]], names: Sequence[Container[str]] = ()) -> Generation:
        """Return all that may be written for some sources, symbol by symbol; `names` are the open names of each."""
        limits = torch.full((len(sources),), self.limits["longest"], device=self.device)
        begin, end = (self.target.index(name) for name in (BEGIN, END))
        model = NamingGenerator(self, names) if names else self
        return Generation(
            model, self._memory(sources), begin=begin, end=end, limits=limits, constraint=self.constraint
        )  # fmt: skip

    def transduced(self, batch: Sequence[Symbols], top_k: int, sure: bool) -> list[Transduced]:
        opened = [self.lexicon.opened(words) for words in batch]
        names = [each.names for each in opened] if self.lexicon.phrases else ()
        generation = self.generation([self._numbers(each) for each in opened], names)
        hypotheses = beam_search(generation, generation.score, max(self.config.beam, top_k))
        trees = [
            self._ranked(*row) for row in zip(hypotheses.decisions.tolist(), hypotheses.scores.tolist(), strict=True)
        ]
        parts = self._parts(batch, [next(iter(each)) for each in trees]) if sure else [()] * len(batch)
        return [
            Transduced(
                [(self.form.written(own.closed(tree)), score) for tree, score in list(each.items())[:top_k]], sure_of
            )
            for own, each, sure_of in zip(opened, trees, parts, strict=True)
        ]

    def _ranked(self, decisions: Sequence[Sequence[int]], scores: Sequence[float]) -> dict[Symbols, float]:
        """Return trees and their log probabilities, best first."""
        end, log_probs = self.target.index(END), dict[Symbols, float]()
        for hypothesis, score in zip(decisions, scores, strict=True):
            if score > -INF:
                log_probs.setdefault(tuple(self.target[i] for i in hypothesis if i >= 0 and i != end), score)
        return log_probs

    def _parts(self, batch: Sequence[Symbols], trees: Sequence[Symbols]) -> list[list[PartProbability]]:
        """Return for each symbol of the trees the word that it looks at most, and its conditional probability."""
        opened = [self.lexicon.opened(words) for words in batch]
        pairs = [
            EncodedPair(self._numbers(own), torch.tensor(self.target.indices(tree), dtype=torch.long), own.words)
            for own, tree in zip(opened, trees, strict=True)
        ]
        unrolled, gold = self._unrolled(pairs)
        shares = (
            self.next_log_probs(unrolled.hidden).gather(-1, gold.clamp(min=0)[..., None]).squeeze(-1).exp().tolist()
        )
        words = unrolled.weights.argmax(-1).tolist()
        return [
            [
                PartProbability(*own.span(words[row][t]), symbol, shares[row][t])
                for t, symbol in enumerate(own.closed(tree))
            ]
            for row, (own, tree) in enumerate(zip(opened, trees, strict=True))
        ]

    def evaluate(self, gold: Sequence[Sentence]) -> Scores:
        """Return the share of right meanings: equal up to names of variables and orders that do not matter."""
        answers = answered(self.transduce, gold)
        right = [
            self.form.compared(answer.best[0][0]) == self.form.compared(pair.target or ())
            for pair, answer in zip(gold, answers, strict=True)
        ]
        share = sum(right) / max(1, len(right))
        return {"metric": "exact match", "score": share, "exact match": share, "n": len(right)}

    def report(self, gold: Sequence[Sentence], *, threshold: float | None = None) -> Report:
        """Return the shares of questions that are right."""
        if threshold is not None:
            raise TrellisworkError("--threshold is for spans, and a meaning is one string; leave it out")
        scores = self.evaluate(gold)
        shown = [name for name in ("exact match", "answer") if name in scores]
        return Report("\n".join(f"{name:<24}{100 * scores[name]:6.2f}" for name in shown), scores)

    # What it is

    def twin(self, word: str) -> str | None:
        """Return None: words of questions are read as they are, for names in them need not have been seen."""
        return None

    def knows(self, word: str) -> bool:
        return super().knows(*self._stemmed((word,)))

    def vector_coverage(self, questions: Sequence[Sentence]) -> float:
        """Return the share of the words, open names counted in, that have a pretrained vector."""
        return self.inputs.coverage(self._numbers(self.lexicon.opened(pair.words)) for pair in questions)

    def notes(self, train: Sequence[Sentence], dev: Sequence[Sentence]) -> list[str]:
        for pair in dev:
            tree_of(self.form, pair)  # a broken one is said before anything is learned
        notes = [f"targets: {SHOWN[self.form.name]} (--form)"]
        repaired = sum(self.form.is_repaired(pair.target or ()) for pair in (*train, *dev))
        if repaired:
            notes.append(f"note: {count(repaired, 'target')} without all closing brackets; they are added at the end")
        if self.lexicon.phrases:
            notes.append(f"{count(len(self.lexicon.phrases), 'name')} left open in questions (--keep-names)")
        opened = [replace(pair, words=self._stemmed(self.lexicon.opened(pair.words).words)) for pair in dev]
        return [*notes, *super().notes(train, opened)]

    def stored_config(self) -> dict[str, object]:
        return super().stored_config() | {"limits": self.limits}

    @classmethod
    def from_stored(cls, config: StoredConfig) -> Self:
        source, target = (Vocabulary.from_list(config[side], unknown=UNKNOWN) for side in ("source", "target"))
        settings, format = cls.CONFIG.from_dict(config["settings"]), PairFormat(**config["format"])
        check_limits(config["limits"])
        return cls(settings, format, source, target, config["limits"])


# The words of questions as vectors: learned ones for words of the training data, pretrained ones for any word.


def words_of(questions: Sequence[Sequence[str]], min_count: int, vectors: WordVectors | None) -> tuple[Vocabulary, int]:
    """Return the words with learned vectors, then the others with pretrained ones; and the number of the former.

    Args:
        questions: Words of each question.
        min_count: Words seen fewer times have no vector of their own.
        vectors: Pretrained vectors; None for none.

    Returns:
        The vocabulary, and how many of its words have learned vectors.
    """
    known = Vocabulary.from_items(
        (word for words in questions for word in words), min_count=min_count, unknown=UNKNOWN
    ).to_list()
    others = [] if vectors is None else [word for word in vectors.words if word not in set(known)]
    return Vocabulary.from_list([*known, *others], unknown=UNKNOWN), len(known)


class QuestionWords(nn.Module):
    """A learned vector for the first `n_known` words, that of the unknown word for the others; behind it, if
    `vector_dim` is not 0, the pretrained vector of the word.

    Args:
        n_words: Number of words, those with pretrained vectors alone included.
        n_known: Number of words with learned vectors.
        dim: Width of the learned vectors.
        vector_dim: Width of the pretrained vectors, 0 if there are none.
        tune: True to train the pretrained vectors further.
    """

    def __init__(self, n_words: int, n_known: int, dim: int, vector_dim: int = 0, *, tune: bool = False) -> None:
        super().__init__()
        self.n_known, self.dim = n_known, dim + vector_dim
        self.learned = nn.Embedding(n_known, dim)
        self.pretrained = nn.Embedding(n_words, vector_dim).requires_grad_(tune) if vector_dim else None

    def load(self, words: Vocabulary, vectors: WordVectors) -> None:
        """Take the pretrained vectors of some words; words without one have the mean of all."""
        assert self.pretrained is not None
        rows = {word: row for row, word in enumerate(vectors.words)}
        matrix = torch.from_numpy(vectors.matrix)
        with torch.no_grad():
            self.pretrained.weight.copy_(matrix.mean(0).expand_as(self.pretrained.weight))
            pretrained = [(i, rows[word]) for i, word in enumerate(words) if word in rows]
            self.pretrained.weight[[i for i, _ in pretrained]] = matrix[[row for _, row in pretrained]]

    def coverage(self, questions: Iterable[Int[Tensor, " n"]]) -> float:
        """Return the share of the words that have a pretrained vector: another one than the unknown word."""
        assert self.pretrained is not None
        words = torch.cat(list(questions)).to(self.pretrained.weight.device)
        table = self.pretrained.weight.detach()
        return float((table[words] != table[0]).any(-1).float().mean())

    def forward(self, words: Int[Tensor, "batch n"], dropped: float = 0.0) -> Float[Tensor, "batch n d"]:
        """Return the vectors of words; a share `dropped` of them is learned as unknown."""
        known = words.where(words < self.n_known, 0)
        if dropped:
            known = known.masked_fill(torch.rand(words.shape, device=words.device) < dropped, 0)
        learned = self.learned(known)
        return learned if self.pretrained is None else torch.cat([learned, self.pretrained(words)], -1)
