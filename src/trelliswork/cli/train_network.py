"""`trelliswork train` with a network: read, build, learn, show the dev scores, save."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
import typer

from trelliswork.cli.config_file import config_text
from trelliswork.cli.inputs import count, say
from trelliswork.cli.kernels import prepare_kernels
from trelliswork.cli.scores import score, score_text
from trelliswork.cli.tasks import parts_of, task_names
from trelliswork.cli.train_data import (
    broken_tags,
    check_folder,
    config_first,
    known_tags,
    provenance,
    read_data,
    reserved,
)
from trelliswork.data import Choices, ColumnFormat, Sentence, WordVectors, read_vectors
from trelliswork.data.crfsuite import is_crfsuite
from trelliswork.errors import DataError, OutputError, TrellisworkError
from trelliswork.models import MultiTagger, Segmenter, Tagger, TaggerConfig
from trelliswork.models.storage import CONFIG, check_output
from trelliswork.models.taggers.networks.presets import PRESETS
from trelliswork.tags.schemes import canonical, infer_scheme, spans_of
from trelliswork.training import TrainingConfig, TrainingResult, make_progress
from trelliswork.training import train as train_model
from trelliswork.training.exclusive import exclusive
from trelliswork.training.progress import Progress
from trelliswork.training.seeds import SeedsResult, train_seeds
from trelliswork.training.tensorboard import TensorBoardProgress

Options = Mapping[str, Any]
Network = Tagger | Segmenter | MultiTagger
KINDS: dict[str, type[Network]] = {kind.__name__: kind for kind in (Tagger, Segmenter, MultiTagger)}


@dataclass(frozen=True)
class Plan:
    """What to build and how to train it."""

    kind: type[Network]
    network: TaggerConfig
    learning: TrainingConfig


class Material(NamedTuple):
    """What to learn from."""

    format: ColumnFormat | None
    train: list[Sentence]
    dev: list[Sentence]
    scheme: str | None
    vectors: WordVectors | None


def plan_of(options: Options) -> Plan:
    """The model that is named, changed by each option that is given."""
    preset = PRESETS[options["model"]]
    network = TaggerConfig(**{**preset.network, **_given(options, TaggerConfig)})
    learning = TrainingConfig(**{**preset.learning, **_given(options, TrainingConfig)})
    return Plan(KINDS[preset.kind], network, learning)


def _given(options: Options, config: type) -> dict[str, Any]:
    return {field.name: options[field.name] for field in fields(config) if options.get(field.name) is not None}


def read_material(options: Options, choices: Choices, plan: Plan, *, quiet: bool) -> Material:
    """Sentences and vectors."""
    train_file = options["train"]
    if is_crfsuite(train_file):
        raise DataError(train_file, "a network reads words, and this file has attributes; add --model crf")
    vectors = read_word_vectors(options.get("vectors"), plan.network.vector_dim)
    format, train, dev = read_data(train_file, options["dev"], choices, quiet)
    scheme = choices.scheme or (format.scheme if format is not None else None)
    return Material(format, train, dev, scheme, vectors)


def fitting(material: Material, plan: Plan, options: Options, *, quiet: bool = False) -> Material:
    """Without the sentences that the model cannot learn from, with a note about them."""
    if plan.kind is not Segmenter:
        return material
    longest, file = plan.network.max_length, options["train"]
    return material._replace(train=without_long_spans(material.train, longest, material.scheme, file, quiet=quiet))


def read_word_vectors(path: str | None, dim: int) -> WordVectors | None:
    """The vectors in a file, which must have `dim` numbers each unless that is 0."""
    if path is None:
        if dim:
            raise TrellisworkError(f"vector_dim is {dim} and there are no vectors; add --vectors FILE or set it to 0")
        return None
    vectors = read_vectors(path)
    if dim not in (0, vectors.dim):
        problem = f"expected vectors of {dim} numbers, as vector_dim says, got {vectors.dim}"
        raise DataError(path, f"{problem}; give another file or leave vector_dim out")
    return vectors


def without_long_spans(
    train: list[Sentence], longest: int, scheme: str | None, file: str, *, quiet: bool = False
) -> list[Sentence]:
    """The sentences without a span of more tokens than a segmenter can see, and a note about the others."""
    found = canonical(scheme) if scheme is not None else infer_scheme([sentence.tags or () for sentence in train])
    if found == "plain":
        return train
    kept = [each for each in train if longest_span(each, found) <= longest]
    n_left, needed = len(train) - len(kept), max(longest_span(each, found) for each in train)
    if not kept:
        problem = f"every sentence has a span of more than {longest} tokens"
        raise DataError(file, f"{problem}; add --max-length {needed}")
    if n_left:
        say(
            f"note: {count(n_left, 'training sentence')} with spans of more than {longest} tokens left out; "
            f"--max-length {needed} keeps all",
            quiet=quiet,
        )
    return kept


def longest_span(sentence: Sentence, scheme: str) -> int:
    """In tokens; 0 without spans."""
    return max((end - start for start, end, _ in spans_of(sentence.tags or (), scheme)), default=0)


def build(plan: Plan, material: Material, options: Options, seed: int) -> Network:
    """A new model; vectors that cover no word of the training data are an error."""
    tagger = _new(plan, material, options.get("tasks"), seed)
    if material.vectors is not None and tagger.features.coverage(material.train) == 0:
        problem = "expected vectors of words of the training data, got none of them"
        raise DataError(options["vectors"], f"{problem}; give vectors of its language")
    tagger.metrics["data"] = provenance(options["train"], options["dev"], material.train, material.dev, material.format)
    return tagger


def _new(plan: Plan, material: Material, tasks: str | None, seed: int) -> Network:
    train, vectors = material.train, material.vectors
    if issubclass(plan.kind, MultiTagger):
        names = task_names(tasks, material.format, train)
        return plan.kind.from_data(train, names, plan.network, vectors=vectors, seed=seed)
    return plan.kind.from_data(train, plan.network, scheme=material.scheme, vectors=vectors, seed=seed)


def train_network(options: Options, choices: Choices) -> None:
    """Train what the options say, once or with several seeds."""
    plan, n_seeds = plan_of(options), options.get("seeds") or 1
    progress_of(options)  # refuses TensorBoard where it is not installed
    torch.set_num_threads(options["threads"])
    if n_seeds > 1:
        _train_seeds(plan, options, choices, n_seeds)
        return
    out, resume = Path(options["out"]), options["resume"]
    with reserved(out, options["force"], resume):
        material, tagger = _prepared(plan, options, choices)
        with config_first(out, settings_text(out, tagger, plan.learning, options)):
            result = train_model(
                tagger, material.train, material.dev, plan.learning, out=out, resume=resume,
                progress=progress_of(options), locked=True,
            )  # fmt: skip
    finish(tagger, material.dev, result, out)


def _prepared(plan: Plan, options: Options, choices: Choices) -> tuple[Material, Network]:
    """The data and a new model for them, described; the kernels that it needs are compiled."""
    quiet = options["quiet"]
    material = fitting(read_material(options, choices, plan, quiet=quiet), plan, options)
    tagger = build(plan, material, options, plan.learning.seed)
    describe(tagger, material, options, quiet)
    prepare_kernels(tagger, quiet=quiet)
    return material, tagger


def progress_of(options: Options, run: str = "") -> Progress:
    """What the user sees of a run, with TensorBoard if that is wanted."""
    shown, folder = make_progress(not options["quiet"]), options.get("tensorboard")
    return shown if folder is None else TensorBoardProgress(shown, Path(folder) / run)


def describe(tagger: Network, material: Material, options: Options, quiet: bool) -> None:
    """Notes about the data, and the size of the model."""
    heads = tagger.heads
    for part in parts_of(tagger, material.dev):
        known_tags(part.tagger, part.sentences)
    for part in parts_of(tagger, material.train):
        if part.tagger.labels.scheme != part.tagger.labels.data_scheme:
            broken_tags(part.tagger, part.sentences)
    if material.vectors is not None:
        share = tagger.features.coverage(material.train)
        size = f"{count(len(material.vectors.words), 'vector')} of {material.vectors.dim} numbers"
        say(f"{options['vectors']}: {size}, for {100 * share:.1f}% of the training tokens", quiet=quiet)
        announced_vectors(material.vectors, options["vectors"])
    labels = [f"{len(head.labels.vocabulary)} labels" + (f" of {name}" if name else "") for name, head in heads.items()]
    say(f"model: {', '.join(labels)}, {tagger.n_parameters:,} parameters", quiet=quiet)


def announced_vectors(vectors: WordVectors, file: str) -> None:
    """Say if the first line of a file promises more vectors than there are: it may have been cut."""
    if (vectors.n_announced or 0) > len(vectors.words):
        say(f"note: {file}: its first line promises {vectors.n_announced:,} vectors, it has {len(vectors.words):,}")


def _seed_folders(out: Path, plan: Plan, n: int) -> list[Path]:
    if (out / CONFIG).exists():
        raise OutputError(f"{out}: holds one model, and --seeds makes a folder of several; choose another folder")
    folders = [out / f"seed-{plan.learning.seed + i}" for i in range(n)]
    for folder in folders:
        check_output(folder)
    return folders


def _train_seeds(plan: Plan, options: Options, choices: Choices, n: int) -> None:
    out = Path(options["out"])
    folders = _seed_folders(out, plan, n)
    with exclusive(out):
        for folder in folders:
            check_folder(folder, options["force"] or options["resume"])
        material, _ = _prepared(plan, options, choices)
        result = _all_seeds(plan, material, options, folders)
    folder, remark = (out, "   (all together)") if plan.kind is Tagger else (out / "seed-N", "")
    print(f"{result.table()}\n\nmodels: {out}/seed-N\nnext:   trelliswork tag {folder} FILE --confidence{remark}")
    if result.interrupted:
        raise typer.Exit(130)


def _all_seeds(plan: Plan, material: Material, options: Options, folders: Sequence[Path]) -> SeedsResult:
    parts: list[SeedsResult] = []
    for seed, folder in enumerate(folders, plan.learning.seed):
        tagger, learning = build(plan, material, options, seed), replace(plan.learning, seed=seed)
        with exclusive(folder), config_first(folder, settings_text(folder, tagger, learning, options)):
            parts.append(_one_seed(tagger, material, learning, options))
        if parts[-1].interrupted:
            break
    return SeedsResult(parts[-1].metric, [row for part in parts for row in part.rows], parts[-1].interrupted)


def _one_seed(tagger: Network, material: Material, learning: TrainingConfig, options: Options) -> SeedsResult:
    return train_seeds(
        lambda _: tagger, material.train, material.dev, learning, seeds=1, out=options["out"],
        resume=options["resume"], progress=lambda: progress_of(options, f"seed-{learning.seed}"), locked=True,
    )  # fmt: skip


def settings_text(folder: Path, tagger: Network, learning: TrainingConfig, options: Options) -> str:
    """Every setting of the run, for the file beside the model that it makes."""
    return config_text({**options, **tagger.config.to_dict(), **learning.to_dict(), "out": str(folder)})


def finish(tagger: Network, dev: Sequence[Sentence], result: TrainingResult, out: Path) -> None:
    """The dev table, and where the model is."""
    print(f"best epoch {result.best_epoch} of {len(result.history)}, {result.seconds:.1f} s; on the dev sentences:\n")
    print("\n\n".join(part.heading + score_text(score(part.tagger, part.sentences)) for part in parts_of(tagger, dev)))
    print(f"\nmodel: {out}\nnext:  trelliswork tag {out} FILE --confidence")
    if result.interrupted:
        raise typer.Exit(130)
