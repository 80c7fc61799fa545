"""Accuracy of the neural taggers and segmenters on real corpora.

    python -m benchmarks.neural_accuracy --only chunk-bilstm-glove        # train, score, remember
    python -m benchmarks.neural_accuracy                                  # what is not yet known; then the page

Each run is remembered in docs/results/neural.json; docs/results/neural.md and the second table of
docs/tutorials/choosing.md are made of all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.report import table
from trelliswork import __version__
from trelliswork.data import Choices, Sentence, WordVectors, open_conll, read_vectors
from trelliswork.models import Segmenter, Tagger, TaggerConfig
from trelliswork.models.presets import PRESETS
from trelliswork.structures.chain.schemes import spans_of
from trelliswork.training import TrainingConfig, train

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
TUTORIAL = ROOT / "docs" / "tutorials" / "choosing.md"
BEGIN, END = "<!-- figures of results/neural.md -->", "<!-- end of figures -->"
VECTORS = "embeddings_glove/glove6b_100d_top60k.txt.gz"
DEV_SHARE = 0.1

NOTE = """
# Accuracy of neural taggers and segmenters

Made by `python -m benchmarks.neural_accuracy`, one line by `--only NAME --seed SEED`. The epoch is chosen on dev, for
CoNLL-2000 the last tenth of the training sentences; the model is not trained on dev afterwards. CoNLL-2000 has the part
of speech as a feature column. Scores are per cent: F1 of spans as conlleval counts them (WNUT-17: strict), for UPOS the
accuracy of words, gold tokens. GloVe: 100 dimensions, the 60,000 most frequent words, not trained further. A segmenter
leaves out training sentences with a span over its `max_length` (16 of 8,043 for CoNLL-2000). One run each, so that a
difference of a few tenths may be chance; the times are of a core that was shared.
"""

Record = dict[str, Any]
Settings = dict[str, Any]


@dataclass(frozen=True)
class Corpus:
    """Files of a corpus; without a dev file the last tenth of the training sentences is the dev part."""

    name: str
    train: str
    dev: str
    test: str
    choices: Choices = field(default_factory=Choices)

    def read(self, data: Path) -> tuple[list[Sentence], list[Sentence], list[Sentence]]:
        """The sentences to train on, to choose by and to test on."""
        learn, test = self._sentences(data / self.train), self._sentences(data / self.test)
        if self.dev:
            return learn, self._sentences(data / self.dev), test
        n_train = len(learn) - int(len(learn) * DEV_SHARE)
        return learn[:n_train], learn[n_train:], test

    def _sentences(self, path: Path) -> list[Sentence]:
        if not path.exists():
            sys.exit(f"{path}: expected a corpus file, got none; name its folder with --data")
        return list(open_conll(path, self.choices)[1])


@dataclass(frozen=True)
class Run:
    """One line of the page: which model of `train --model` on what, the test score that is wanted, and what differs."""

    name: str
    title: str
    corpus: Corpus
    goal: float
    model: str
    vectors: bool = False
    settings: Settings = field(default_factory=dict)
    training: Settings = field(default_factory=dict)

    @property
    def network(self) -> TaggerConfig:
        """All settings of the network."""
        return TaggerConfig(**{**PRESETS[self.model].network, **self.settings})

    @property
    def learning(self) -> TrainingConfig:
        """All settings of the training, but for the seed."""
        return TrainingConfig(**{**PRESETS[self.model].learning, **self.training})


CONLL2000 = Corpus("CoNLL-2000 chunks", "conll2000/train.txt", "", "conll2000/test.txt", Choices(feature_columns=(2,)))
EWT = Corpus(
    "UD English EWT, UPOS", "ud_english_ewt/en_ewt-ud-train.conllu.gz", "ud_english_ewt/en_ewt-ud-dev.conllu",
    "ud_english_ewt/en_ewt-ud-test.conllu",
)  # fmt: skip
WNUT17 = Corpus(
    "WNUT-17 entities", "wnut17/wnut17train.conll", "wnut17/emerging.dev.conll", "wnut17/emerging.test.annotated"
)

NOISY: Settings = {"word_dim": 64, "hidden": 100, "hidden_dropout": 0.5}
RUNS = [
    Run("chunk-bilstm", "BiLSTM-CRF", CONLL2000, 94.1, "bilstm-crf"),
    Run("chunk-bilstm-glove", "BiLSTM-CRF + GloVe", CONLL2000, 94.7, "bilstm-crf", vectors=True),
    Run("chunk-grsemicrf", "grSemi-CRF", CONLL2000, 93.9, "grsemicrf"),
    Run("chunk-grsemicrf-glove", "grSemi-CRF + GloVe", CONLL2000, 94.6, "grsemicrf", vectors=True),
    Run("chunk-window-glove", "window + GloVe", CONLL2000, 94.0, "window", vectors=True),
    Run("upos-bilstm", "BiLSTM-CRF + characters", EWT, 94.6, "bilstm-crf"),
    Run("upos-bilstm-glove", "BiLSTM-CRF + characters + GloVe", EWT, 95.7, "bilstm-crf", vectors=True),
    Run(
        "entity-bilstm-glove", "BiLSTM-CRF + GloVe", WNUT17, 38.0, "bilstm-crf", True, NOISY,
        {"epochs": 12, "batch_tokens": 500},
    ),
]  # fmt: skip


def measure(run: Run, data: Path, seed: int, vectors: WordVectors | None) -> Record:
    """Train, keep the epoch that is best on dev, and score the test part."""
    learn, dev, test = run.corpus.read(data)
    kind: type[Segmenter] | type[Tagger] = Tagger
    if PRESETS[run.model].kind == "Segmenter":
        kind, longest = Segmenter, run.network.max_length
        learn = [sentence for sentence in learn if longest_span(sentence) <= longest]
    began, cpu = time.perf_counter(), time.process_time()
    model = kind.from_data(learn, run.network, vectors=vectors, seed=seed)
    result = train(model, learn, dev, replace(run.learning, seed=seed), on_epoch=_tell)
    return {
        "name": run.name,
        "seed": seed,
        "dev": 100 * float(result.best_score or 0.0),
        "test": 100 * float(model.evaluate(test)["score"]),
        "epochs": len(result.history),
        "best_epoch": result.best_epoch,
        "seconds": round(time.perf_counter() - began),
        "cpu_seconds": round(time.process_time() - cpu),
        "parameters": model.n_parameters,
        "versions": f"Trelliswork {__version__}, Python {platform.python_version()}, torch {torch.__version__}",
        "settings": _not_default(run.network),
        "training": _not_default(run.learning),
    }


def _not_default(config: TaggerConfig | TrainingConfig) -> Settings:
    """The settings that are not those of a config without any."""
    plain = type(config)().to_dict()
    return {name: value for name, value in config.to_dict().items() if value != plain[name]}


def longest_span(sentence: Sentence) -> int:
    """Tokens of the longest span of a sentence with IOB2 tags."""
    return max((last - first for first, last, _ in spans_of(sentence.tags or (), "IOB2")), default=0)


def _tell(record: Any) -> None:
    print(f"  epoch {record.epoch}: dev {100 * (record.score or 0):.2f}, {record.seconds:.0f} s", flush=True)


def remember(record: Record, path: Path) -> None:
    """Add a run to the file, in place of one of the same name and seed."""
    others = [each for each in remembered(path) if (each["name"], each["seed"]) != (record["name"], record["seed"])]
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(json.dumps([*others, record], indent=1) + "\n")
    os.replace(file.name, path)


def remembered(path: Path) -> list[Record]:
    return json.loads(path.read_text()) if path.exists() else []


def known(run: Run, records: list[Record]) -> list[Record]:
    """The runs of this name that were made with these settings."""
    wanted = (run.name, run.network, run.learning.to_dict())
    return sorted((each for each in records if _identity(each) == wanted), key=lambda each: each["seed"])


def _identity(record: Record) -> tuple[str, TaggerConfig, Settings]:
    """The name of a run and all its settings, those included that are the defaults."""
    training = TrainingConfig(**record["training"]).to_dict()
    return record["name"], TaggerConfig.from_dict(record["settings"]), training


def page(records: list[Record]) -> str:
    """docs/results/neural.md."""
    head = ["corpus", "model", "seed", "epochs", "CPU time", "parameters", "dev", "test", "goal"]
    lines, settings = [], []
    for run in RUNS:
        for record in known(run, records):
            lines.append([
                run.corpus.name, run.title, str(record["seed"]), f"{record['best_epoch']} of {record['epochs']}",
                f"{record['cpu_seconds']} s", f"{record['parameters']:,}", f"{record['dev']:.2f}",
                f"**{record['test']:.2f}**", f"{run.goal:.1f}",
            ])  # fmt: skip
        if not known(run, records):
            lines.append([run.corpus.name, run.title, *["—"] * 6, f"{run.goal:.1f}"])
        settings.append([f"`{run.name}`", f"`{command(run)}`"])
    versions = sorted({record["versions"] for run in RUNS for record in known(run, records)})
    text = [NOTE.strip(), "", *table(head, lines), "", "What to give `trelliswork train` for the same model:", ""]
    return "\n".join([*text, *table(["name", "options"], settings), "", f"One core; {'; '.join(versions)}.", ""])


def command(run: Run) -> str:
    """The options of `trelliswork train` that make this model."""
    differs = {**run.settings, **run.training}.items()
    options = [f"--model {run.model}", *(["--vectors FILE"] if run.vectors else [])]
    return " ".join([*options, *(f"--{key.replace('_', '-')} {value}" for key, value in differs)])


def with_figures(tutorial: str, records: list[Record]) -> str:
    """The tutorial with the lines of CoNLL-2000 in its second table."""
    rows = [
        [run.title, f"{record['test']:.2f}", f"{record['cpu_seconds']} s", f"{record['parameters']:,}"]
        for run in RUNS
        for record in known(run, records)[:1]
        if run.corpus is CONLL2000
    ]
    before, _, rest = tutorial.partition(BEGIN)
    after = rest.partition(END)[2]
    return "\n".join(
        [before + BEGIN, "", *table(["model", "test F1", "CPU time", "parameters"], rows), "", END + after]
    )


def with_settings(run: Run, pairs: list[str]) -> Run:
    """The run with other settings: `hidden=100`, `training.epochs=5`, values in JSON."""
    settings, training = dict(run.settings), dict(run.training)
    for pair in pairs:
        key, _, value = pair.partition("=")
        where = training if key.startswith("training.") else settings
        where[key.removeprefix("training.")] = json.loads(value)
    return replace(run, settings=settings, training=training)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.neural_accuracy", description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the corpora")
    parser.add_argument("--only", nargs="+", choices=[run.name for run in RUNS], help="these, even if known")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of neural.json and neural.md")
    parser.add_argument("--set", nargs="*", default=[], help="try other settings: hidden=100 training.epochs=5")
    parser.add_argument("--page", action="store_true", help="train nothing, only write the page")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    memory = options.results / "neural.json"
    for run in [] if options.page else RUNS:
        done = any(each["seed"] == options.seed for each in known(run, remembered(memory)))
        if run.name not in options.only if options.only else done:
            continue
        chosen = with_settings(run, options.set)
        print(run.name, command(chosen), flush=True)
        vectors = read_vectors(options.data / VECTORS) if run.vectors else None
        record = measure(chosen, options.data, options.seed, vectors)
        print(json.dumps(record), flush=True)
        remember(record, memory)
    (options.results / "neural.md").write_text(page(remembered(memory)), encoding="utf-8")
    if options.results == RESULTS:
        TUTORIAL.write_text(with_figures(TUTORIAL.read_text(encoding="utf-8"), remembered(memory)), encoding="utf-8")


if __name__ == "__main__":
    main()
