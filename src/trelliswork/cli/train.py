"""`trelliswork train`: from a tagged file to a model folder."""

from __future__ import annotations

import datetime
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trelliswork.cli.options import (
    Delimiter,
    FeatureColumns,
    Quiet,
    Scheme,
    TagColumn,
    Threads,
    WordColumn,
    parse_columns,
    parse_delimiter,
)
from trelliswork.errors import DataError, OutputError, TrellisworkError

if TYPE_CHECKING:
    from trelliswork.data import Choices, ColumnFormat, Sentence
    from trelliswork.models import SentenceTagger, Tagger
    from trelliswork.training import TrainingResult

HELD_OUT = 10  # one sentence in so many is held out when there is no dev file
LEARNING, NETWORK, FEATURES = "Learning", "Network", "Features (every --model but window)"
MODEL_HELP = """window: a network over a window of words. Over features: crf, all tags of a sentence judged together;
hucrf, the same with hidden units; memm, each tag given the one before; logistic, each tag alone; hmm and naive-bayes,
the same two by counting alone, in seconds and less accurate."""


class Model(StrEnum):
    """What to train."""

    window = "window"
    crf = "crf"
    memm = "memm"
    logistic = "logistic"
    hmm = "hmm"
    naive_bayes = "naive-bayes"
    hucrf = "hucrf"


def train(
    train: Annotated[
        str, typer.Argument(metavar="TRAIN", help="Tagged file: CoNLL columns, .csv, .jsonl or .crfsuite, also .gz.")
    ],
    out: Annotated[str, typer.Option(metavar="DIR", help="Folder for the model.", show_default=False)],
    dev: Annotated[str | None, typer.Option(help="Tagged file to stop early on; else the last 10 % of TRAIN.")] = None,
    model: Annotated[Model, typer.Option(help=MODEL_HELP)] = Model.window,
    force: Annotated[bool, typer.Option("--force", help="Replace a model that is already in DIR.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped in DIR.")] = False,
    threads: Threads = 1,
    quiet: Quiet = False,
    delimiter: Delimiter = None,
    word_column: WordColumn = None,
    tag_column: TagColumn = None,
    feature_columns: FeatureColumns = None,
    scheme: Scheme = None,
    epochs: Annotated[int, typer.Option(help="Passes over the data, at most.", rich_help_panel=LEARNING)] = 12,
    patience: Annotated[int, typer.Option(help="Stop after so many without gain.", rich_help_panel=LEARNING)] = 5,
    seed: Annotated[int, typer.Option(help="The same seed gives the same model.", rich_help_panel=LEARNING)] = 0,
    batch_tokens: Annotated[int, typer.Option(help="Tokens in a batch.", rich_help_panel=LEARNING)] = 1000,
    optimizer: Annotated[str, typer.Option(help="adamw, adam, sgd or momentum.", rich_help_panel=LEARNING)] = "adamw",
    lr: Annotated[
        float | None,
        typer.Option(help="Learning rate.", show_default="that of the optimizer", rich_help_panel=LEARNING),
    ] = None,
    l2: Annotated[float, typer.Option(help="Weight decay.", rich_help_panel=LEARNING)] = 0.0,
    checkpoint_every: Annotated[
        float, typer.Option(help="Seconds between checkpoints.", rich_help_panel=LEARNING)
    ] = 60.0,
    window: Annotated[int, typer.Option(help="Tokens that are seen at once.", rich_help_panel=NETWORK)] = 5,
    hidden: Annotated[int, typer.Option(help="Hidden units.", rich_help_panel=NETWORK)] = 300,
    word_dim: Annotated[int, typer.Option(help="Width of word vectors.", rich_help_panel=NETWORK)] = 64,
    affix_dim: Annotated[int, typer.Option(help="Width of affix vectors.", rich_help_panel=NETWORK)] = 16,
    column_dim: Annotated[int, typer.Option(help="Width of column vectors.", rich_help_panel=NETWORK)] = 20,
    min_count: Annotated[int, typer.Option(help="Rarer words are unknown.", rich_help_panel=NETWORK)] = 1,
    dropout: Annotated[float, typer.Option(help="Share of inputs dropped.", rich_help_panel=NETWORK)] = 0.3,
    scorer: Annotated[str, typer.Option(help="linear, or context (neighbours).", rich_help_panel=NETWORK)] = "linear",
    label_scheme: Annotated[
        str, typer.Option(help="Learn tags as IOBES, or as in the data.", rich_help_panel=NETWORK)
    ] = "IOBES",
    constrained: Annotated[bool, typer.Option(help="Forbid illegal tag sequences.", rich_help_panel=NETWORK)] = True,
    template: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="CRF++ templates.", show_default="chosen by the columns", rich_help_panel=FEATURES
        ),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help="A Python function that is given a sentence and returns a dict or a list of names for each token.",
            show_default=False,
            rich_help_panel=FEATURES,
        ),
    ] = None,
    algorithm: Annotated[
        str,
        typer.Option(help="lbfgs, sgd, perceptron, pa, arow, margin or herding.", rich_help_panel=FEATURES),
    ] = "lbfgs",
    c1: Annotated[float, typer.Option(help="L1 term c1 |w|.", rich_help_panel=FEATURES)] = 0.0,
    c2: Annotated[float, typer.Option(help="L2 term c2 w^2, without 1/2.", rich_help_panel=FEATURES)] = 1.0,
    max_iterations: Annotated[
        int | None,
        typer.Option(help="Iterations, at most.", show_default="that of the algorithm", rich_help_panel=FEATURES),
    ] = None,
    samples: Annotated[
        int,
        typer.Option(help="Average over so many weight vectors (lbfgs, herding).", rich_help_panel=FEATURES),
    ] = 0,
    posterior: Annotated[
        str, typer.Option(help="How lbfgs draws them: laplace or hamiltonian.", rich_help_panel=FEATURES)
    ] = "laplace",
    temperature: Annotated[
        float, typer.Option(help="Width of the posterior; 1 is the exact one.", rich_help_panel=FEATURES)
    ] = 0.03,
    smoothing: Annotated[
        float, typer.Option(help="hmm, naive-bayes: added to every count.", rich_help_panel=FEATURES)
    ] = 0.1,
    min_freq: Annotated[
        float, typer.Option(help="Rarer pairs (attribute or tag, tag) are left out.", rich_help_panel=FEATURES)
    ] = 0.0,
    cutoff: Annotated[
        int, typer.Option(help="Rarer attributes are left out, whatever their tags.", rich_help_panel=FEATURES)
    ] = 0,
    hash_bits: Annotated[
        int | None,
        typer.Option(
            help="Number attributes by 2^N hashes: bounded size, no names.",
            show_default="names are kept",
            rich_help_panel=FEATURES,
        ),
    ] = None,
    induce: Annotated[
        int, typer.Option(metavar="N", help="Add the N pairs of attributes that gain most.", rich_help_panel=FEATURES)
    ] = 0,
    all_states: Annotated[
        bool, typer.Option("--all-states", help="Weights for unseen pairs too.", rich_help_panel=FEATURES)
    ] = False,
    all_transitions: Annotated[
        bool, typer.Option("--all-transitions", help="The same for pairs of tags.", rich_help_panel=FEATURES)
    ] = False,
    latent: Annotated[int, typer.Option(help="Hidden states of each tag.", rich_help_panel=FEATURES)] = 1,
    order: Annotated[int, typer.Option(help="Tags before a tag that count: 1 or 2.", rich_help_panel=FEATURES)] = 1,
    partial: Annotated[
        bool,
        typer.Option("--partial", help="Read the tag ? as unknown, A|B as one of these.", rich_help_panel=FEATURES),
    ] = False,
    hidden_units: Annotated[
        int, typer.Option(help="Binary units between features and tags (hucrf).", rich_help_panel=FEATURES)
    ] = 100,
    pretrain: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Untagged file of the same columns to learn the units from first (hucrf).",
            rich_help_panel=FEATURES,
        ),
    ] = None,
) -> None:
    """Train a tagger on a tagged file and write it to a folder.

    The layout of the file and the tag scheme are inferred and printed.
    Training stops early when the dev score no longer rises, and the best
    model is kept. Ctrl-C keeps the best model so far; the same command
    with --resume goes on, also after a kill or a power cut.

    \b
    Examples:
      trelliswork train train.conll --dev dev.conll --out ner
      trelliswork train chunks.txt --feature-columns 2 --out chunker
      trelliswork train chunks.txt --model crf --c2 0.5 --out chunker
      trelliswork train chunks.txt --model hmm --smoothing 0.5 --out quick
      trelliswork train chunks.txt --model crf --features my.module:attributes --out chunker
      trelliswork train half.txt --dev dev.txt --model crf --partial --out chunker
      trelliswork train few.txt --model hucrf --pretrain many.txt --out chunker
    """
    from trelliswork.data import Choices

    choices = Choices(parse_delimiter(delimiter), word_column, tag_column, parse_columns(feature_columns), scheme)
    if pretrain is not None and model is not Model.hucrf:
        raise TrellisworkError(f"--pretrain needs --model hucrf, got --model {model.value}; add it or leave it out")
    if model is not Model.window:
        if resume:
            raise TrellisworkError(
                "--resume goes on with a network; a CRF over features is trained in one go: leave it out"
            )
        from trelliswork.cli.train_features import train_features

        learned: dict[str, Any] = dict(algorithm=algorithm, c1=c1, c2=c2, max_iterations=max_iterations)
        learned |= dict(samples=samples, posterior=posterior, temperature=temperature)
        learned |= dict(min_count=min_freq, all_states=all_states, all_transitions=all_transitions, seed=seed)
        learned |= dict(hidden_units=hidden_units if model is Model.hucrf else 0)
        kind = "crf" if model is Model.hucrf else model.value
        learned |= dict(latent=latent, order=order, model=kind, smoothing=smoothing)
        learned |= dict(cutoff=cutoff, hash_bits=hash_bits, induce=induce)
        sources = template, features
        train_features(
            train,
            dev,
            Path(out),
            choices,
            sources,
            learned,
            partial=partial,
            pretrain=pretrain,
            force=force,
            threads=threads,
            quiet=quiet,
        )
        return
    learning: dict[str, Any] = dict(epochs=epochs, patience=patience, seed=seed, batch_tokens=batch_tokens)
    learning |= dict(optimizer=optimizer, lr=lr, l2=l2, checkpoint_every=checkpoint_every)
    network: dict[str, Any] = dict(
        window=window, hidden=hidden, word_dim=word_dim, affix_dim=affix_dim, column_dim=column_dim
    )
    network |= dict(min_count=min_count, dropout=dropout, scorer=scorer)
    network |= dict(label_scheme=label_scheme, constrained=constrained)
    _train(train, dev, Path(out), choices, learning, network, force=force, resume=resume, threads=threads, quiet=quiet)


def _train(
    train_file: str,
    dev_file: str | None,
    out: Path,
    choices: Choices,
    learning: dict[str, Any],
    network: dict[str, Any],
    *,
    force: bool,
    resume: bool,
    threads: int,
    quiet: bool,
) -> None:
    import torch

    from trelliswork.cli.inputs import say
    from trelliswork.cli.kernels import prepare_kernels
    from trelliswork.data.crfsuite import is_crfsuite
    from trelliswork.models import Tagger, TaggerConfig
    from trelliswork.training import TrainingConfig, make_progress
    from trelliswork.training import train as train_model

    settings, config = TrainingConfig(**learning), TaggerConfig(**network)
    if is_crfsuite(train_file):
        raise DataError(train_file, "a network reads words, and this file has attributes; add --model crf")
    check_folder(out, force, resume)
    torch.set_num_threads(threads)
    format, train, dev = read_data(train_file, dev_file, choices, quiet)
    scheme = choices.scheme or (format.scheme if format is not None else None)
    tagger = Tagger.from_data(train, config, scheme=scheme, seed=settings.seed)
    tagger.metrics["data"] = provenance(train_file, dev_file, train, dev, format)
    known_tags(tagger, dev)
    if tagger.labels.scheme != tagger.labels.data_scheme:
        broken_tags(tagger, train)
    say(f"model: {len(tagger.labels.vocabulary)} labels, {tagger.n_parameters:,} parameters", quiet=quiet)
    prepare_kernels(quiet=quiet)
    result = train_model(tagger, train, dev, settings, out=out, resume=resume, progress=make_progress(not quiet))
    finish(tagger, dev, result, out)


def check_folder(out: Path, force: bool, resume: bool = False) -> None:
    """Refuse early what could not or should not be written."""
    from trelliswork.models.storage import CONFIG, check_output
    from trelliswork.training.checkpoint import Checkpoint

    check_output(out)
    unfinished, is_model = Checkpoint(out).exists, (out / CONFIG).exists()
    if resume and is_model and not unfinished:
        raise OutputError(f"{out}: its training is finished, there is nothing to resume; train anew with --force")
    if resume or force:
        return
    if unfinished:
        raise OutputError(f"{out}: holds an unfinished run; add --resume to go on, or --force to begin anew")
    if is_model:
        raise OutputError(f"{out}: holds a model already; add --force to replace it or choose another folder")


def read_data(
    train_file: str, dev_file: str | None, choices: Choices, quiet: bool
) -> tuple[ColumnFormat | None, list[Sentence], list[Sentence]]:
    """Training and dev sentences, in one layout; without a dev file the last part of the training file."""
    from trelliswork.cli.inputs import kind_of, layout, open_tagged, say

    format, stream = open_tagged(train_file, choices)
    train = list(stream)
    if dev_file is not None:
        dev = list(open_tagged(dev_file, columns_of(format, choices))[1])
    else:
        train, dev = hold_out(train, train_file)
    say(f"{train_file}: {layout(format, kind_of(train_file))}", quiet=quiet)
    if dev_file is None:
        say(f"dev: the last {len(dev):,} of the sentences (10 %), as there is no --dev", quiet=quiet)
    say(f"train: {_size(train)}; dev: {_size(dev)}", quiet=quiet)
    return format, train, dev


def columns_of(format: ColumnFormat | None, choices: Choices) -> Choices:
    """The layout of the training file as choices for another; only the delimiter may differ."""
    from trelliswork.data import Choices, CsvFormat

    if format is None:
        return choices
    if isinstance(format, CsvFormat):
        return replace(format.choices(), delimiter=choices.delimiter)
    return Choices(choices.delimiter, format.word_column, format.tag_column, format.feature_columns, format.scheme)


def hold_out(sentences: list[Sentence], file: str) -> tuple[list[Sentence], list[Sentence]]:
    """All but the last tenth, and the last tenth."""
    if len(sentences) < 2:
        raise DataError(file, "expected at least 2 sentences to hold one out; add sentences or name a --dev file")
    n_dev = max(1, len(sentences) // HELD_OUT)
    return sentences[:-n_dev], sentences[-n_dev:]


def known_tags(tagger: SentenceTagger, dev: list[Sentence]) -> None:
    """Say how many dev tags the training data lacks: the model can never get them right."""
    from trelliswork.cli.gold import first_unknown
    from trelliswork.cli.inputs import count, say

    unknown = [found for found in (first_unknown(tagger.labels, sentence) for sentence in dev) if found]
    if unknown:
        line, tag = unknown[0]
        say(
            f"note: {count(len(unknown), 'dev sentence')} with tags that the training data lacks, "
            f"first {tag!r} at {dev[0].file}:{line}; they count as mistakes"
        )


def broken_tags(tagger: Tagger, train: list[Sentence]) -> None:
    """Say how many training tags break their scheme: converting them reads each as a span of its own."""
    from trelliswork.cli.inputs import count, say
    from trelliswork.structures.chain.schemes import violations

    scheme = tagger.labels.data_scheme
    broken = [(each, at, why) for each in train for at, why in violations(each.tags or (), scheme)]
    if broken:
        sentence, at, why = broken[0]
        say(
            f"note: {count(len(broken), 'training tag')} broke the {scheme} scheme, first at "
            f"{sentence.file}:{sentence.line_of(at)} ({why}); read as conlleval reads them; "
            "see all with trelliswork check"
        )


def provenance(
    train_file: str, dev_file: str | None, train: list[Sentence], dev: list[Sentence], format: ColumnFormat | None
) -> dict[str, Any]:
    """What the model remembers of its data: sizes, date and the layout of the columns."""
    from trelliswork.cli.inputs import format_to_store

    return {
        "date": datetime.date.today().isoformat(),
        "train": Path(train_file).name,
        "dev": Path(dev_file).name if dev_file is not None else "last 10 % of train",
        "train_sentences": len(train),
        "train_tokens": sum(map(len, train)),
        "dev_sentences": len(dev),
        "format": format_to_store(format),
    }


def finish(tagger: Tagger, dev: list[Sentence], result: TrainingResult, out: Path) -> None:
    """The dev table, and where the model is."""
    from trelliswork.cli.scores import score, score_text

    print(f"best epoch {result.best_epoch} of {len(result.history)}, {result.seconds:.1f} s; on the dev sentences:\n")
    print(score_text(score(tagger, dev)))
    print(f"\nmodel: {out}\nnext:  trelliswork tag {out} FILE --confidence")
    if result.interrupted:
        raise typer.Exit(130)


def _size(sentences: list[Sentence]) -> str:
    from trelliswork.cli.inputs import count

    return f"{count(len(sentences), 'sentence')}, {count(sum(map(len, sentences)), 'token')}"
