"""The help of `train` and `tune`: the common options and the models, the options of one model, or everything."""

from __future__ import annotations

import inspect
import textwrap
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import typer

from trelliswork.cli.light_typer import PlainCommand
from trelliswork.cli.messages import did_you_mean
from trelliswork.cli.options import BY_MODEL, Panel, panel_of
from trelliswork.data.settings import keys_of, settings_in
from trelliswork.errors import TrellisworkError
from trelliswork.models.catalogue import by_title, entries, entry_of
from trelliswork.models.taggers.features.learners.config import LearningConfig
from trelliswork.models.taggers.networks.config import TaggerConfig

if TYPE_CHECKING:
    from trelliswork.models.recipe import Options

HELP_ALL = "--help-all"
DEFAULT = "crf"  # listed first
WIDTH = 76  # of the list of models, which a terminal of 80 columns indents
COMMON = {  # the settings of models that the short help shows
    "c2", "device", "epochs", "features", "lr", "patience", "pretrained", "seed", "vectors",
}  # fmt: skip
RARE = {  # others that it leaves out
    "detail", "log_format", "min_tag_count", "predict_columns", "progress", "tag_columns", "tasks", "tensorboard",
}  # fmt: skip


def _of_models() -> Panel:
    """Return the settings of all models; one that several models have is offered by the first.

    If their defaults differ, that of an option depends on the model.
    """
    configs = list(dict.fromkeys(config for entry in entries().values() for config in entry.configs))
    panel: Panel = {}
    listed = {(about.option, each.default) for config in configs for each, about in settings_in(config) if about.option}
    by_model = {name for name, n in Counter(name for name, _ in listed).items() if n > 1}
    for config in configs:
        for name, option in panel_of(config, by_model=by_model).items():
            if name not in panel or (_is_text(option) and not _is_text(panel[name])):  # a text can be a number
                panel[name] = option
    return panel


def _is_text(option: tuple[Any, object]) -> bool:
    return option[0].__origin__ in (str, str | None)


OF_MODELS = _of_models()


def with_kinds(options: Options) -> dict[str, Any]:
    """Return options with numbers for texts where those of the model are; families may share the name of an option."""
    kinds = {key: kind for config in entry_of(options["model"]).configs for key, kind in keys_of(config).items()}
    return {name: _number(name, value, kinds.get(name, "")) for name, value in options.items()}


def _number(name: str, value: object, kind: str) -> object:
    if kind not in ("int", "float") or not isinstance(value, str):
        return value
    try:
        return int(value) if kind == "int" else float(value)
    except ValueError as error:
        raise TrellisworkError(f"--{name.replace('_', '-')} must be a number; got {value!r}") from error


ALSO = {"multi-task": ("tag_columns", "tasks"), "span-cky": ("detail",), "pcfg": ("detail",)}  # of columns


def known_model(name: str) -> str:
    """Return a name of a model; one that is none is an error that names the nearest."""
    models = list(entries())
    if name in models:
        return name
    near = did_you_mean(name.lower(), models)
    fix = f"{near} trelliswork train --help lists all" if near else f"choose one of {', '.join(models)}"
    raise TrellisworkError(f"expected a model, got {name!r}; {fix}")


def model_list(phrases: bool) -> str:
    """Return all models by what they are for, each with a few words or only by name."""
    lines: list[str] = []
    for title, group in sorted(by_title(entries().values()).items(), key=lambda item: entry_of(DEFAULT) not in item[1]):
        models = [each.name for each in group]
        if phrases:
            lines += [f"  {title}:", *(f"    {each.name:<17} {each.phrase}" for each in group)]
        else:
            indents: Any = {"initial_indent": f"  {title:<23}", "subsequent_indent": " " * 25}
            lines += textwrap.wrap(", ".join(models), WIDTH, break_on_hyphens=False, **indents)
    return "\n".join(lines)


class ModelCommand(PlainCommand):
    """A command over all models. `examples` belong to its function; the first few are shown with the common options."""

    examples: Sequence[str] = ()
    n_first = 6

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Remember what help is about, whether --model comes before or after it."""
        self.given = list(args)
        return super().parse_args(ctx, ["--help"] if HELP_ALL in args else args)

    def format_help(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        name = _model_in(self.given)
        if HELP_ALL in self.given:
            self.help = self._text(model_list(phrases=True), self.examples)
        elif name is not None:
            self.show_model(known_model(name))
        else:
            self.show_common()
        super().format_help(ctx, formatter)

    def show_common(self) -> None:
        """Hide what single models have."""
        self.help = self._text(model_list(phrases=False), self.examples[: self.n_first])
        for each in cast("list[Any]", self.params):
            each.hidden = each.name in (OF_MODELS.keys() - COMMON) | RARE
            if not isinstance(each.default, str | None) or getattr(each, "show_default", None) == BY_MODEL:
                each.show_default = False
            if getattr(each, "rich_help_panel", None) in (TaggerConfig.PANEL, LearningConfig.PANEL):
                each.rich_help_panel = "Models"

    def show_model(self, name: str) -> None:
        """Hide what this model does not have; options are described as it has them, as models share names."""
        own = _settings_of(name)
        for each in cast("list[Any]", self.params):
            each.hidden = each.name not in {*own, *ALSO.get(name, ()), "help"}
            for attribute, value in own.get(each.name, {}).items():
                setattr(each, attribute, value)
            if getattr(each, "secondary_opts", None):  # two names would take the room of the others
                each.rich_help_panel = "Switches"
        examples = [each for each in self.examples if f"--model {name} " in each]
        more = f"\n\n\b\nExamples:\n{_lines(examples)}" if examples else ""
        rest = f"trelliswork {self.name} --help has the options that all models share."
        self.help = f"{name}: {entry_of(name).phrase}.\n\nThe options of this model; {rest}{more}"

    def _text(self, models: str, examples: Sequence[str]) -> str:
        how = f"trelliswork {self.name} --model NAME --help shows the options of one, {HELP_ALL} those of all"
        lists = f"\b\nModels ({how}):\n{models}\n\n\b\nExamples:\n{_lines(examples)}"
        return f"{inspect.cleandoc(str(self.callback.__doc__))}\n\n{lists}"


def _lines(examples: Sequence[str]) -> str:
    return "\n".join(f"  {each}" for each in examples)


def _model_in(given: Sequence[str]) -> str | None:
    """Return the model that a command line names."""
    names = [following for option, following in pairwise(given) if option == "--model"]
    names += [each.removeprefix("--model=") for each in given if each.startswith("--model=")]
    return names[-1] if names else None


def _settings_of(name: str) -> dict[str, dict[str, object]]:
    """Return the options of a model: help, panel and the value that it has where nothing is given."""
    entry = entry_of(name)
    own = {**entry.values, **entry.learning}
    return {
        about.option: {
            "help": about.text,
            "rich_help_panel": config.PANEL,
            "show_default": about.default_text or _shown(own.get(each.name, each.default)),
        }
        for config in entry.configs
        for each, about in settings_in(config)
        if about.option and entry.uses(about.option, {"model": name})
    }


def _shown(value: object) -> str | bool:
    if isinstance(value, bool):
        return "on" if value else "off"
    if value in (None, "", ()):
        return False
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
