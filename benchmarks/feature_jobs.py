"""Whole jobs of the feature CRF and of CRFsuite, each in a process of its own: `python -m benchmarks.feature_jobs`.

    python -m benchmarks.feature_jobs train|memory|tag ours|crfsuite '{"c2": 1.0}'

prints what was measured as JSON: seconds of the process on one core (`cpu`) and by the clock (`seconds`), the largest
memory in MB, and what was learned. Both sides read the same file, make the same attributes and write their own model.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[2] / "shared" / "data" / "conll2000"
SINGLE = ["w[-2]", "w[-1]", "w[0]", "w[1]", "w[2]", "pos[-2]", "pos[-1]", "pos[0]", "pos[1]", "pos[2]"]
JOINED = [
    "w[-1]|w[0]", "w[0]|w[1]", "pos[-2]|pos[-1]", "pos[-1]|pos[0]", "pos[0]|pos[1]", "pos[1]|pos[2]",
    "pos[-2]|pos[-1]|pos[0]", "pos[-1]|pos[0]|pos[1]", "pos[0]|pos[1]|pos[2]",
]  # fmt: skip
Row = list[str]


def run(job: str, side: str, **settings: Any) -> dict[str, Any]:
    """A job in a new process."""
    command = [sys.executable, "-m", "benchmarks.feature_jobs", job, side, json.dumps(settings)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def template(name: str) -> str:
    """w[-1]|w[0] as a template of ours."""
    holes = name.replace("pos[", "%x[").replace("w[", "%x[").split("|")
    columns = [1 if part.startswith("pos") else 0 for part in name.split("|")]
    return f"U{name}=" + "|".join(hole.replace("]", f",{c}]") for hole, c in zip(holes, columns, strict=True))


# CRFsuite, as its users write it


def rows_of(path: Path) -> Iterator[list[Row]]:
    sentence: list[Row] = []
    with path.open(encoding="utf-8") as file:
        for line in file:
            if columns := line.split():
                sentence.append(columns)
            elif sentence:
                yield sentence
                sentence = []
    if sentence:
        yield sentence


def _parts(name: str) -> list[tuple[int, int]]:
    pieces = [part[:-1].split("[") for part in name.split("|")]
    return [(0 if column == "w" else 1, int(shift)) for column, shift in pieces]


PARTS = [(name, _parts(name)) for name in (*SINGLE, *JOINED)]


def names_of(sentence: list[Row]) -> list[list[str]]:
    """The names of the attributes of each token."""
    n, out = len(sentence), []
    for t in range(n):
        names = []
        for name, parts in PARTS:
            if all(0 <= t + shift < n for _, shift in parts):
                names.append(f"{name}:{'|'.join([sentence[t + shift][column] for column, shift in parts])}")
        out.append(names)
    return out


def dicts_of(sentence: list[Row]) -> list[dict[str, str]]:
    """The same as sklearn-crfsuite takes it."""
    return [dict(name.split(":", 1) for name in names) for names in names_of(sentence)]  # type: ignore[misc]


def _crfsuite_trainer(settings: dict[str, Any]) -> Any:
    import pycrfsuite

    settings = dict(settings)
    trainer = pycrfsuite.Trainer(algorithm=settings.pop("algorithm", "lbfgs"), verbose=False)
    trainer.set_params(settings)
    return trainer


def crfsuite_train(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    out = settings.pop("out", f"{folder}/model")
    trainer = _crfsuite_trainer(settings)
    for sentence in rows_of(DATA / "train.txt"):
        trainer.append(names_of(sentence), [columns[2] for columns in sentence])
    trainer.train(out)
    log = trainer.logparser.iterations
    evaluations = sum(max(each.get("linesearch_trials", 1), 1) for each in log)
    return {
        "iterations": len(log), "loss": log[-1]["loss"], "learning": sum(each["time"] for each in log),
        "evaluations": evaluations, "active": log[-1].get("active_features"), "bytes": Path(out).stat().st_size,
    }  # fmt: skip


def crfsuite_memory(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """Attributes as dicts in a list, as sklearn-crfsuite takes them; the rest as `crfsuite_train`."""
    trainer = _crfsuite_trainer(settings)
    sentences = list(rows_of(DATA / "train.txt"))
    attributes, tags = [dicts_of(each) for each in sentences], [[row[2] for row in each] for each in sentences]
    for sentence, gold in zip(attributes, tags, strict=True):
        trainer.append(sentence, gold)
    trainer.train(f"{folder}/model")
    return {}


def crfsuite_tag(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    began = time.perf_counter()
    tagger.open(settings["model"])
    loading = time.perf_counter() - began

    def pass_over() -> None:
        with open(settings["out"], "w", encoding="utf-8") as file:
            for sentence in rows_of(DATA / "test.txt"):
                for (word, pos, *_), tag in zip(sentence, tagger.tag(dicts_of(sentence)), strict=True):
                    file.write(f"{word} {pos} {tag}\n")
                file.write("\n")

    return {"loading": loading, "pass": _least(pass_over)}


# Ours


def ours_train(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    from trelliswork.data import Choices, open_conll
    from trelliswork.data.attributes import Templates
    from trelliswork.models import FeatureTagger, LearningConfig
    from trelliswork.models.taggers.features.learners.base import Progress
    from trelliswork.runtime.threads import use_threads

    out = settings.pop("out", f"{folder}/model")
    use_threads(settings.pop("threads", 1))
    templates = Templates.parse([*map(template, (*SINGLE, *JOINED)), "B"], skip_outside=True)
    sentences = list(open_conll(DATA / "train.txt", Choices(feature_columns=(2,)))[1])
    found: dict[str, Any] = {}

    def note(progress: Progress, tagger: FeatureTagger) -> bool:
        found.update(iterations=progress.iteration, loss=progress.loss)
        return False

    tagger = FeatureTagger.fit(sentences, LearningConfig(**settings), templates=templates, on_progress=note)
    tagger.save(out)
    size = sum(path.stat().st_size for path in Path(out).iterdir() if path.suffix == ".safetensors")
    return {**found, "active": tagger.n_parameters, "bytes": size}


def ours_tag(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    import torch

    from benchmarks.tagged_file import tag_file
    from trelliswork.models import load_tagger

    torch.set_num_threads(1)
    load_tagger(settings["model"])
    began = time.perf_counter()
    tagger = load_tagger(settings["model"])
    loading = time.perf_counter() - began

    def pass_over() -> None:
        tag_file(tagger, DATA / "test.txt", settings["out"])

    return {"loading": loading, "pass": _least(pass_over)}


def _least(call: Any, times: int = 5) -> float:
    """Seconds of the fastest of some calls, after one that warms up."""
    call()
    seconds = []
    for _ in range(times):
        began = time.process_time()
        call()
        seconds.append(time.process_time() - began)
    return min(seconds)


def main() -> None:
    job, side, settings = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        found = globals()[f"{side}_{job}"](settings, folder)
    found |= {"seconds": time.perf_counter() - began, "cpu": time.process_time()}
    print(json.dumps({**found, "peak": _peak()}))


def _peak() -> float:
    """The largest memory of this process in MB; `getrusage` would count what it was before it became this program."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return next(int(line.split()[1]) / 1024 for line in status.read_text().splitlines() if line.startswith("VmHWM"))


if __name__ == "__main__":
    main()
