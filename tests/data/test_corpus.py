"""The built-in corpus: reproducible, well-formed, ambiguous, with unseen words; all layers from one derivation."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest

from trelliswork.data import MajorityBaseline, open_conll
from trelliswork.data.corpus import AnnotatedSentence, Derivation, annotate, as_sentences, builtin_corpus, write_corpus
from trelliswork.data.corpus.grammar import ROOT, rules_by_parent
from trelliswork.data.corpus.lexicon import words
from trelliswork.errors import TrellisworkError
from trelliswork.metrics import span_scores
from trelliswork.tags.schemes import spans_of, violations

Corpus = dict[str, list[AnnotatedSentence]]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return builtin_corpus()


def every(corpus: Corpus) -> list[AnnotatedSentence]:
    return [sentence for part in corpus.values() for sentence in part]


def test_sizes_and_lengths(corpus: Corpus) -> None:
    assert {part: len(rows) for part, rows in corpus.items()} == {"train": 2000, "dev": 300, "test": 300}
    lengths = [len(sentence) for sentence in every(corpus)]
    assert min(lengths) >= 4
    assert max(lengths) <= 30
    assert len({sentence.words for sentence in every(corpus)}) == 2600


def test_same_seed_same_sentences(corpus: Corpus) -> None:
    again = builtin_corpus(sizes=(50, 20, 20))
    assert [s.words for s in again["train"]] == [s.words for s in corpus["train"][:50]]
    assert builtin_corpus(seed=1, sizes=(5, 1, 1))["train"][0].words != corpus["train"][0].words


def test_layers_are_legal_and_come_from_the_derivation(corpus: Corpus) -> None:
    for sentence in every(corpus):
        assert not violations(sentence.chunks, "IOB2")
        assert not violations(sentence.entities, "IOB2")
        assert list(sentence.words) == sentence.derivation.words()
        assert annotate(sentence.derivation) == sentence
        assert len(sentence.words) == len(sentence.pos) == len(sentence.chunks) == len(sentence.entities)


def test_heads_make_one_dependency_tree(corpus: Corpus) -> None:
    def arcs(node: Derivation) -> int:
        heads = {id(node.children[node.head].head_leaf())} if node.children else set()
        own = sum(id(child.head_leaf()) not in heads for child in node.children)
        return own + sum(arcs(child) for child in node.children)

    for sentence in corpus["dev"]:
        assert arcs(sentence.derivation) == len(sentence) - 1  # every word but the root hangs on one head


def test_entities_lie_within_one_chunk(corpus: Corpus) -> None:
    for sentence in corpus["dev"]:
        chunks = spans_of(sentence.chunks, "IOB2")
        for start, end, _ in spans_of(sentence.entities, "IOB2"):
            assert any(a <= start and end <= b for a, b, _ in chunks) or "&" in sentence.words[start:end]


def test_by_hand() -> None:
    def leaf(label: str, word: str) -> Derivation:
        return Derivation(label, word=word)

    name = Derivation("NML", "PER.short", (leaf("NNP", "Jordan"),))
    owner = Derivation("NP", "owner", (name, leaf("POS", "'s")))
    subject = Derivation("NP", "item", (owner, leaf("NN", "plan")), 1)
    inner = Derivation("VP", "base", (leaf("VB", "fail"),))
    tree = Derivation("S", "", (subject, Derivation("VP", "", (leaf("MD", "may"), inner), 1), leaf(".", ".")), 1)
    sentence = annotate(tree)
    assert sentence.words == ("Jordan", "'s", "plan", "may", "fail", ".")
    assert sentence.chunks == ("B-NP", "B-NP", "I-NP", "B-VP", "I-VP", "O")
    assert sentence.entities == ("B-PER", "O", "O", "O", "O", "O")
    assert tree.head_leaf().word == "fail"


def test_names_and_words_are_ambiguous(corpus: Corpus) -> None:
    types: dict[str, set[str]] = defaultdict(set)
    parts: dict[str, set[str]] = defaultdict(set)
    for sentence in corpus["train"]:
        for word, tag, pos in zip(sentence.words, sentence.entities, sentence.pos, strict=True):
            types[word].add(tag)
            parts[word].add(pos)
    assert {"B-PER", "B-ORG", "B-LOC", "B-PROD"} <= types["Jordan"]
    assert {"B-PER", "B-DATE"} <= types["May"]
    assert {"NN", "VB"} <= parts["plan"]
    assert {"DT", "IN"} <= parts["that"]
    assert sum(len(found) > 2 for found in types.values()) >= 30


def test_unseen_words(corpus: Corpus) -> None:
    seen = {word for sentence in corpus["train"] for word in sentence.words}
    for part in ("dev", "test"):
        tokens = [word for sentence in corpus[part] for word in sentence.words]
        assert 0.04 < sum(word not in seen for word in tokens) / len(tokens) < 0.12


def test_majority_baseline_is_far_from_perfect(corpus: Corpus) -> None:
    baseline = MajorityBaseline(as_sentences(corpus["train"]))
    gold = [sentence.entities for sentence in corpus["test"]]
    report = span_scores(gold, [baseline.tag(sentence.words) for sentence in corpus["test"]], "IOB2")
    assert 0.50 < report.f1 < 0.75
    assert set(report.by_type) == {"PER", "ORG", "LOC", "PROD", "DATE"}


def test_grammar_is_complete() -> None:
    rules = rules_by_parent()
    children = {child for group in rules.values() for rule in group for child in rule.children}
    assert set(rules) - children == {ROOT}
    for symbol in children - set(rules):
        _, _, kind = symbol.partition("/")
        assert words(kind, unseen=True), symbol
        assert len(words(kind, unseen=False)) >= 1, symbol


def test_spelling(corpus: Corpus) -> None:
    bigrams = Counter(pair for s in every(corpus) for pair in zip(s.words, s.words[1:], strict=False))
    assert not [b for a, b in bigrams if a.lower() == "a" and b[0].lower() in "aeiou" and not b.startswith("use")]
    assert not [pair for pair in bigrams if pair[0].endswith("shares") and pair[1] == "was"]
    assert all(not s.words[0][0].islower() for s in every(corpus))


def test_tasks(corpus: Corpus) -> None:
    (entities,), (pos,) = (as_sentences(corpus["dev"][:1], task) for task in ("entities", "pos"))
    assert entities.features == (pos.tags,)
    assert pos.features == ()
    with pytest.raises(TrellisworkError, match="entities, chunks, pos; got 'trees'"):
        as_sentences(corpus["dev"], "trees")


def test_written_files_read_back(corpus: Corpus, tmp_path: Path) -> None:
    paths = write_corpus(corpus, tmp_path)
    assert [path.name for path in paths] == ["train.conll", "dev.conll", "test.conll"]
    format, sentences = open_conll(tmp_path / "dev.conll")
    assert format.describe() == "tab-separated, 4 columns: word = 1, tag = 4 (IOB2), features = 2, 3"
    assert [(s.words, s.tags) for s in sentences] == [(s.words, s.entities) for s in corpus["dev"]]
