"""A neural edit transducer: p(target | source), summed exactly over all scripts that write the target.

    >>> model = EditTransducer.from_data(pairs, format=PairFormat("characters", "blanks"))     # doctest: +SKIP
    >>> train(model, pairs, dev_pairs, out="pronounce")                                        # doctest: +SKIP
    >>> model.predict(["cat"], top_k=2)[0].alternatives                                        # doctest: +SKIP

The source is read from left to right. At each place, and after each prefix of the target, a network chooses to insert
a symbol, to put one in the place of the next one of the source, to copy that one, or to delete it. `nn/edit/math.md`
has the equations.

Graves (2012), Sequence transduction with recurrent neural networks; Makarov and Clematide (2018), Neural
transition-based string transduction for limited-resource setting in morphology; Wu and Cotterell (2019), Exact hard
monotonic attention for character-level transduction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from trelliswork.data import PairFormat, Sentence, Vocabulary
from trelliswork.distributions.edit_alignment import EditAlignment
from trelliswork.errors import ConstraintError, TrellisworkError
from trelliswork.models.base import PartProbability
from trelliswork.models.transducers.config import EditConfig
from trelliswork.models.transducers.network import EncodedPair, PairNetwork
from trelliswork.models.transducers.transducer import SpanPin, Symbols, Transduced
from trelliswork.nn.edit.network import EditNetwork, Pairs, ScriptScores, Sizes
from trelliswork.nn.edit.pinned_search import PinnedBeam, PinnedLattice
from trelliswork.nn.edit.search import ScoredString, beam_widths, best_strings, search_inputs

SPECIAL = 3  # unknown, begin and end: entries of the vocabulary of targets that nothing writes
NOTHING = -1
ONE_ALPHABET = 0.9  # of the letters of sources that targets have too: what was never seen is then written as it is
HARD = 60  # symbols of a source from which on answers of a beam are rarely certain
LONGEST_PINNED = 1_000  # symbols of a source whose answers may be pinned


@dataclass(frozen=True, slots=True)
class EncodedEdit(EncodedPair):
    """A pair as the network numbers symbols; `copies` has what copying writes, `strange` what can only be copied."""

    copies: Tensor
    strange: Symbols


class EditTransducer(PairNetwork):
    """Insert, substitute, copy and delete, chosen by a network in each cell of the lattice of edits."""

    CONFIG, STRUCTURE = EditConfig, "edit scripts scored by a network, summed over all alignments"
    supports_ensembling, supports_pins, CPU_ONLY = True, True, True
    config: EditConfig

    def __init__(self, config: EditConfig, format: PairFormat, source: Vocabulary, target: Vocabulary) -> None:
        super().__init__(config, format, source, target)
        sizes = Sizes(config.symbol_dim, config.hidden, config.layers, config.cell_dim)
        self.network = EditNetwork(len(source) - 1, len(target) - SPECIAL, sizes, dropout=config.dropout)
        letters = {symbol for symbol in source.to_list()[1:] if any(map(str.isalnum, symbol))}
        shared = set(source.to_list()[1:]) & set(target.to_list()[SPECIAL:])
        self.copying = config.copy and bool(shared)
        self._one_alphabet = len(letters & shared) >= ONE_ALPHABET * len(letters)

    # Learning

    def encode(self, pairs: Sequence[Sentence], *, with_tags: bool = False) -> list[EncodedEdit]:
        """Return pairs as indices, to be reused from epoch to epoch."""
        encoded = super().encode(pairs, with_tags=with_tags)
        return [self._encoded(each, pair) for each, pair in zip(encoded, pairs, strict=True)]

    def encoded(self, batch: Sequence[Sentence] | Sequence[EncodedPair]) -> list[EncodedEdit]:
        known = [each for each in batch if isinstance(each, EncodedEdit)]
        return known or self.encode([each for each in batch if isinstance(each, Sentence)], with_tags=True)

    def _encoded(self, pair: EncodedPair, given: Sentence) -> EncodedEdit:
        strange = self._strange(pair.symbols)
        copies = [self._number(symbol, strange) if self.copying else NOTHING for symbol in pair.symbols]
        target = pair.target
        if target is not None:
            target = _numbers([self._number(symbol, strange) for symbol in given.target or ()])
        source = torch.where(pair.source == 0, len(self.source), pair.source) - 1  # unknown comes last
        return EncodedEdit(source, target, pair.symbols, _numbers(copies), strange)

    def _strange(self, symbols: Symbols) -> Symbols:
        """Return symbols that were never seen on either side."""
        return tuple(dict.fromkeys(s for s in symbols if s not in self.source and s not in self.target))

    def _number(self, symbol: str, strange: Symbols) -> int:
        """Return the number of a symbol that is written; -1 if nothing writes it."""
        place = self.target.index(symbol) if symbol in self.target else 0
        if place >= SPECIAL:
            return place - SPECIAL
        return self.network.n_targets + strange.index(symbol) if symbol in strange else NOTHING

    def loss(self, batch: Sequence[Sentence] | Sequence[EncodedPair]) -> Tensor:
        return -self._written(self.encoded(batch)).log_prob(best=self.config.paths == "best").sum()

    def _written(self, batch: Sequence[EncodedEdit]) -> ScriptScores:
        sources, copies, lengths = self._sources(batch)
        if self.training and self.config.unknown_dropout:
            dropped = torch.rand(sources.shape) < self.config.unknown_dropout
            sources = sources.masked_fill(dropped, self.network.n_sources)
        known = [each.target for each in batch if each.target is not None]
        targets, target_lengths = pad_sequence(known, True, NOTHING), torch.tensor(list(map(len, known)))
        written: ScriptScores = self.network(sources, Pairs(copies, targets, lengths, target_lengths))
        return written

    def _sources(self, batch: Sequence[EncodedEdit]) -> tuple[Tensor, Tensor, Tensor]:
        sources = pad_sequence([each.source for each in batch], True)
        copies = pad_sequence([each.copies for each in batch], True, NOTHING)
        return sources, copies, torch.tensor([len(each.source) for each in batch])

    # Answers

    def cost(self, n: int, *, top_k: int = 0, choices: bool = False, explain: bool = False) -> float:
        """Return seconds; each prefix of a target is scored in a window, and long sources have wider beams."""
        first, *wider = beam_widths(n, self.config.beam)
        prefixes = n * (first + sum(wider) * min(n / HARD, 1.0))
        best = 1e-4 * top_k * min(n, HARD)
        return 1e-3 + (prefixes * (6e-5 + 5e-7 * n) + best) * (1 + choices + explain)

    @property
    def copies_unknown(self) -> bool:
        """True if sources and targets have one alphabet, as a word and its lemma; a word and its sounds do not."""
        return self.copying and self._one_alphabet

    def log_probs(self, pairs: Sequence[Sentence]) -> list[float]:
        """Return log p(target | source) of each pair; -inf where no script writes the target."""
        pairs = [replace(pair, words=self.read_as(pair.words)) for pair in pairs]
        with self.evaluating():
            written = self._written(self.encode(pairs, with_tags=True))
            values: list[float] = written.log_prob(best=self.config.paths == "best").tolist()
            return values

    def alignments(self, pairs: Sequence[Sentence]) -> EditAlignment:
        """Return p(script | source, target) of pairs, with every query: marginals, the best script, samples, ..."""
        with self.evaluating():
            return self._written(self.encode(pairs, with_tags=True)).scripts

    def transduced(self, batch: Sequence[Symbols], top_k: int, sure: bool) -> list[Transduced]:
        encoded = self.encode([Sentence(symbols) for symbols in batch])
        sources, copies, lengths = self._sources(encoded)
        n_symbols = self.network.n_targets + max(len(each.strange) for each in encoded)
        inputs = search_inputs(self.network, sources, copies, lengths, n_symbols)
        answers = best_strings(self.network, inputs, top_k, self.config.beam, best_path=self.config.paths == "best")
        spelled = [
            [(self._spelled(each, row.strange), each.log_prob) for each in answer.best]
            for answer, row in zip(answers, encoded, strict=True)
        ]
        if not sure:
            return [Transduced(best, (), answer.certain) for best, answer in zip(spelled, answers, strict=True)]
        parts = self._parts(batch, [best[0][0] for best in spelled], [answer.best[0] for answer in answers])
        return [Transduced(best, part, a.certain) for best, part, a in zip(spelled, parts, answers, strict=True)]

    def transduced_around(
        self, batch: Sequence[Symbols], pins: Sequence[Sequence[SpanPin]], top_k: int, sure: bool
    ) -> list[Transduced]:
        """Return the best targets that agree with the pins, each with its joint probability with the pins: how probable
        those are in all, a network that reads what it wrote cannot sum up."""
        answers = []
        for source, known in zip(batch, pins, strict=True):
            answers += self._around(source, known, top_k) if known else self.transduced([source], top_k, sure)
        return answers

    def _around(self, source: Symbols, pins: Sequence[SpanPin], top_k: int) -> list[Transduced]:
        if len(source) > LONGEST_PINNED:
            problem = f"expected at most {LONGEST_PINNED:,} symbols in a source with pins, got {len(source):,}"
            raise TrellisworkError(f"{problem}; leave out the pins, or cut it")
        (encoded,) = self.encode([Sentence(source)])
        n_symbols = self.network.n_targets + len(encoded.strange)
        numbered = [(a, b, tuple(self._number(y, encoded.strange) for y in symbols)) for a, b, symbols in pins]
        inputs = search_inputs(self.network, *self._sources([encoded]), n_symbols)
        lattice, best_path = PinnedLattice(len(source), n_symbols, numbered), self.config.paths == "best"
        (answer,) = PinnedBeam(self.network, inputs, top_k, self.config.beam, best_path, lattice=lattice).run()
        if not answer.best:
            raise ConstraintError(f"no target of {self.format.join_source(source)!r} agrees with its pins")
        best = [(self._spelled(each, encoded.strange), each.log_prob) for each in answer.best]
        return [Transduced(best, (), answer.certain)]

    def _spelled(self, string: ScoredString, strange: Symbols) -> Symbols:
        known = self.network.n_targets
        return tuple(self.target[y + SPECIAL] if y < known else strange[y - known] for y in string.symbols)

    def _parts(
        self, sources: Sequence[Symbols], targets: Sequence[Symbols], strings: Sequence[ScoredString]
    ) -> list[list[PartProbability]]:
        """Return each symbol with the one that it stands for in the best script; an inserted one has no width."""
        pairs = [Sentence(source, target=target) for source, target in zip(sources, targets, strict=True)]
        scripts = self.alignments(pairs)
        parts = []
        for target, script, each in zip(targets, scripts.script(scripts.argmax), strings, strict=True):
            read, row = 0, []
            for step in script:
                begin, read = read, read + (step.source is not None)
                if step.target is not None:
                    share = float(torch.tensor(each.shares[step.target]).exp())
                    row.append(PartProbability(begin, read, target[step.target], share))
            parts.append(row)
        return parts


def _numbers(values: Sequence[int]) -> Tensor:
    return torch.tensor(values, dtype=torch.long)
