"""A user's program under `mypy --strict`: files, texts, terms, scores, models and training. It is checked, not run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, assert_type

import torch

import trelliswork as tw
from trelliswork import data, draw, errors, metrics, models, terms, text, training
from trelliswork.metrics import Average, Bin, Confusion, Difference
from trelliswork.models.base import Answer, Description, Report, Scores
from trelliswork.web import Client, ServerError


def reading(file: Path) -> list[data.Sentence]:
    sentences = [*tw.read_conll(file), *data.read_csv(file), *data.read_jsonl(file, fields=data.JsonFields())]
    sentences += [*data.read_brackets(file), *data.read_brat(file), *data.read_crfsuite(file)]
    sentences += data.read_pairs(file, data.PairFormat())
    sentences += [*data.reader_for(file)(file), *data.read_treebank(file, data.Choices())[1]]
    assert_type(sentences, list[tw.Sentence])
    assert_type(data.open_conll(file)[0], data.ColumnFormat)
    assert_type(data.open_csv(file)[0], data.CsvFormat)
    assert_type(data.open_pairs(file, data.Choices())[1], list[data.Sentence])
    assert_type(data.infer_format(file), data.ColumnFormat)
    assert_type(data.file_kind(file), data.FileKind)
    assert_type(data.is_jsonl(file), bool)
    with data.open_text(file) as lines:
        assert_type(next(lines), str)
    return [data.cut_tokens(each, "IOB2", data.FINE_TOKENS) for each in sentences]


class OneWordPerLine(data.FileFormat):
    """A format of another package."""

    def read(self, path: str, *, with_tags: bool = True) -> Iterator[data.Sentence]:
        yield data.Sentence(tuple(Path(path).read_text(encoding="utf-8").split()))


def writing(sentence: data.Sentence, file: Path) -> None:
    assert_type(OneWordPerLine().text(sentence), str | None)
    with data.atomic_write(file) as output:
        output.write(data.conll_text(sentence) + data.json_text(sentence))


def preparing(sentences: list[data.Sentence], file: Path) -> list[list[int]]:
    words = data.Vocabulary(sentences[0].words, unknown="<unk>")
    assert_type(words.index("word"), int)
    assert_type(data.read_vectors(file), data.WordVectors)
    assert_type(data.VectorSequence(torch.zeros(3, 2)).labels, tuple[str, ...] | None)
    assert_type(data.MajorityBaseline(sentences).tag(sentences[0].words), list[str])
    assert_type(tw.builtin_corpus(sizes=(1, 1, 1))["train"][0].words, tuple[str, ...])
    return data.token_budget_batches([3, 4], 5)


def texts(story: str, file: Path) -> list[data.Sentence]:
    tokeniser: text.Tokeniser = text.RuleTokeniser()
    assert_type(text.tokenise(story), list[list[text.Token]])
    assert_type(text.Offsets(story, text.OFFSETS[0]), text.Offsets)
    assert_type(text.tokenisation_scores(tokeniser, [text.Document(story, ())]), dict[str, float])
    assert_type(text.read_documents(file), list[text.Document])
    return [*text.sentences_in(story, tokeniser), *text.read_text(file, tokeniser)]


def meanings(written: str) -> terms.Term:
    term = terms.parse(written)
    assert_type(terms.alpha_equivalent(term, terms.parse_brackets(written)), bool)
    assert_type(terms.beta_step(term), terms.Term | None)
    assert_type(terms.format_brackets(terms.canonical(term)), str)
    assert_type(terms.free_variables(term), frozenset[str])
    kind: terms.Type = terms.infer_type(term, {"e": terms.parse_type("e")})
    if isinstance(kind, terms.Arrow):
        kind = kind.result
    assert_type(kind, terms.Base | terms.Arrow)
    if isinstance(term, terms.Abstraction):
        assert_type(terms.rename_variable(term, "y"), terms.Abstraction)
    if isinstance(term, terms.Application):
        assert_type(term.arguments, tuple[terms.Term, ...])
    applied = terms.substitute(term, "x", terms.Constant("a"))
    return terms.normal_form(next(terms.subterms(applied), terms.Variable("x")))


def scoring(gold: list[list[str]], found: list[list[str]]) -> float:
    report = metrics.span_scores(gold, found, "IOB2")
    assert_type(report, metrics.SpanReport)
    assert_type(report.overall, metrics.Score)
    assert_type(report.macro, Average)
    assert_type(metrics.confusion(gold, found), Confusion)
    assert_type(metrics.calibration([(0.9, True)]), metrics.Calibration)
    assert_type(metrics.calibration([(0.9, True)]).bins, tuple[Bin, ...])
    assert_type(metrics.attachment([[(0, "root")]], [[(0, "root")]]), metrics.Attachment)
    assert_type(metrics.paired_bootstrap([report.overall], [report.overall]), Difference)
    return metrics.token_accuracy(gold, found)


def learning(sentences: list[data.Sentence], folder: Path) -> training.TrainingResult:
    features = tw.FeatureTagger.fit(models.TaggedData(sentences), models.LearningConfig(max_iterations=3))
    assert_type(features, tw.FeatureTagger)
    tagger = tw.Tagger.from_data(sentences, tw.TaggerConfig(hidden=8))
    assert_type(tagger, tw.Tagger)
    assert_type(models.pretrain_encoder(tagger, sentences), list[float])
    config = tw.TrainingConfig(epochs=1)
    shown = training.make_progress(on_epoch=epochs)
    result = tw.train(tagger, sentences, None, config, out=folder, progress=shown)
    assert_type(result.history, list[training.EpochRecord])
    seeds = training.train_seeds(lambda seed: tagger, training.Parts(sentences), config, seeds=2)
    assert_type(seeds, training.SeedsResult)
    assert_type(models.token_calibration(tagger, sentences), metrics.Calibration)
    return result


def epochs(record: training.EpochRecord) -> None:
    assert_type(record.score, float | None)


def searching() -> None:
    space: dict[str, Any] = {"lr": training.Numbers(1e-4, 1e-1, log=True), "hidden": training.OneOf((8, 16))}
    found = training.search(lambda attempt: 0.5, space, training.SearchConfig(trials=2))
    assert_type(found.interrupted, bool)


def answering(folder: Path, sentences: list[data.Sentence]) -> str:
    model = tw.load(folder)
    answers = model.predict("Ann lives in Paris.", top_k=2)
    assert_type(answers, list[Answer])
    assert_type(answers[0].probability, float | None)
    assert_type(answers[0].draw(), draw.Drawing)
    assert_type(model.evaluate(sentences), Scores)
    assert_type(model.describe(), Description)
    assert_type(model.report(sentences), Report)
    tagger: models.SentenceTagger = models.Tagger.load(folder)
    assert_type(tagger.confidences(sentences), list[models.Confidences])
    assert_type(tagger.confidences(sentences)[0].spans, list[models.SpanConfidence])
    assert_type(tagger.analyses(sentences, 2), list[list[models.Analysis]])
    counts: list[models.ExpectedCount] = models.total_counts(tagger.expected_counts(sentences, ["PER"]))
    assert_type(counts[0].mean, float)
    return models.load_tagger(folder).size


def others(tagger: models.Tagger, folder: Path) -> None:
    assert_type(models.Ensemble([tagger, tagger]).n_parameters, int)
    assert_type(models.DropoutAverage(tagger), models.DropoutAverage)
    assert_type(models.Segmenter.load(folder), models.Segmenter)
    assert_type(models.MultiTagger.load(folder), models.MultiTagger)
    assert_type(models.AttributeTagger.load(folder), models.FeatureTagger)
    assert_type(models.VectorTagger.load(folder).config, models.VectorTaggerConfig)


def drawing(folder: Path) -> None:
    words = ["a", "b"]
    pictures = [
        draw.segments(words, [(0, 2, "X")]), draw.dependencies(words, [0, 1]), draw.tree(tw.Tree("S", ("a", "b"))),
        draw.trellis([[0.5, 0.5], [0.1, 0.9]], words, ["O", "X"]), draw.alignment([[1.0], [1.0]], ["c"]),
        draw.automaton([(0, 1, "a")], 0, [1], 2),
    ]  # fmt: skip
    for number, picture in enumerate(pictures):
        picture.save(folder / f"{number}.svg")


def asking() -> None:
    try:
        assert_type(Client("http://127.0.0.1:8000").models(), list[dict[str, Any]])
    except ServerError as error:
        assert_type(error.status, int)
    except errors.DataError as error:
        assert_type(error.line, int | None)
    except (errors.ScoreError, errors.ConstraintError, errors.TermError, errors.ModelError, errors.OutputError):
        raise
    except errors.MissingExtraError as error:
        raise tw.TrellisworkError(str(error)) from errors.TrellisworkWarning(str(error))
