"""`trelliswork train`: from a tagged file to a model folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trelliswork.cli.options import (
    Delimiter,
    FeatureColumns,
    Quiet,
    Scheme,
    TagColumn,
    TagColumns,
    Tasks,
    Threads,
    WordColumn,
    parse_columns,
    parse_delimiter,
)
from trelliswork.errors import TrellisworkError
from trelliswork.models.presets import PRESETS

if TYPE_CHECKING:
    from trelliswork.data import Choices

LEARNING, NETWORK, FEATURES = "Learning", "Network", "Features (crf, hucrf, memm, logistic, hmm, naive-bayes)"
OVER_FEATURES = {
    "crf": "all tags of a sentence judged together",
    "hucrf": "the same with hidden units",
    "memm": "each tag given the one before",
    "logistic": "each tag alone",
    "hmm": "memm by counting alone, in seconds and less accurate",
    "naive-bayes": "logistic by counting alone",
}
MODELS = (*PRESETS, *OVER_FEATURES)
BY_THE_MODEL = "by the model"
LEARNED = (
    "algorithm", "c1", "c2", "max_iterations", "samples", "posterior", "temperature", "all_states", "all_transitions",
    "latent", "order", "smoothing", "cutoff", "hash_bits", "induce",
)  # fmt: skip


def _phrases(found: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {phrase}" for name, phrase in found.items())


MODEL_HELP = f"""Networks. {_phrases({name: preset.phrase for name, preset in PRESETS.items()})}.
Over features. {_phrases(OVER_FEATURES)}."""


def _learning(help: str) -> Any:
    return typer.Option(help=help, show_default=BY_THE_MODEL, rich_help_panel=LEARNING)


def _network(help: str, **more: Any) -> Any:
    return typer.Option(help=help, show_default=BY_THE_MODEL, rich_help_panel=NETWORK, **more)


def train(
    ctx: typer.Context,
    train: Annotated[
        str | None,
        typer.Argument(
            metavar="TRAIN",
            help="Tagged file: CoNLL columns, .csv, .jsonl or .crfsuite, also .gz. Or a .toml file of settings.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[str | None, typer.Option(metavar="DIR", help="Folder for the model.", show_default=False)] = None,
    dev: Annotated[str | None, typer.Option(help="Tagged file to stop early on; else the last 10 % of TRAIN.")] = None,
    model: Annotated[str, typer.Option(help=MODEL_HELP, metavar="NAME")] = "window",
    config: Annotated[
        str | None, typer.Option(metavar="FILE", help="Settings in TOML; options given here go before.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a model that is already in DIR.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped in DIR.")] = False,
    threads: Threads = 1,
    quiet: Quiet = False,
    delimiter: Delimiter = None,
    word_column: WordColumn = None,
    tag_column: TagColumn = None,
    feature_columns: FeatureColumns = None,
    tag_columns: TagColumns = None,
    tasks: Tasks = None,
    scheme: Scheme = None,
    epochs: Annotated[int | None, _learning("Passes over the data, at most.")] = None,
    patience: Annotated[int | None, _learning("Stop after so many without gain.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same model.", rich_help_panel=LEARNING)] = 0,
    seeds: Annotated[
        int, typer.Option(min=1, help="Train so often, from --seed on; print the mean.", rich_help_panel=LEARNING)
    ] = 1,
    batch_tokens: Annotated[int | None, _learning("Tokens in a batch.")] = None,
    objective: Annotated[str | None, _learning("likelihood, local, perceptron, margin or risk.")] = None,
    optimizer: Annotated[str | None, _learning("adamw, adam, sgd or momentum.")] = None,
    lr: Annotated[float | None, _learning("Learning rate.")] = None,
    decay: Annotated[str | None, _learning("linear, constant, inverse, cosine or triangular.")] = None,
    l2: Annotated[float | None, _learning("Weight decay.")] = None,
    checkpoint_every: Annotated[float | None, _learning("Seconds between checkpoints.")] = None,
    encoder: Annotated[str | None, _network("window, sentence, lstm, gru, transformer, dilated, deep or none.")] = None,
    characters: Annotated[str | None, _network("Words letter by letter: none, cnn or lstm.")] = None,
    vectors: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Pretrained vectors as text, also .gz (GloVe, word2vec, fastText).",
            show_default=False,
            rich_help_panel=NETWORK,
        ),
    ] = None,
    tune_vectors: Annotated[bool | None, _network("Train the pretrained vectors on.")] = None,
    window: Annotated[int | None, _network("Tokens that are seen at once.")] = None,
    hidden: Annotated[int | None, _network("Hidden units (in each direction).")] = None,
    layers: Annotated[int | None, _network("Layers of the encoder.")] = None,
    pretrain_epochs: Annotated[
        int | None, _network("Passes of the layers over words without tags (deep).", min=0)
    ] = None,
    max_length: Annotated[int | None, _network("Tokens of the longest segment (semi-CRFs).", min=1)] = None,
    segment_dim: Annotated[int | None, _network("Width of segment vectors (semi-CRFs).")] = None,
    word_dim: Annotated[int | None, _network("Width of word vectors.")] = None,
    affix_dim: Annotated[int | None, _network("Width of affix vectors.")] = None,
    column_dim: Annotated[int | None, _network("Width of column vectors.")] = None,
    min_count: Annotated[int | None, _network("Rarer words are unknown.")] = None,
    dropout: Annotated[float | None, _network("Share of inputs dropped.")] = None,
    hidden_dropout: Annotated[float | None, _network("Share of encoded dimensions dropped.")] = None,
    unknown_dropout: Annotated[float | None, _network("Share of words read as unknown.")] = None,
    scorer: Annotated[str | None, _network("linear, context (neighbours), hidden-units or tensor.")] = None,
    label_scheme: Annotated[str | None, _network("Learn tags as IOBES, or as in the data.")] = None,
    constrained: Annotated[bool | None, _network("Forbid illegal tag sequences.")] = None,
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
    with --resume goes on, also after a kill or a power cut. Every setting
    of a run is written into its folder as config.toml, which can be trained.

    \b
    Examples:
      trelliswork train train.conll --dev dev.conll --out ner
      trelliswork train chunks.txt --feature-columns 2 --out chunker
      trelliswork train chunks.txt --model bilstm-crf --vectors glove.txt --out chunker
      trelliswork train chunks.txt --model grsemicrf --max-length 12 --out chunker
      trelliswork train all.txt --model multi-task --tag-columns 2,3 --tasks pos,chunk --out both
      trelliswork train chunker/config.toml --seed 1 --out again
      trelliswork train chunks.txt --model crf --c2 0.5 --out chunker
      trelliswork train chunks.txt --model hmm --smoothing 0.5 --out quick
      trelliswork train chunks.txt --model crf --features my.module:attributes --out chunker
      trelliswork train half.txt --dev dev.txt --model crf --partial --out chunker
      trelliswork train few.txt --model hucrf --pretrain many.txt --out chunker
    """
    options = resolve(ctx)
    choices = choices_in(options)
    name = options["model"]
    if options["pretrain"] is not None and name != "hucrf":
        raise TrellisworkError(f"--pretrain needs --model hucrf, got --model {name}; add it or leave it out")
    if name in PRESETS:
        from trelliswork.cli.train_network import train_network

        train_network(options, choices)
    else:
        _train_features(options, choices)


def resolve(ctx: typer.Context) -> dict[str, Any]:
    """All options by name: as given on the command line, else as in the file of settings, else the defaults."""
    given = {name: value for name, value in ctx.params.items() if _is_given(ctx, name)}
    file, train = ctx.params["config"], ctx.params["train"]
    if train is not None and train.endswith(".toml"):
        if file is not None:
            raise TrellisworkError(f"expected one file of settings, got {train} and {file}; leave one out")
        file = given.pop("train")
    stored: dict[str, Any] = {}
    if file is not None:
        from trelliswork.cli.config_file import read_config

        stored = read_config(file, given.get("model"))
    options = {**ctx.params, "train": None, **stored, **given}
    for name in ("feature_columns", "tag_columns"):  # numbers in a file, text on the command line
        columns, option = options[name], "--" + name.replace("_", "-")
        options[name] = columns if isinstance(columns, tuple) else parse_columns(columns, option)
    if options["model"] not in MODELS:
        raise TrellisworkError(f"expected a model, one of {', '.join(MODELS)}; got {options['model']!r}")
    for name in ("train", "out"):
        if options[name] is None:
            raise TrellisworkError(f"expected {_MISSING[name]}; see trelliswork {ctx.info_name} --help")
    return options


_MISSING = {"train": "a tagged file to train on, TRAIN, got none", "out": "a place to write to, --out, got none"}


def _is_given(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def choices_in(options: Mapping[str, Any]) -> Choices:
    """The layout of the data as far as it is given."""
    from trelliswork.cli.tasks import chosen_columns
    from trelliswork.data import Choices

    names = ("word_column", "tag_column", "feature_columns", "scheme")
    layout = {name: options[name] for name in names} | chosen_columns(options)
    return Choices(parse_delimiter(options["delimiter"]), **layout)


def _train_features(options: Mapping[str, Any], choices: Choices) -> None:
    if options["resume"]:
        raise TrellisworkError(
            "--resume goes on with a network; a CRF over features is trained in one go: leave it out"
        )
    if options["seeds"] > 1:
        raise TrellisworkError("--seeds is for networks; weights over features hardly depend on the seed: leave it out")
    from trelliswork.cli.train_features import train_features, write_config

    name = options["model"]
    learned = {key: options[key] for key in LEARNED} | {"min_count": options["min_freq"], "seed": options["seed"]}
    learned |= dict(model="crf", hidden_units=options["hidden_units"]) if name == "hucrf" else dict(model=name)
    interrupted = train_features(
        options["train"],
        options["dev"],
        Path(options["out"]),
        choices,
        (options["template"], options["features"]),
        learned,
        partial=options["partial"],
        pretrain=options["pretrain"],
        force=options["force"],
        threads=options["threads"],
        quiet=options["quiet"],
    )
    write_config(options)
    if interrupted:
        raise typer.Exit(130)
