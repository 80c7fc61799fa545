"""Lemmas of words from their forms and tags: a lexicon of what was seen, and rules by endings for what was not.

    >>> lemmatiser = Lemmatiser.fit([("cats", "NOUN", "cat"), ("mice", "NOUN", "mouse"), ("tables", "NOUN", "table")])
    >>> lemmatiser.lemmas(["mice", "Chairs"], ["NOUN", "NOUN"])
    ['mouse', 'chair']

A rule is an edit tree (Chrupała 2008, Towards a machine-learning architecture for lexical functional grammar parsing):
the longest piece that form and lemma share stays, and what is before and behind it is rewritten in the same way, so
that prefixes, endings and vowels inside can change. Which rule a new word takes is decided by the words with the same
ending: shares of rules after endings of 0, 1, 2, ... letters, each smoothed by the shorter one (Witten and Bell 1991).
Where prefixes change too, which held-out words of each tag tell, the first two letters count as well.
"""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from trelliswork.data import Sentence
from trelliswork.data.folder_files import read_object
from trelliswork.data.unicode_forms import Spelling, lowered
from trelliswork.errors import ModelError
from trelliswork.models.storage import CONFIG, StoredConfig
from trelliswork.writing import atomic_write

NOTHING, LEMMA = "_", "LEMMA"
LONGEST_ENDING = 10
PREFIX = 2  # letters at the beginning that count, if they do
MOST_CELLS = 10_000  # letters of form times letters of lemma, for a common piece to be looked for
HELD_OUT = 5  # parts of the words, each of which tells in its turn whether prefixes count
DOTLESS = 0.05  # of the letters i, for I to be the capital of a dotless one, as in Turkish
MOST_REMEMBERED = 100_000
ENOUGH_WORDS = 30_000  # to tell whether prefixes count
MOST_WORDS = 100_000  # that rules are counted on: those of a large corpus would fill the memory

# (letters before, letters behind, tree before, tree behind), (from, to), or nothing
Tree: TypeAlias = "tuple[int, int, Tree, Tree] | tuple[str, str] | None"
Seen = tuple[str, str, str]  # form, tag, lemma
Context = tuple[str, ...]


class Rule(NamedTuple):
    """The way from a form to its lemma: the case in which the form is read and the lemma written, and the edit tree."""

    case: str  # lower, title, or same
    tree: Tree


class Lemmatiser:
    """A lexicon of (form, tag) with the rules of each, the most frequent first; of a folder it is read when needed."""

    def __init__(self, stored: StoredConfig | None = None, folder: Path | None = None) -> None:
        self.folder = folder
        if stored is not None:
            self._stored = dict(stored)
        self._remembered: dict[tuple[str, str], str] = {}

    @classmethod
    def fit(cls, words: Iterable[Seen]) -> Lemmatiser:
        """Learn from words with their tags and lemmas; words whose lemma is `_` say nothing."""
        seen = Counter(words)
        known = {each: n for each, n in seen.items() if is_lemma(each[2], each[0])}
        spelling = Spelling.learn(lemma for _, _, lemma in known)
        counts: Counter[Seen] = Counter()
        for (form, tag, lemma), n in known.items():
            counts[_composed(form), tag, _composed(lemma)] += n
        letters = Counter("".join(form for form, _, _ in counts))
        case = Case(letters["ı"] > DOTLESS * (letters["ı"] + letters["i"]))
        entries = _entries(counts, case)
        prefixes = _tags_with_prefixes(entries, case)
        rules = list(dict.fromkeys(rule for _, _, rule in entries))
        number = {rule: i for i, rule in enumerate(rules)}
        lexicon: dict[str, dict[str, list[int]]] = {}
        for form, tag, rule in entries:
            lexicon.setdefault(tag, {}).setdefault(form, []).append(number[rule])
        return cls({
            "dotless": case.dotless, "prefixes": sorted(prefixes), "rules": [[rule.case, rule.tree] for rule in rules],
            "lexicon": lexicon, "spelling": None if spelling is None else {**vars(spelling)},
        })  # fmt: skip

    # Answers

    def lemmas(self, words: Sequence[str], tags: Sequence[str]) -> list[str]:
        """Return the lemma of each word, given its tag."""
        if len(self._remembered) > MOST_REMEMBERED:
            self._remembered.clear()
        return [self._lemma(word, tag) for word, tag in zip(words, tags, strict=True)]

    def _lemma(self, word: str, tag: str) -> str:
        known = self._remembered.get((word, tag))
        if known is None:
            lemma = self._found(_composed(word), tag)
            spelling = self._learned.spelling
            known = self._remembered[word, tag] = lemma if spelling is None else spelling.of(lemma)
        return known

    def _found(self, form: str, tag: str) -> str:
        lexicon, case = self._learned.lexicon.get(tag, {}), self._learned.case
        lower = case.lower(form)
        for spelt in dict.fromkeys((form, lower)):
            rule = lexicon.get(spelt)
            if rule is not None and (spelt == form or rule.case == "lower"):
                return case.apply(rule, spelt) or form
        return self._learned.chosen(form, tag)

    @property
    def n_words(self) -> int:
        """Number of words with their tags that it has seen."""
        return sum(map(len, self._learned.lexicon.values()))

    @property
    def size(self) -> str:
        """Its size in a few words."""
        return f"{self.n_words:,} words and {len(self._stored['rules']):,} rules"

    # Disk

    @cached_property
    def _stored(self) -> StoredConfig:
        return read_object((self.folder or Path()) / CONFIG)

    @cached_property
    def _learned(self) -> _Learned:
        try:
            return _Learned.of(self._stored)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise ModelError(f"{self.folder}: {CONFIG} is damaged ({error}); copy the model again") from error

    def save(self, directory: str | Path) -> None:
        """Write its folder; where it is already, nothing is to be done."""
        target = Path(directory)
        if self.folder is not None and target.exists() and self.folder.exists() and target.samefile(self.folder):
            return
        stored = self._stored
        target.mkdir(parents=True, exist_ok=True)
        with atomic_write(target / CONFIG) as file:
            file.write(json.dumps({"kind": "Lemmatiser", **stored}, ensure_ascii=False) + "\n")


def lemma_scores(gold: Sequence[Sentence], lemmas: Sequence[Sequence[str]]) -> dict[str, float]:
    """Return the share of words whose lemma is right, of those that have one; nothing if there are none."""
    pairs = [
        (right, predicted)
        for sentence, row in zip(gold, lemmas, strict=True) if row
        for word, right, predicted in zip(sentence.words, sentence.columns.get(LEMMA, ()), row, strict=False)
        if is_lemma(right, word)
    ]  # fmt: skip
    return {"lemma_accuracy": sum(a == b for a, b in pairs) / len(pairs)} if pairs else {}


def is_lemma(lemma: str, word: str) -> bool:
    """Return whether a column says something: _ is the lemma of _ alone."""
    return bool(lemma) and (lemma != NOTHING or word == NOTHING)


def words_with_lemmas(sentences: Iterable[Sentence]) -> Iterator[Seen]:
    """Yield the words of sentences with the tags that lemmas are found by, UPOS or XPOS of a tree, and their lemmas."""
    for each in sentences:
        tags = each.tags if each.heads is None else each.columns.get("UPOS") or each.columns.get("XPOS")
        yield from zip(each.words, tags or (), each.columns.get(LEMMA, ()), strict=False)


class Case(NamedTuple):
    """Lower and title case; `dotless` says that I is the capital of ı, and İ that of i."""

    dotless: bool = False

    def lower(self, text: str) -> str:
        return lowered(text.replace("I", "ı") if self.dotless else text)

    def title(self, text: str) -> str:
        """Return the first letter as a capital."""
        first = "İ" if self.dotless and text[:1] == "i" else text[:1].upper()
        return first + text[1:]

    def rule(self, form: str, lemma: str) -> Rule:
        """Return the rule that makes a lemma of a form."""
        lower = self.lower(lemma)
        if lemma == lower:
            return Rule("lower", edit_tree(self.lower(form), lemma))
        if lemma == self.title(lower):
            return Rule("title", edit_tree(self.lower(form), lower))
        return Rule("same", edit_tree(form, lemma))

    def apply(self, rule: Rule, form: str) -> str | None:
        """Return the lemma that a rule makes of a form, or None if it does not fit or nothing would be left."""
        if rule.case == "same":
            return rewritten(rule.tree, form) or None
        lemma = rewritten(rule.tree, self.lower(form))
        return (self.title(lemma) if rule.case == "title" else lemma) if lemma else None

    def contexts(self, form: str, tag: str, prefixes: Container[str]) -> Iterator[Context]:
        """Return what a rule depends on: the tag, capitals, and endings from short to long.

        Args:
            form: the word as it is written.
            tag: its tag.
            prefixes: tags whose words change by their first letters too.

        Returns:
            The contexts, the longest last.
        """
        lower = self.lower(form)
        shape = "lower" if form == lower else "title" if form[1:] == lower[1:] else "upper"
        yield (tag,)
        yield tag, shape
        for n in range(1, min(LONGEST_ENDING, len(lower)) + 1):
            yield tag, shape, lower[-n:]
            if tag in prefixes and len(lower) > n:
                yield tag, shape, lower[-n:], lower[:PREFIX]


class _Learned(NamedTuple):
    """Tables to look up: the best rule of each word, and the counts of rules in each context."""

    case: Case
    prefixes: frozenset[str]  # tags whose words change by their first letters too
    lexicon: dict[str, dict[str, Rule]]
    contexts: dict[Context, Rule | Counter[Rule]]  # of most, the rule of the one word that has it
    spelling: Spelling | None = None

    @classmethod
    def of(cls, stored: StoredConfig) -> _Learned:
        """Return the tables of what is stored; what does not fit is a ValueError or the like."""
        rules = [Rule(_one_of_cases(case), _tree_of(tree)) for case, tree in stored["rules"]]
        case, spelling = Case(bool(stored["dotless"])), stored["spelling"]
        entries = [
            (form, tag, rules[number])
            for tag, words in stored["lexicon"].items() for form, numbers in words.items() for number in numbers
        ]  # fmt: skip
        return cls.counted(entries, case, frozenset(stored["prefixes"]))._replace(
            spelling=None if spelling is None else Spelling(**spelling)
        )

    @classmethod
    def counted(cls, entries: Sequence[tuple[str, str, Rule]], case: Case, prefixes: frozenset[str]) -> _Learned:
        """Count each word once in all its contexts, however frequent it is: rare words are like new ones."""
        lexicon: dict[str, dict[str, Rule]] = {}
        contexts: dict[Context, Rule | Counter[Rule]] = {}
        for form, tag, rule in entries:
            lexicon.setdefault(tag, {}).setdefault(form, rule)
        for form, tag, rule in entries[:: len(entries) // MOST_WORDS + 1]:
            for context in case.contexts(form, tag, prefixes):
                before = contexts.get(context)
                if isinstance(before, Counter):
                    before[rule] += 1
                else:
                    contexts[context] = rule if before is None else Counter((before, rule))
        return cls(case, prefixes, lexicon, contexts)

    def chosen(self, form: str, tag: str) -> str:
        """Return the lemma by the most probable rule that fits a form that was never seen with this tag.

        p(rule | context) = (n(rule) + t · p(rule | shorter context)) / (n + t), with n words and t rules in a context:
        a sum over contexts, in which the longest come first, until no other rule can be better any more.
        """
        contexts = self.case.contexts(form, tag, self.prefixes)
        seen_with = [self.contexts[context] for context in contexts if context in self.contexts]
        scores: dict[Rule, float] = {}
        lemmas: dict[Rule, str | None] = {}
        rest = 1.0  # what shorter contexts can still add to a rule
        for seen in reversed(seen_with):
            counts = seen if isinstance(seen, Counter) else Counter((seen,))
            total = counts.total() + len(counts)
            for rule, n in counts.items():
                if rule not in lemmas:
                    lemmas[rule] = self.case.apply(rule, form)
                if lemmas[rule] is not None:
                    scores[rule] = scores.get(rule, 0.0) + rest * n / total
            rest *= len(counts) / total
            best, second = [*sorted(scores.values(), reverse=True)[:2], 0.0, 0.0][:2]
            if best > second + rest:
                break
        return lemmas[max(scores, key=scores.__getitem__)] or form if scores else form


def _entries(counts: Mapping[Seen, int], case: Case) -> list[tuple[str, str, Rule]]:
    """Return words with their tags and rules, those of a word by falling frequency."""
    ordered = sorted(counts.items(), key=lambda each: -each[1])
    rules: dict[Rule, Rule] = {}  # equal ones take no room again
    made = ((form, tag, case.rule(form, lemma)) for (form, tag, lemma), _ in ordered)
    return [(form, tag, rules.setdefault(rule, rule)) for form, tag, rule in made]


def _tags_with_prefixes(entries: Sequence[tuple[str, str, Rule]], case: Case) -> frozenset[str]:
    """Return the tags for which rules for words that were left out are better if the first letters count."""
    entries = entries[:: len(entries) // ENOUGH_WORDS + 1]
    every, gain = frozenset(tag for _, tag, _ in entries), Counter[str]()
    for fold in range(HELD_OUT):
        learned = [each for i, each in enumerate(entries) if i % HELD_OUT != fold]
        for prefixes, sign in ((every, 1), (frozenset[str](), -1)):
            model = _Learned.counted(learned, case, prefixes)
            for form, tag, rule in entries[fold::HELD_OUT]:
                gain[tag] += sign * (model.chosen(form, tag) == case.apply(rule, form))
    return frozenset(tag for tag in every if gain[tag] > 0)


def edit_tree(form: str, lemma: str) -> Tree:
    """Return the tree that rewrites a form as a lemma.

    >>> edit_tree("gemacht", "machen"), rewritten(edit_tree("gemacht", "machen"), "gelacht")
    ((2, 1, ('ge', ''), ('t', 'en')), 'lachen')
    """
    if not form and not lemma:
        return None
    size, i, j = _common(form, lemma) if len(form) * len(lemma) <= MOST_CELLS else (0, 0, 0)
    if form == lemma:
        size, i, j = len(form), 0, 0
    if not size:
        return form, lemma
    return (
        i, len(form) - i - size, edit_tree(form[:i], lemma[:j]), edit_tree(form[i + size :], lemma[j + size :])
    )  # fmt: skip


def _common(first: str, second: str) -> tuple[int, int, int]:
    """Return the longest piece that two texts share: its length, and where it begins in each."""
    best, before = (0, 0, 0), [0] * (len(second) + 1)
    for i, a in enumerate(first, 1):
        row = [0] * (len(second) + 1)
        for j, b in enumerate(second, 1):
            if a == b:
                row[j] = before[j - 1] + 1
                if row[j] > best[0]:
                    best = row[j], i - row[j], j - row[j]
        before = row
    return best


def rewritten(tree: Tree, text: str) -> str | None:
    """Rewrite a text by a tree; None if it does not fit."""
    if tree is None:
        return None if text else ""
    if len(tree) == 2:
        return tree[1] if text == tree[0] else None
    n_before, n_behind, before, behind = tree
    end = len(text) - n_behind
    if n_before >= end:
        return None
    first, last = rewritten(before, text[:n_before]), rewritten(behind, text[end:])
    return None if first is None or last is None else first + text[n_before:end] + last


def _tree_of(stored: Any) -> Tree:
    """Return a tree as it was before it was written as JSON."""
    if stored is None:
        return None
    if len(stored) == 2 and all(isinstance(each, str) for each in stored):
        return tuple(stored)
    n_before, n_behind, before, behind = stored
    if not (isinstance(n_before, int) and isinstance(n_behind, int) and min(n_before, n_behind) >= 0):
        raise ValueError("an edit tree without lengths")
    return n_before, n_behind, _tree_of(before), _tree_of(behind)


def _one_of_cases(name: str) -> str:
    if name not in ("lower", "title", "same"):
        raise ValueError(f"a rule with the case {name!r}")
    return name


def _composed(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)
