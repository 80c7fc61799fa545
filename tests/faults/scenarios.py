"""What is killed: each command with an earlier result in place, and how to tell the old result from the new one."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from trelliswork.cli.main import run
from trelliswork.data import Sentence
from trelliswork.models import FeatureTagger, LearningConfig, load

OLD = "Ann\tB-PER\nleft\tO\n\nBob\tB-PER\nran\tO\n\n"
NEW = "Ann\tB-MAN\nleft\tO\n.\tO\n\nRome\tB-LOC\nran\tO\n\nBob\tB-MAN\nleft\tO\n\n"
WORDS = [Sentence(("Ann", "left")), Sentence(("Rome", "ran", "."))]
# A rate at which the first epoch stays the best: each better one would be a whole result of its own.
NETWORK = ("--model", "window", "--hidden", "4", "--word-dim", "4", "--affix-dim", "2", "--epochs", "4", "--lr", "1e-6")


@dataclass(frozen=True)
class Scenario:
    """A command that replaces an earlier result in a folder.

    `prepare` makes a folder with the earlier result, `work` runs the command there, `result` is what a user has then
    (raising an error if it is broken), and `again` is what one does after a crash.
    """

    name: str
    prepare: Callable[[Path], Any]
    work: Callable[[Path], int]
    result: Callable[[Path], Hashable]
    again: Callable[[Path], int]


def command(*arguments: object) -> int:
    return run([str(each) for each in arguments])


def write_data(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "old.conll").write_text(OLD)
    (folder / "new.conll").write_text(NEW)


def digest(*contents: bytes) -> str:
    return hashlib.sha256(b"\0".join(contents)).hexdigest()[:12]


def of_model(folder: Path) -> Hashable:
    """What the model in `model` says; broken folders raise."""
    model: Any = load(folder / "model")
    answers = model.predict(WORDS, top_k=2)
    return repr([(answer.value, [round(part.probability, 6) for part in answer.parts]) for answer in answers])


def of_file(name: str, folder: Path) -> Hashable:
    path = folder / name
    return digest(path.read_bytes()) if path.exists() else None


def of_export(folder: Path) -> Hashable:
    files = sorted(path for path in (folder / "export").iterdir() if path.is_file())
    assert files, "an empty export"
    return digest(*(path.name.encode() + path.read_bytes() for path in files))


# --- train -----------------------------------------------------------------------------------------------------


def train(folder: Path, data: str, *options: object) -> int:
    return command("train", folder / data, "--out", folder / "model", "--quiet", *options)


FEATURES = ("--model", "crf", "--max-iterations", "4")


def features_trained(folder: Path) -> None:
    write_data(folder)
    assert train(folder, "old.conll", *FEATURES) == 0


def network_trained(folder: Path) -> None:
    write_data(folder)
    assert train(folder, "old.conll", *NETWORK) == 0


def resumed(folder: Path) -> int:
    """As one goes on after a crash: from the checkpoint, or anew where there is none."""
    going_on = (folder / "model" / "checkpoint" / "state.safetensors").exists()
    return train(folder, "new.conll", *NETWORK, "--resume" if going_on else "--force")


# --- tune ------------------------------------------------------------------------------------------------------

SEARCH = ("--model", "crf", "--trials", "3", "--max-iterations", "3")


def tune(folder: Path, *options: object) -> int:
    data = folder / "old.conll", "--dev", folder / "new.conll"
    return command("tune", *data, "--out", folder / "search", "--quiet", *SEARCH, *options)


def tuned_again(folder: Path) -> int:
    return tune(folder, *(["--resume"] if (folder / "search").exists() else []))


def of_search(folder: Path) -> Hashable:
    """The best settings and the best model, if they are there: each whole."""
    search = folder / "search"
    if (search / "best" / "config.json").exists():
        load(search / "best")
    return None if not (search / "best.toml").exists() else (search / "best.toml").read_text()


# --- the others ------------------------------------------------------------------------------------------------


def with_answers(folder: Path) -> None:
    features_trained(folder)
    (folder / "new.txt").write_text("Ann left .\nRome ran\n" * 20)
    (folder / "answers.jsonl").write_text("the old answers\n")


def predict(folder: Path) -> int:
    place = folder / "answers.jsonl"
    return command("predict", folder / "model", folder / "new.txt", "--pretokenised", "--out", place, "--confidence")


def with_crfsuite(folder: Path) -> None:
    features_trained(folder)
    rows = [Sentence(("a", "b"), ("X", "Y"), extra={"attributes": [["w=a"], ["w=b"]]})] * 2
    FeatureTagger.fit(rows, LearningConfig(max_iterations=2)).save(folder / "other")
    assert command("export", folder / "other", folder / "a.crfsuite", "--crfsuite") == 0


def convert(folder: Path) -> int:
    return command("convert", folder / "a.crfsuite", "--out", folder / "model", "--force")


def of_converted(folder: Path) -> Hashable:
    model: Any = load(folder / "model")
    return type(model).__name__, tuple(model.labels.vocabulary.to_list())


def exported(folder: Path) -> None:
    features_trained(folder)
    assert command("export", folder / "model", folder / "export", "--python") == 0
    assert train(folder, "new.conll", *FEATURES, "--force") == 0


def export(folder: Path) -> int:
    return command("export", folder / "model", folder / "export", "--python", "--force")


SCENARIOS = (
    Scenario("train, features", features_trained, lambda f: train(f, "new.conll", *FEATURES, "--force"), of_model,
             lambda f: train(f, "new.conll", *FEATURES, "--force")),
    Scenario("train, network", network_trained, lambda f: train(f, "new.conll", *NETWORK, "--force"), of_model,
             resumed),
    Scenario("tune", write_data, tune, of_search, tuned_again),
    Scenario("predict", with_answers, predict, partial(of_file, "answers.jsonl"), predict),
    Scenario("convert", with_crfsuite, convert, of_converted, convert),
    Scenario("export", exported, export, of_export, export),
)  # fmt: skip


def fresh(scenario: Scenario, before: Path, place: Path) -> Path:
    """A copy of what `prepare` made."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(before, place)
    return place
