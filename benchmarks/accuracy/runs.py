"""What is trained on what, and the score that it must reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

VECTORS = "embeddings_glove/glove6b_100d_top60k.txt.gz"
GLOVE = "--vectors glove6b_100d_top60k.txt.gz"
TEMPLATE = "--template benchmarks/templates/chunking.txt"
PAST = "--template benchmarks/templates/past.txt"


@dataclass(frozen=True)
class Corpus:
    """Files of a corpus in the folder of all corpora, and which score counts.

    Without a dev file the last tenth of the training sentences becomes dev.conll, the rest train.conll.
    """

    title: str
    train: str
    test: str
    dev: str = ""
    score: Literal["F1", "strict F1", "accuracy"] = "F1"


CONLL2000 = Corpus("CoNLL-2000 chunking", "conll2000/train.txt", "conll2000/test.txt")
EWT = Corpus(
    "UD English EWT, UPOS", "ud_english_ewt/en_ewt-ud-train.conllu.gz", "ud_english_ewt/en_ewt-ud-test.conllu",
    "ud_english_ewt/en_ewt-ud-dev.conllu", "accuracy",
)  # fmt: skip
WNUT17 = Corpus(
    "WNUT-17 entities", "wnut17/wnut17train.conll", "wnut17/emerging.test.annotated", "wnut17/emerging.dev.conll",
    "strict F1",
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One line of a table: what is trained, by which options of `trelliswork train`, and what it must reach."""

    name: str
    title: str
    options: str
    goal: float | None = None
    corpus: Corpus = CONLL2000
    network: bool = False  # chooses its epoch on dev, so that this part is not trained on

    def command(self, seed: int) -> str:
        if not self.options:  # no template says that a token is the first one, and nothing else about it
            return f"python -m benchmarks.accuracy --only {self.name}"
        if self.corpus.dev:
            data = f"{_file(self.corpus.train)} --dev {_file(self.corpus.dev)}"
        else:
            data = "train.conll --dev dev.conll" if self.network else "train.txt --dev dev.conll"
        return f"trelliswork train {data} {self.options}" + (f" --seed {seed}" if self.network else "")


def _file(path: str) -> str:
    return path.rpartition("/")[2]


def _network(name: str, title: str, options: str, goal: float | None, corpus: Corpus = CONLL2000) -> Run:
    return Run(name, title, options, goal, corpus, network=True)


NETWORKS = [
    _network("window", "window network", "--model window", 92.0),
    _network("window-glove", "window network + GloVe", f"--model window {GLOVE}", 94.0),
    _network("bilstm", "BiLSTM-CRF", "--model bilstm-crf", 94.1),
    _network("bilstm-glove", "BiLSTM-CRF + GloVe", f"--model bilstm-crf {GLOVE}", 94.7),
    _network("grsemicrf", "grSemi-CRF", "--model grsemicrf", 93.9),
    _network("grsemicrf-glove", "grSemi-CRF + GloVe", f"--model grsemicrf {GLOVE}", 94.6),
    _network("bilstm-grsemicrf", "BiLSTM, grSemi-CRF", "--model bilstm-grsemicrf", 93.9),
    _network("bilstm-grsemicrf-glove", "BiLSTM, grSemi-CRF + GloVe", f"--model bilstm-grsemicrf {GLOVE}", 94.6),
]
PARTS_OF_SPEECH = [
    _network("upos", "BiLSTM-CRF", "--model bilstm-crf", 94.6, EWT),
    _network("upos-glove", "BiLSTM-CRF + GloVe", f"--model bilstm-crf {GLOVE}", 95.7, EWT),
]
ENTITIES = [_network("entities", "BiLSTM-CRF + GloVe", f"--model bilstm-crf {GLOVE}", None, WNUT17)]
FEATURES = [
    Run("word-hmm", "HMM over words alone", "--model hmm --template benchmarks/templates/word.txt"),
    Run("naive-bayes", "naive Bayes", f"--model naive-bayes {TEMPLATE}"),
    Run("logistic", "logistic regression", f"--model logistic --c2 1 {TEMPLATE}"),
    Run("hmm", "HMM", f"--model hmm {TEMPLATE}"),
    Run("memm", "MEMM", f"--model memm --c2 1 {TEMPLATE}"),
    Run("crf", "CRF", f"--model crf --c2 1 {TEMPLATE}"),
    Run("crf-tutorial", "CRF, CRFsuite's own attributes", "", 93.6),
    Run("memm-past", "MEMM without lookahead", f"--model memm --c2 1 {PAST}"),
    Run("crf-past", "CRF without lookahead", f"--model crf --c2 1 {PAST}"),
    Run("crf-l1", "CRF with L1", f"--model crf --c1 1 --c2 0 {TEMPLATE}", 93.6),
    Run("perceptron", "averaged perceptron", f"--model crf --algorithm perceptron {TEMPLATE}", 93.2),
    Run("crf-default", "CRF, default template", "--model crf --c2 1", 93.6),
]
RUNS = [*NETWORKS, *PARTS_OF_SPEECH, *ENTITIES, *FEATURES]
RISING = ("hmm", "memm", "crf")  # on the same template, each must be better than the one before
