"""Speed where people call us, against what they would call otherwise: `python -m benchmarks.calls [--quick]`.

One row for each call, with what is wanted of it. Peers that are not installed are left out with a note; flashlight-text
and pyctcdecode need an environment of their own beside ours. Writes docs/results/bench-calls.md and .json.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import torch

from benchmarks import automata, beam, constituency, dependency
from benchmarks.feature_jobs import DATA, dicts_of, rows_of, run
from benchmarks.report import OURS, RESULTS, Contest, Figures, Row, measure, missed, table, versions, write_json
from benchmarks.timing import Candidate

CRFSUITE, LIMIT = "python-crfsuite", "limit"
ITERATIONS = 30
SINGLE_SENTENCES = 100
FIRST = """
from trelliswork.cli.compiling import ANNOUNCER
from trelliswork.cli.main import run
run({arguments!r})
print(ANNOUNCER.seconds)
"""
NOTE = """
`python -m benchmarks.calls`: medians of interleaved rounds in one process, one thread unless said; long jobs once, in
processes of their own. "Times ours" says how many times as much the peer takes (a limit: how far below it we are).
"""
Calls = Iterator[Contest | Figures]


def contest(call: str, size: str, ours: Callable[[], object], peer: str, theirs: Callable[[], object], x: float) -> Any:
    return Contest(f"{call}, ms", size, [Candidate(OURS, ours), Candidate(peer, theirs)], {peer: x})


def on_dicts(quick: bool) -> Calls:
    """`sklearn.CRF` on CoNLL-2000."""
    import pycrfsuite

    from trelliswork.sklearn import CRF

    train, test = (list(rows_of(DATA / name)) for name in ("train.txt", "test.txt"))
    train = train[:500] if quick else train
    x, y = [dicts_of(each) for each in train], [[row[2] for row in each] for each in train]
    new = [dicts_of(each) for each in test]
    ours = CRF(c2=1.0, max_iterations=ITERATIONS)
    ours.fit(x[:5], y[:5])  # compiles
    began = time.process_time()
    ours.fit(x, y)
    fitted, began = time.process_time() - began, time.process_time()
    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.set_params({"c2": 1.0, "c1": 0.0, "max_iterations": ITERATIONS})
    for sentence, gold in zip(x, y, strict=True):
        trainer.append(sentence, gold)
    with tempfile.TemporaryDirectory() as folder:
        trainer.train(f"{folder}/model")
        peer_fitted, tagger = time.process_time() - began, pycrfsuite.Tagger()
        tagger.open(f"{folder}/model")
        size = "CoNLL-2000 test"
        yield contest(
            "sklearn.CRF.predict", size, lambda: ours.predict(new), CRFSUITE, lambda: [tagger.tag(s) for s in new], 1.2
        )
        some = new[:SINGLE_SENTENCES]
        yield contest(
            "sklearn.CRF.predict_single", f"{len(some)} sentences, one at a time",
            lambda: [ours.predict_single(s) for s in some], CRFSUITE, lambda: [tagger.tag(s) for s in some], 1.3,
        )  # fmt: skip
    job = "sklearn.CRF.fit on dicts, s"
    yield Figures(job, f"{ITERATIONS} iterations", {OURS: fitted, CRFSUITE: peer_fitted}, {CRFSUITE: 2.5})


def frames() -> torch.Tensor:
    """Log probabilities of 29 symbols in 371 frames, about as sharp as those of a speech recogniser."""
    scores = 3.0 * torch.randn(1, 371, 29, generator=torch.Generator().manual_seed(0))
    scores[..., 0] += 2.0
    return scores.log_softmax(-1)


def ctc_beams(quick: bool) -> Calls:
    """Prefix beam search without a language model."""
    from trelliswork.distributions import CTC

    log_probs = frames()
    for width in (10, 50, 100):
        candidates = [Candidate(OURS, lambda width=width: CTC(log_probs).beam_search(width))]  # type: ignore[misc]
        if find_spec("flashlight") is not None:
            candidates.append(Candidate("flashlight-text", flashlight(log_probs[0], width)))
        yield Contest("CTC beam search, unpruned, ms", f"371 x 29, width {width}", candidates, {"flashlight-text": 1.0})
    thresholds = {"symbol_threshold": -5.0, "beam_threshold": 10.0}  # those of pyctcdecode
    ours = Candidate(OURS, lambda: CTC(log_probs).beam_search(50, **thresholds))
    candidates = [ours, Candidate("pyctcdecode", pyctcdecode(log_probs[0]))] if find_spec("pyctcdecode") else [ours]
    yield Contest("CTC beam search, pruned, ms", "371 x 29, width 50", candidates, {LIMIT: 1.0}, {LIMIT: 10.0})


def flashlight(log_probs: torch.Tensor, width: int) -> Callable[[], object]:
    from flashlight.lib.text import decoder  # type: ignore[import-not-found]

    n, c = log_probs.shape
    options = decoder.LexiconFreeDecoderOptions(
        beam_size=width, beam_size_token=c, beam_threshold=1e9, lm_weight=0.0, sil_score=0.0, log_add=True,
        criterion_type=decoder.CriterionType.CTC,
    )  # fmt: skip
    found = decoder.LexiconFreeDecoder(options, decoder.ZeroLM(), c - 1, 0, [])
    array = log_probs.contiguous().numpy()
    return lambda: found.decode(array.ctypes.data, n, c)


def pyctcdecode(log_probs: torch.Tensor) -> Callable[[], object]:
    from pyctcdecode import build_ctcdecoder  # type: ignore[import-not-found]

    letters = ["", " ", *"abcdefghijklmnopqrstuvwxyz'"]
    decoder, array = build_ctcdecoder(letters), log_probs.numpy()
    return lambda: decoder.decode(array, beam_width=50)


def structures(quick: bool) -> Calls:
    """Trees, grammars, machines and beams: the problems of their own benchmarks."""
    peer = "torch-struct"
    trees, grammars = constituency.span_trees(32, 40, 10), constituency.grammars(4, 20, 10, 20)
    for what, found, task, size, wanted in (
        ("PCFG best derivation", grammars, "best derivation", "(4, 20, 10, 20)", 30.0),
        ("PCFG log p + gradient", grammars, "log p(words) + gradient", "(4, 20, 10, 20)", 8.0),
        ("span CKY argmax", trees, "best tree", "(32, 40, 10)", 50.0),
    ):
        yield contest(what, size, found[OURS][task], peer, found[peer][task], wanted)
    problem = dependency.Problem.of(8, 25)
    for kind in (dependency.EISNER, dependency.MATRIX_TREE):
        ours, theirs = (
            side(problem, kind)[dependency.ATTENTION] for side in (dependency.ours, dependency.torch_struct)
        )
        yield contest(f"TreeAttention with gradient, {kind}", "(8, 25)", ours, peer, theirs, 3.0)
    for c, n in ((100, 100), (20, 500)):
        calls = automata.composed(automata.emissions(n, c), automata.transitions(c))["best path"]
        size = f"lattice ({n}, {c}) ∘ bigrams"
        yield contest("best path of one lattice", size, calls[OURS], "OpenFst", calls["OpenFst"], 1.0)
    given = beam.problem(1, 30, 45)
    loop = beam.row_by_row(*given, 8)
    yield contest("beam search, one row", "(1, 30, 45, 8)", beam.ours(*given, 8), "a plain loop", loop, 1.0)


def jobs(quick: bool) -> Calls:
    """From a file to a saved model, and what it takes."""
    limit = {"max_iterations": 5} if quick else {}
    run("train", "ours", c2=1.0, max_iterations=2)  # compiles
    peer, ours = run("train", "crfsuite", c2=1.0, **limit), run("train", "ours", c2=1.0, threads=2, **limit)
    seconds = {OURS: ours["seconds"], CRFSUITE: peer["seconds"]}
    yield Figures("from a file to a saved model, s", "two threads", seconds, {CRFSUITE: 4.5})
    memory = {OURS: ours["peak"], CRFSUITE: peer["peak"]}
    yield Figures("peak memory of feature training, MB", "fed sentence by sentence", memory, {CRFSUITE: 1.0})


def first_calls(quick: bool) -> Calls:
    """Seconds of compiling with an empty cache of kernels."""
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/small.txt"
        with open(file, "w", encoding="utf-8") as out:
            for sentence in list(rows_of(DATA / "train.txt"))[:100]:
                out.write("".join(f"{' '.join(row)}\n" for row in sentence) + "\n")
        for model in ("crf", "bilstm-crf"):
            short = ["--max-iterations", "3"] if model == "crf" else ["--epochs", "1"]
            saved = f"{folder}/{model}"
            for name, arguments in (
                ("train", ["train", file, "--model", model, "--out", saved, "--quiet", *short]),
                ("predict", ["predict", saved, file, "--out", f"{folder}/tagged.txt"]),
            ):
                found = {OURS: compiling(arguments), LIMIT: 3.0}
                yield Figures("compiling at the first call, s", f"{name} of {model}", found, {LIMIT: 1.0})


def compiling(arguments: list[str]) -> float:
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-W", "ignore", "-c", FIRST.format(arguments=arguments)]
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(done.stdout.splitlines()[-1])


GROUPS = {
    on_dicts: ["pycrfsuite"], ctc_beams: [], structures: ["torch_struct", "pywrapfst"], jobs: ["pycrfsuite"],
    first_calls: [],
}  # fmt: skip


def line(row: Row) -> list[str]:
    """Call, size, ours, the peer, how many times ours that is, and what is wanted."""
    ours, (peer, wanted) = row["ms"][f"{OURS}@1"], next(iter(row["targets"].items()))
    theirs = {key: value for key, value in row["ms"].items() if not key.startswith(OURS)}
    shown = ", ".join(f"{key.removesuffix('@1')} {value:.3g}" for key, value in theirs.items()) or "not installed"
    found = row["ratios"].get(f"{peer}@1")
    return [row["task"], row["size"], f"{ours:.3g}", shown, "—" if found is None else f"{found:.1f}x", f"{wanted:g}x"]


def report(rows: list[Row], notes: list[str]) -> str:
    head = ["call", "size", "ours", "peer", "times ours", "wanted"]
    short = missed([row for row in rows if any(f"{peer}@1" in row["ratios"] for peer in row["targets"])])
    ending = ["Missed in this run:", "", *(f"- {each}" for each in short)] if short else ["All reached."]
    text = ["# Speed where people call us", "", NOTE.strip(), "", versions(), "", *table(head, list(map(line, rows)))]
    return "\n".join([*text, "", *(f"{each}\n" for each in notes), *ending]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed where people call us")
    parser.add_argument("--quick", action="store_true", help="few rounds and small jobs, nothing written")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    rows, notes = list[Row](), list[str]()
    for group, needed in GROUPS.items():
        lacking = [name for name in needed if find_spec(name) is None]
        if lacking:
            notes.append(f"Left out, as {' and '.join(lacking)} cannot be imported: {group.__doc__}")
            continue
        for each in group(quick):
            rows.append(measure(each, quick))
            print(" | ".join(line(rows[-1])), flush=True)
    print("\n".join(notes))
    if not quick:
        write_json("calls", rows)
        (RESULTS / "bench-calls.md").write_text(report(rows, notes))
        print("written: docs/results/bench-calls.md")


if __name__ == "__main__":
    main()
