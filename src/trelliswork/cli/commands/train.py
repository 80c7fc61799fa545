"""`trelliswork train`: from labelled data to a model directory."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trelliswork.cli.config_file import CHOSEN, MODEL_NAME, read_config, values_in
from trelliswork.cli.early import check_training
from trelliswork.cli.model_help import DEFAULT, OF_MODELS, ModelCommand, known_model, with_kinds
from trelliswork.cli.options import COLUMNS, SEEDS, Quiet, Threads, layout_in, parse_column, parse_columns, with_options
from trelliswork.data import Choices
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.lazy import named
from trelliswork.logs import count
from trelliswork.models.catalogue import SHARED, entry_of, models_with, nearest_model
from trelliswork.models.taggers.networks.tasks import MULTI_TASK

if TYPE_CHECKING:
    from trelliswork.models.recipe import Options

TrainFile = Annotated[
    str | None,
    typer.Argument(
        metavar="TRAIN",
        help="Tagged file (CoNLL columns, .csv, .jsonl, .json, .crfsuite), treebank (.conllu, .mrg), pairs (.tsv) or "
        "text, optionally .gz. Or a .toml file of settings.",
        show_default=False,
    ),
]
MoreFiles = Annotated[
    list[str] | None,
    typer.Argument(metavar="[MORE]...", help="Further files of text (language models).", show_default=False),
]
DevFile = Annotated[
    str | None, typer.Option(help="Validation file for early stopping. Defaults to the last 10% of TRAIN.")
]
ModelName = Annotated[
    str | None, typer.Option(help="Model to train, one of those above.", metavar="NAME", show_default="by the data")
]
ConfigFile = Annotated[
    str | None, typer.Option(metavar="FILE", help="TOML file of settings. Options on the command line take precedence.")
]


@with_options(COLUMNS, SEEDS, OF_MODELS)
def train(
    ctx: typer.Context,
    train: TrainFile = None,
    more: MoreFiles = None,
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="Directory to write the model to.", show_default=False)
    ] = None,
    dev: DevFile = None,
    model: ModelName = None,
    config: ConfigFile = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a model that already exists in DIR.")] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Continue the run in DIR, either an interrupted one or a finished one with more --epochs."
        ),
    ] = False,
    tensorboard: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help='Write TensorBoard logs to this directory (pip install "trelliswork\\[tensorboard]").',
            show_default=False,
        ),
    ] = None,
    tokeniser: Annotated[
        str,
        typer.Option(
            metavar="auto|rules|DIR",
            help="Tokeniser for raw text, kept with the model: trained on TRAIN (auto), rules, or a directory.",
        ),
    ] = "auto",
    threads: Threads = 1,
    quiet: Quiet = False,
    **settings: object,
) -> None:
    """Train a model on labelled data and write it to a directory.

    Taggers are trained on tagged words, parsers on a treebank (CoNLL-U or
    brackets), transducers on pairs of strings (TSV), language models on text,
    recognizers on files with transcripts. Without --model, the data decide:
    crf for tags (bilstm-crf with --vectors or --pretrained), biaffine for
    CoNLL-U with heads, span-cky for brackets, edit for pairs. Columns and the
    tag scheme are inferred and printed. Training stops when the dev score no
    longer improves; Ctrl-C keeps the best model so far. config.toml in the
    directory has all settings and can be used again.
    """
    options = resolve(ctx)
    check_training(options)
    named("trelliswork.cli.training:train_model")(options, choices_in(options))  # not needed for --help


class TrainCommand(ModelCommand):
    """`train` with its help."""

    examples = (
        "trelliswork train train.conll --dev dev.conll --out ner",
        "trelliswork train chunks.txt --vectors glove.txt --out chunker",
        "trelliswork train en.conllu --tag-column XPOS --out pos",
        "trelliswork train ud.conllu --model biaffine --tags joint --out parser",
        "trelliswork train pairs.tsv --model pair-ngram --out pronounce",
        "trelliswork train chunker/config.toml --seed 1 --out again",
        "trelliswork train chunks.txt --feature-columns 2 --out chunker",
        "trelliswork train chunks.txt --model grsemicrf --max-length 12 --out chunker",
        "trelliswork train all.txt --model multi-task --tag-columns 2,3 --tasks pos,chunk --out both",
        "trelliswork train chunks.txt --model bilstm-crf --tensorboard runs --out chunker; tensorboard --logdir runs",
        "trelliswork train chunks.txt --model bilstm-crf --epochs 40 --resume --out chunker",
        "trelliswork train more.txt --model bilstm-crf --init chunker --out newer",
        "trelliswork train chunks.txt --model crf --c2 0.5 --out chunker",
        "trelliswork train chunks.txt --model hmm --smoothing 0.5 --out quick",
        "trelliswork train chunks.txt --model crf --features my.module:attributes --out chunker",
        "trelliswork train half.txt --dev dev.txt --model crf --partial --out chunker",
        "trelliswork train few.txt --model hucrf --pretrain many.txt --out chunker",
        "trelliswork train zh.conllu --model tokeniser --out words",
        "trelliswork train tokens.txt --model tokeniser --raw text.txt --out words",
        "trelliswork train trees.mrg --model pcfg --out grammar",
        "trelliswork train text.txt more.txt.gz --model ngram --order 5 --out lm",
        "trelliswork train lines.txt --pretokenised --model ngram --units characters --out lm",
        "trelliswork train prodigy.jsonl --out ner",
        "trelliswork train hf.jsonl --field names=O,B-PER,I-PER --out ner",
    )


train.command_class = TrainCommand  # type: ignore[attr-defined]


def resolve(ctx: typer.Context, others: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return all options by name: as given on the command line, else as in the file of settings, else the defaults.

    The file may have sections that are no settings, `others`. `CHOSEN` is a line about a model that nobody has named.
    """
    given, file = given_in(ctx), settings_file(ctx)
    if file is not None and file == given.get("train"):
        given.pop("train")
    written = {} if file is None else values_in(file)
    known = {**ctx.params, "train": None, **written, **given}
    model, why = given.get("model") or written.get(MODEL_NAME), ""
    if model is None:
        ready = isinstance(known["train"], str) and known["out"] is not None
        model, why = named("trelliswork.cli.choosing:chosen_model")(known) if ready else (DEFAULT, "")
    model = known_model(str(model))
    stored = {} if file is None else read_config(file, model, others)
    refuse_code(file, stored, given)
    options = {**ctx.params, "train": None, **stored, **given, "model": model, CHOSEN: why}
    for name in ("train", "out"):
        if options[name] is None:
            raise TrellisworkError(f"expected {_MISSING[name]}; see trelliswork {ctx.info_name} --help")
    for name in ("feature_columns", "tag_columns"):  # numbers in a file, text on the command line
        columns, option = options[name], "--" + name.replace("_", "-")
        options[name] = columns if isinstance(columns, tuple) else parse_columns(columns, option)
    for name in ("word_column", "tag_column"):
        options[name] = parse_column(options[name], "--" + name.replace("_", "-"))
    refuse_unused(given, options)
    if options.get("more") and entry_of(model).title != "Language models":
        raise TrellisworkError(f"expected one file to train on, got {count(1 + len(options['more']), 'file')}; "
                               "join them, or choose a language model with --model ngram")  # fmt: skip
    return with_kinds(options)


def refuse_unused(given: Options, options: Options) -> None:
    """Refuse a setting that the model does not use, and say which models do."""
    model, encoder = options["model"], options.get("encoder")
    for name in given.keys() - set(SHARED):
        users = models_with(name, options)
        if users and model not in users:
            option, others = "--" + name.replace("_", "-"), ", ".join(users)
            if options[CHOSEN]:
                problem = f"{option} is not used by {model}, the default for this data; leave it out"
                raise TrellisworkError(f"{problem}, or add --model {nearest_model(model, users)} or one of {others}")
            which = f"{model} with --encoder {encoder}" if encoder and entry_of(model).is_network else model
            raise TrellisworkError(f"{option} is not used by --model {which}; leave it out, or choose one of {others}")


def refuse_code(file: str | None, stored: Options, given: Options) -> None:
    """Refuse a feature function that only the file names: a file travels with models, and never chooses code.

    Args:
        file: The file of settings; None if there is none.
        stored: Its settings.
        given: Options of the command line.
    """
    if file is not None and stored.get("features") is not None and given.get("features") is None:
        problem = f"it names the feature function {stored['features']!r}, and a file of settings never chooses code"
        raise DataError(file, f"{problem}; if you trust it, add --features {shlex.quote(stored['features'])}")


_MISSING = {"train": "a tagged file to train on, TRAIN, got none", "out": "a place to write to, --out, got none"}


def given_in(ctx: typer.Context) -> dict[str, Any]:
    """Return the options that stand on the command line."""
    sources = {name: ctx.get_parameter_source(name) for name in ctx.params}
    return {name: ctx.params[name] for name, source in sources.items() if source and source.name == "COMMANDLINE"}


def settings_file(ctx: typer.Context) -> str | None:
    """Return the file of settings, which may stand in the place of TRAIN."""
    file, train = ctx.params["config"], ctx.params["train"]
    if train is None or not train.endswith(".toml"):
        return file
    if file is not None:
        raise TrellisworkError(f"expected one file of settings, got {train} and {file}; leave one out")
    return train


def choices_in(options: Options) -> Choices:
    """Return the layout of the data as far as it is given."""
    return layout_in({**options, **chosen_columns(options)})


def chosen_columns(options: Options) -> dict[str, object]:
    """Return the columns to read for --tag-columns: the last as tags, those before it as further columns."""
    columns = options.get("tag_columns")
    is_multi = options["model"] == MULTI_TASK
    for name in ("tag_columns", "tasks"):
        if options.get(name) is not None and not is_multi:
            option = "--" + name.replace("_", "-")
            raise TrellisworkError(f"{option} needs --model {MULTI_TASK}, got --model {options['model']}; add it")
    if is_multi and options["scheme"] is not None:
        raise TrellisworkError(f"--scheme is for one column of tags, --model {MULTI_TASK} infers each; leave it out")
    if columns is None:
        return {}
    if options["tag_column"] is not None or options["feature_columns"] is not None:
        raise TrellisworkError("--tag-columns names all columns of tags; leave out --tag-column and --feature-columns")
    if len(columns) < 2 or len(set(columns)) < len(columns):
        shown = ",".join(map(str, columns))
        raise TrellisworkError(f"--tag-columns must be two different columns or more, such as 2,3; got {shown}")
    return {"tag_column": columns[-1], "feature_columns": columns[:-1]}
