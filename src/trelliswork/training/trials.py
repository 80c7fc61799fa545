"""Searching for settings with Optuna: trial after trial, bad ones ended early, all of them on disk.

    >>> def run(attempt):                                                                     # doctest: +SKIP
    ...     tagger = Tagger.from_data(sentences, TaggerConfig(hidden=attempt.settings["hidden"]))
    ...     shown = make_progress(on_epoch=lambda record: attempt.report(record.epoch, record.score))
    ...     return train(tagger, sentences, dev, progress=shown).best_score
    >>> space = {"hidden": Numbers(50, 300, whole=True)}                                      # doctest: +SKIP
    >>> search(run, space, SearchConfig(trials=20), out="search").best                        # doctest: +SKIP

Trial N depends on the seed, on N and on the trials before it, and on nothing else: a search that was killed and resumed
makes the trials that it would have made.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from trelliswork.data.json_values import Json
from trelliswork.data.settings import Numbers as Numbers
from trelliswork.data.settings import OneOf as OneOf
from trelliswork.data.settings import Space
from trelliswork.errors import OutputError, TrellisworkError
from trelliswork.lazy import optional
from trelliswork.training.result import SearchResult, TrialRow

Study: TypeAlias = Any  # optuna.study.Study: optuna is imported when a search begins
Trial: TypeAlias = Any  # optuna.trial.Trial or FrozenTrial
JOURNAL = "study.log"
STUDY = "trelliswork"
FAILURES = 3  # this many trials end a search if all of them fail
UNPRUNED_TRIALS = 4  # the first ones run to their end
RANDOM_TRIALS = 8  # before the sampler looks at what was found

TrialFunction = Callable[["Attempt"], float]


class Pruned(Exception):  # noqa: N818, no error
    """Ends a trial that is worse than most others were by then."""


class Attempt:
    """One trial: its number, its settings, and whether it goes on from where it was stopped.

    Args:
        trial: Optuna's trial.
        space: The settings to choose.
        resumed: Whether the trial was stopped before.
    """

    def __init__(self, trial: Trial, space: Space, resumed: bool = False) -> None:
        self.number: int = trial.number
        self.settings = {name: each.suggest(name, trial) for name, each in space.items()}
        self.resumed, self._trial = resumed, trial
        self._reported = set(_frozen(trial).intermediate_values)

    def report(self, step: int, score: float | None) -> None:
        """A score on the way; `Pruned` is raised where it is not worth going on."""
        if score is None or step in self._reported:
            return
        self._trial.report(score, step)
        self._reported.add(step)
        if self._trial.should_prune():
            raise Pruned


@dataclass(frozen=True)
class SearchConfig:
    """Settings of a search: the number of trials, and the settings of the first, where they lie in the space.

    A trial that is worse than the median of the others is ended, but not in its first `unpruned_steps`.
    """

    trials: int = 20
    seed: int = 0
    first: Mapping[str, Json] | None = None
    unpruned_steps: int = 2


def search(
    run: TrialFunction,
    space: Space,
    config: SearchConfig | None = None,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    purpose: Mapping[str, Json] | None = None,
    on_trial: Callable[[SearchResult, TrialRow], None] | None = None,
) -> SearchResult:
    """Call `run` with settings from `space`, trial after trial; it returns the score to make large.

    With `out`, the study is kept there, for `resume` and for Optuna's own tools; `purpose`, plain values that say what
    is searched for, must then be the same again. `on_trial` sees each trial that has ended. A trial that raises a
    `TrellisworkError` has failed; Ctrl-C ends the search with what there is.

    Args:
        run: Trains with `Attempt.settings` and returns the score to maximise.
        space: The settings to choose.
        config: The number of trials, the seed, and the first settings.
        out: The folder of the study.
        resume: Whether to go on with the study in `out`.
        purpose: What is searched for, as plain values.
        on_trial: Called with the result so far and the row of the trial that has ended.

    Returns:
        A row for each trial.
    """
    config = config or SearchConfig()
    if config.trials < 1 or not space:
        raise TrellisworkError(
            f"expected trials and settings to choose; got {config.trials} and {len(space)}; give one or more"
        )
    optuna = require_optuna()
    pruner = optuna.pruners.MedianPruner(n_startup_trials=UNPRUNED_TRIALS, n_warmup_steps=config.unpruned_steps + 1)
    study = _study(optuna, None if out is None else Path(out), resume, pruner)
    described = {name: str(each) for name, each in space.items()}
    _check_purpose(study, {**(purpose or {}), "seed": config.seed, "space": described})
    if config.first is not None and not study.trials:
        held = {name: each for name, each in config.first.items() if space[name].holds(each)}
        study.enqueue_trial({name: space[name].label(each) for name, each in held.items()})
    try:
        while sum(trial.state.is_finished() for trial in study.trials) < config.trials:
            attempt = _next_attempt(optuna, study, space, config.seed)
            _one_trial(optuna, study, attempt, run)
            result = result_of(study, space)
            if on_trial is not None:
                on_trial(result, result.row(attempt.number))
            _refuse_failures(result)
    except KeyboardInterrupt:
        return result_of(study, space, interrupted=True)
    return result_of(study, space)


def require_optuna() -> ModuleType:
    """Return the package, or an error that says how to install it."""
    optuna = optional("optuna", "a search for settings", "tune")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def _study(optuna: ModuleType, out: Path | None, resume: bool, pruner: object) -> Study:
    if out is None:
        return optuna.create_study(direction="maximize", pruner=pruner)
    path = out / JOURNAL
    if path.exists() and not path.is_file():
        raise OutputError(f"{path}: expected the journal of a search, got no regular file; remove it")
    if path.exists() and not resume:
        raise OutputError(f"{out}: holds a search already; add --resume to go on with it, or choose another folder")
    out.mkdir(parents=True, exist_ok=True)
    _drop_torn_line(path)
    try:
        storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(path)))
        return optuna.create_study(
            storage=storage, study_name=STUDY, direction="maximize", pruner=pruner, load_if_exists=True
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise OutputError(f"{path}: expected the journal of a search, got something else; remove it") from error


def _drop_torn_line(path: Path) -> None:
    """Remove what a power cut left of the last line of a journal."""
    if path.exists():
        text = path.read_bytes()
        whole = text.rfind(b"\n") + 1
        if whole < len(text):
            with path.open("r+b") as file:
                file.truncate(whole)


def _check_purpose(study: Study, purpose: Mapping[str, Json]) -> None:
    now = json.loads(json.dumps(purpose))
    then = study.user_attrs.get("purpose")
    if then is None:
        study.set_user_attr("purpose", now)
        return
    differing = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    if differing:
        name = differing[0]
        raise TrellisworkError(
            f"expected the settings of the search that is resumed; {name} was {then.get(name)!r} and is "
            f"{now.get(name)!r}; give the same again, or search again in another folder"
        )


def _next_attempt(optuna: ModuleType, study: Study, space: Space, seed: int) -> Attempt:
    """Return the trial that was stopped, if there is one; else a new one."""
    stopped = [trial for trial in study.trials if trial.state == optuna.trial.TrialState.RUNNING]
    number = stopped[0].number if stopped else len(_begun(study))
    study.sampler = optuna.samplers.TPESampler(seed=seed * 1_000_003 + number, n_startup_trials=RANDOM_TRIALS)
    if stopped:
        return Attempt(optuna.trial.Trial(study, stopped[0]._trial_id), space, resumed=True)
    return Attempt(study.ask(), space)


def _one_trial(optuna: ModuleType, study: Study, attempt: Attempt, run: TrialFunction) -> None:
    began, trial, states = time.monotonic(), attempt._trial, optuna.trial.TrialState
    before = trial.user_attrs.get("seconds", 0.0)
    try:
        score, state = run(attempt), states.COMPLETE
    except Pruned:
        score, state = None, states.PRUNED
    except OutputError:
        raise
    except TrellisworkError as error:
        trial.set_user_attr("problem", str(error))
        score, state = None, states.FAIL
    finally:
        trial.set_user_attr("seconds", before + time.monotonic() - began)
    if state == states.COMPLETE and not (isinstance(score, float | int) and math.isfinite(score)):
        raise TrellisworkError(f"expected a score from run, a finite number, got {score!r}; return one")
    study.tell(trial, score, state=state)


def _refuse_failures(result: SearchResult) -> None:
    if len(result.rows) >= FAILURES and all(row.state == "failed" for row in result.rows):
        last = result.rows[-1].problem
        raise TrellisworkError(f"every one of {len(result.rows)} trials failed, the last with: {last}")


def result_of(study: Study, space: Space, *, interrupted: bool = False) -> SearchResult:
    """Return the trials of a study as rows.

    Args:
        study: Optuna's study.
        space: The settings to choose.
        interrupted: Whether Ctrl-C ended the search.

    Returns:
        A row for each trial.
    """
    return SearchResult([_row(trial, space) for trial in _begun(study)], interrupted)


def _begun(study: Study) -> list[Trial]:
    """Return all trials but one that is only planned."""
    return [trial for trial in study.trials if trial.state.name != "WAITING"]


def _row(trial: Trial, space: Space) -> TrialRow:
    states = {"COMPLETE": "finished", "PRUNED": "pruned", "FAIL": "failed"}
    steps = trial.intermediate_values
    labels = {name: {each.label(value): value for value in getattr(each, "values", ())} for name, each in space.items()}
    return TrialRow(
        trial.number,
        states.get(trial.state.name, "stopped"),
        trial.value if trial.state.name == "COMPLETE" else max(steps.values(), default=None),
        {name: labels[name].get(value, value) for name, value in trial.params.items()},
        max(steps, default=0),
        trial.user_attrs.get("seconds", 0.0),
        trial.user_attrs.get("problem", ""),
    )


def _frozen(trial: Trial) -> Trial:
    return trial.study.trials[trial.number]
