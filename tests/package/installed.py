"""What `pip install trelliswork` alone can do; run it with the Python of an environment that has the wheel.

    venv/bin/python tests/package/installed.py

It checks files, trains a network and a feature model, predicts, evaluates, explains and draws, in a folder of its own,
with the installed package and command. The release workflow runs it before anything is published.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import torch

import trelliswork as tw
from trelliswork.data.corpus import write_corpus

ROOT = Path(__file__).parents[2]
EXTRAS = (
    "sklearn", "optuna", "onnx", "starlette", "uvicorn", "prometheus_client", "transformers", "tensorboard", "ray",
    "jaxtyping",
)  # fmt: skip
COMMANDS = (  # a command, and what it prints
    ("--version", tw.__version__),
    ("check train.conll dev.conll", "sentences in both"),
    ("train train.conll --dev dev.conll --epochs 2 --hidden 16 --word-dim 8 --out network", "model: network"),
    ("train train.conll --dev dev.conll --model crf --max-iterations 10 --out features", "model: features"),
    ("predict network test.conll --confidence --out answers.conll", ""),
    ("predict features test.conll --format jsonl --out answers.jsonl", ""),
    ("evaluate network test.conll --html report.html", "token accuracy"),
    ("explain features test.conll --html votes.html", "written: votes.html"),
    ("tune train.conll --dev dev.conll --trials 1 --out search", 'pip install "trelliswork[tune]"'),
    ("serve network", 'pip install "trelliswork[web]"'),
    ("export network --onnx graph", 'pip install "trelliswork[onnx]"'),
)
WRITTEN = ("answers.conll", "answers.jsonl", "report.html", "votes.html", "answer.svg", "chain.svg")


def main() -> None:
    installed = Path(tw.__file__).parent
    assert ROOT / "src" not in installed.parents, f"this is the source tree, not the wheel: {installed}"
    assert (installed / "py.typed").is_file() and find_spec("tests") is None and find_spec("benchmarks") is None
    present = [name for name in EXTRAS if find_spec(name)]
    print(
        f"Python {sys.version.split()[0]}, torch {torch.__version__}, trelliswork {tw.__version__}; extras: {present}"
    )
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(tw.builtin_corpus(sizes=(60, 20, 20)), folder)
        for line, wanted in COMMANDS:
            run(line, wanted, Path(folder), refuses="pip install" in wanted and not present)
        draw(Path(folder))
        assert all((Path(folder) / name).stat().st_size for name in WRITTEN)
    print("all is well")


def run(line: str, wanted: str, folder: Path, refuses: bool) -> None:
    """One command; one whose extra is missing ends with status 2 and the line to type."""
    if "pip install" in wanted and not refuses:
        return
    command = [sys.executable, "-m", "trelliswork", *line.split()]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1200)
    assert done.returncode == (2 if refuses else 0), f"{line}: status {done.returncode}\n{done.stderr}"
    assert wanted in done.stdout + done.stderr, f"{line}: expected {wanted!r}\n{done.stdout}{done.stderr}"
    print(f"  trelliswork {line}")


def draw(folder: Path) -> None:
    """An answer of a model that was trained, and a distribution of tensors."""
    (answer,) = tw.load(folder / "features").predict([next(tw.read_conll(folder / "test.conll"))])
    answer.draw().save(folder / "answer.svg")
    chain = tw.LinearChain(torch.randn(1, 4, 3), torch.randn(3, 3))
    assert torch.allclose(chain.marginals.sum(-1), torch.ones(1, 4))
    tw.draw.trellis(chain.marginals[0], ["a", "b", "c", "d"], ["O", "B", "I"]).save(folder / "chain.svg")


if __name__ == "__main__":
    main()
