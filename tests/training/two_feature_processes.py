"""What each process runs in test_feature_processes.py: `python -m tests.training.two_feature_processes FOLDER`.

Each scenario is also run by the test in one process; losses, weights and names are left in FOLDER.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

from trelliswork.cli.main import run
from trelliswork.data import Sentence
from trelliswork.data.attributes import Templates
from trelliswork.data.corpus import as_sentences, builtin_corpus
from trelliswork.data.spilled import keep_sentences
from trelliswork.errors import TrellisworkError
from trelliswork.models import FeatureTagger, LearningConfig
from trelliswork.models.taggers.features import recipe
from trelliswork.models.taggers.features.corpus import TaggedData
from trelliswork.models.taggers.features.learners.base import Progress
from trelliswork.models.taggers.features.learners.likelihood import Likelihood
from trelliswork.runtime.scratch import Scratch
from trelliswork.training.process_arrays import ManyProcesses
from trelliswork.training.processes import join
from trelliswork.training.together import OneProcess, Where

BUILT_IN = as_sentences(builtin_corpus(sizes=(22, 6, 1))["train"])
ODD = Sentence(("Zurich", "zzz"), ("B-ODD", "O"), tuple(("X", "X") for _ in BUILT_IN[0].features))
TRAIN = [*BUILT_IN[:9], ODD, *BUILT_IN[9:]]  # 23 sentences: one process has more; one alone has the label B-ODD
TEMPLATES = Templates.parse(["U1:%x[0,0]", "U2:%x[-1,0]/%x[0,0]", "U3:%x[0,0.suffix2]", "B", "B1:%x[0,0.short]"])
UNIGRAMS = Templates.parse(["U1:%x[0,0]", "U2:%x[-1,0]/%x[0,0]", "U3:%x[0,0.suffix2]", "B"])

SCENARIOS: dict[str, tuple[list[Sentence], LearningConfig, Templates]] = {
    "lbfgs": (TRAIN, LearningConfig(c2=0.1), UNIGRAMS),
    "sgd": (TRAIN, LearningConfig("sgd", c2=0.1, batch_sentences=6, max_iterations=8), UNIGRAMS),
    "pairs": (TRAIN, LearningConfig(c1=0.05, c2=0.1, min_count=2, cutoff=3, max_iterations=12), TEMPLATES),
    "pairs-sgd": (TRAIN, LearningConfig("sgd", c2=0.1, batch_sentences=5, max_iterations=3), TEMPLATES),
    "empty": (TRAIN[:1], LearningConfig(c2=0.1, max_iterations=5), UNIGRAMS),
    "empty-sgd": (TRAIN[:1], LearningConfig("sgd", c2=0.1, batch_sentences=4, max_iterations=2), UNIGRAMS),
    "second": (TRAIN, LearningConfig(c2=0.1, order=2, max_iterations=5), UNIGRAMS),
    "logistic": (TRAIN, LearningConfig(c2=0.1, model="logistic", max_iterations=5), UNIGRAMS),
    "hashed": (TRAIN, LearningConfig(c2=0.1, hash_bits=10, max_iterations=5), UNIGRAMS),
}


def trained(name: str, together: OneProcess, scratch: Path | None = None) -> dict[str, Any]:
    """The loss after each iteration, and the weights and names in the end."""
    sentences, config, templates = SCENARIOS[name]
    losses, kept = list[float](), Scratch(scratch)

    def told(progress: Progress, tagger: FeatureTagger) -> bool:
        losses.append(progress.loss)
        return False

    data = TaggedData(keep_sentences(sentences, kept), where=Where(together, kept))
    tagger = FeatureTagger.fit(data, config, templates=templates, on_progress=told)
    names = [] if tagger.hashed else list(tagger.names)
    return {"losses": losses, "weights": tagger.crf.weights.tolist(), "names": names, "labels": tagger.crf.labels}


def refused(together: OneProcess) -> list[str]:
    """What is said of settings that several processes cannot learn, and of a failure in one of them."""
    data, found, own = TaggedData(TRAIN, where=Where(together)), list[str](), Likelihood.__call__
    configs = [LearningConfig("perceptron"), LearningConfig(model="hmm"), LearningConfig(induce=3), LearningConfig()]

    def failing(self: Likelihood, weights: Any) -> Any:
        if together.rank == 1:
            raise TrellisworkError("out of luck")
        return own(self, weights)

    Likelihood.__call__ = failing  # type: ignore[method-assign]
    for config in configs:
        try:
            FeatureTagger.fit(data, config, templates=UNIGRAMS)
        except TrellisworkError as error:
            found.append(str(error))
    Likelihood.__call__ = own  # type: ignore[method-assign]
    return found


def interrupted(folder: Path, rank: int) -> int:
    """The exit code of a run of the command line that Ctrl-C in the second process ends after its third iteration."""
    own = recipe._Report.step

    def pressed(self: Any, step: Progress, tagger: FeatureTagger) -> bool:
        if rank == 1 and step.iteration == 3:
            signal.raise_signal(signal.SIGINT)
        return own(self, step, tagger)

    recipe._Report.step = pressed  # type: ignore[method-assign]
    files = [str(folder / "train.conll"), "--dev", str(folder / "dev.conll")]
    try:
        return run(["train", *files, "--model", "crf", "--feature-columns", "none", "--out", str(folder / "model")])
    finally:
        recipe._Report.step = own  # type: ignore[method-assign]


def main(folder: Path) -> None:
    together = ManyProcesses(join())
    found: dict[str, Any] = {name: trained(name, together) for name in SCENARIOS}
    found["scratch"] = trained("lbfgs", together, folder / "scratch")
    apart = join()
    apart._memory.is_possible = False  # as on two machines
    found["apart"] = trained("lbfgs", ManyProcesses(apart))
    found["shares memory"] = together._processes._memory.memory is not None
    found["refused"] = refused(together)
    found["interrupted"] = interrupted(folder, together.rank)
    (folder / f"{together.rank}.json").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
