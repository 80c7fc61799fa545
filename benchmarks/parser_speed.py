"""Parsing from a file of trees to a file of trees, ours and the peers by turns: sentences a second of one core.

    python -m benchmarks.parser_speed --model transition=FOLDER --peer udpipe=PYTHON --peer spacy=PYTHON

A peer is given by the Python of its own environment, or by TRELLISWORK_PEER_UDPIPE and so on; one that is not given,
or not installed there, is left out with a note. Its model is trained for a minute, as speed does not depend on how
long, and kept in --work. Our models are folders that `trelliswork train` has made. Times are processor seconds of
processes of their own that have the model in memory, so a machine that others use hits all alike; every round has all
of them in a new order. Rows of contests that are not run stay as they were. Writes docs/results/parser-speed.md and
.json.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.accuracy.measure import ROOT
from benchmarks.report import RESULTS, table, versions
from trelliswork.data import atomic_write
from trelliswork.data.brackets import bracket_text, read_brackets, tree_of

PEERS = Path(__file__).parent / "peers"
STORE = RESULTS / "parser-speed.json"
Row = dict[str, Any]


@dataclass(frozen=True)
class Bank:
    """A treebank in the folder of all data."""

    title: str
    train: str
    test: str
    suffix: str


EWT = Bank(
    "UD English EWT test", "ud_english_ewt/en_ewt-ud-train.conllu.gz", "ud_english_ewt/en_ewt-ud-test.conllu", ".conllu"
)
MASC = Bank("MASC test, no traces and functions", "constituency_masc/train.mrg", "constituency_masc/test.mrg", ".mrg")


@dataclass(frozen=True)
class Peer:
    """A parser of another project: the script that runs it, and how many times as fast ours should be."""

    name: str
    about: str
    script: str
    wanted: float


@dataclass(frozen=True)
class Contest:
    """One of our parsers against others."""

    name: str
    about: str
    peers: tuple[Peer, ...]
    ours: str = "our_parser.py"
    bank: Bank = EWT


CONTESTS = (
    Contest("transition", "greedy, BiLSTM 2 x 150 over words, characters and GloVe, with UPOS, XPOS and FEATS", (
        Peer("udpipe", "UDPipe 1: parser alone, tags are read from the file", "udpipe_parser.py", 1.0),
        Peer("spacy", "spaCy 3: parser alone, HashEmbedCNN of width 96 and depth 4", "spacy_parser.py", 1.0),
    )),
    Contest("biaffine", "BiLSTM 2 x 300 over words and characters, arcs 300, labels 100, no tags; the best tree", (
        Peer("supar", "supar 1.1: the same sizes; greedy heads, MST if they are no tree", "supar_parser.py", 4.0),
    )),
    Contest("biaffine-training", "the same, one pass: exact likelihood of trees, batches of 5,000 tokens", (
        Peer("supar", "supar 1.1: the same sizes and batches; losses of single heads", "supar_training.py", 2.0),
    ), ours="our_training.py"),
    Contest("span-cky", "BiLSTM 2 x 200 over words and characters, spans 250, with tags; the highest expected F1", (
        Peer("supar", "supar 1.1, CRF: the same sizes, no tags; minimum risk", "supar_constituency.py", 4.0),
    ), bank=MASC),
)  # fmt: skip


@dataclass(frozen=True)
class Place:
    """Where things are: the data, what is kept between runs, and the Python of each peer."""

    data: Path
    work: Path
    pythons: Mapping[str, str]

    def file(self, bank: Bank, part: str) -> Path:
        """A file of a treebank that every parser can read: unpacked, one tree a line, without traces and functions."""
        source, target = self.data / getattr(bank, part), self.work / f"{part}{bank.suffix}"
        if not target.exists():
            if bank.suffix == ".mrg":
                trees = [tree_of(each.words, each.tags or (), each.brackets or ()) for each in read_brackets(source)]
                target.write_text("".join(bracket_text(tree) + "\n" for tree in trees), encoding="utf-8")
            else:
                packed = source.read_bytes()
                target.write_bytes(gzip.decompress(packed) if source.suffix == ".gz" else packed)
        return target

    def python_of(self, peer: Peer) -> str | None:
        return self.pythons.get(peer.name) or os.environ.get(f"TRELLISWORK_PEER_{peer.name.upper()}")


@contextmanager
def served(python: str, script: str, model: Path, place: Place, bank: Bank) -> Iterator[subprocess.Popen[str]]:
    """A process that parses the test file whenever it gets a line."""
    out = place.work / f"{script}{bank.suffix}"
    command = [python, str(PEERS / script), "parse", str(model), str(place.file(bank, "test")), str(out)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=one_thread()) as found:
        assert found.stdout is not None and found.stdin is not None
        if found.stdout.readline().strip() != "ready":
            sys.exit(f"{' '.join(command)}: expected a parser that is ready, got an error, which stands above")
        yield found
        found.stdin.close()


def one_thread() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}


def seconds(process: subprocess.Popen[str]) -> float:
    """How long it takes once."""
    assert process.stdout is not None and process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def trained(peer: Peer, python: str, place: Place, bank: Bank) -> Path | None:
    """The model of a peer, trained now if there is none; nothing if the peer is not installed."""
    model = place.work / f"{peer.name}{bank.suffix}.model"
    if not model.exists():
        command = [python, str(PEERS / peer.script), "train", str(place.file(bank, "train")), str(model)]
        try:
            subprocess.run(command, check=True, env=one_thread(), capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            told = getattr(error, "stderr", None) or str(error).encode()
            print(f"{peer.name} is left out: {told.decode(errors='replace').strip().splitlines()[-1]}", flush=True)
            return None
    return model


def measure(contest: Contest, model: Path, place: Place, rounds: int) -> Row:
    """Medians of interleaved rounds, and of the ratios within them."""
    with ExitStack() as stack:
        runs = {"ours": stack.enter_context(served(sys.executable, contest.ours, model, place, contest.bank))}
        for peer in contest.peers:
            python = place.python_of(peer)
            if python is None:
                print(f"{peer.name} is left out: no Python given (--peer {peer.name}=PYTHON)", flush=True)
            elif (theirs := trained(peer, python, place, contest.bank)) is not None:
                runs[peer.name] = stack.enter_context(served(python, peer.script, theirs, place, contest.bank))
        found: dict[str, list[float]] = {name: [] for name in runs}
        for turn in range(rounds):
            for name in random.Random(turn).sample(list(runs), len(runs)):
                found[name].append(seconds(runs[name]))
    between = "\n" if contest.bank.suffix == ".mrg" else "\n\n"
    n = place.file(contest.bank, "test").read_text(encoding="utf-8").count(between)
    rates = {name: n / statistics.median(each) for name, each in found.items()}
    ratios = {
        name: statistics.median(theirs / own for theirs, own in zip(each, found["ours"], strict=True))
        for name, each in found.items()
    }
    return {"contest": contest.name, "sentences": n, "rounds": rounds, "sentences_per_second": rates, "ratios": ratios}


def lines_of(contest: Contest, row: Row) -> list[list[str]]:
    """Ours first, then each peer with how many times as fast ours is."""
    rates, ratios = row["sentences_per_second"], row["ratios"]
    lines = [[f"**{contest.name}**", contest.about, f"{rates['ours']:,.0f}", "", ""]]
    for peer in contest.peers:
        if peer.name in rates:
            shown = [f"{rates[peer.name]:,.0f}", f"{ratios[peer.name]:.2f}", f"{peer.wanted:g}"]
            lines.append([peer.name, peer.about, *shown])
    return lines


def page(rows: Sequence[Row]) -> str:
    by_name = {row["contest"]: row for row in rows}
    lines = [
        "# Speed of parsers",
        "",
        "Made by `python -m benchmarks.parser_speed`: from a file to a file, one thread, models in memory. Processor",
        "time, medians of interleaved rounds; ratios are medians within rounds and say how many times as fast ours is.",
        "",
        versions(),
    ]
    for contest in CONTESTS:
        if contest.name in by_name:
            row = by_name[contest.name]
            head = ["parser", "what it is", "sentences/s", "ours is faster by", "wanted"]
            what = f"{contest.bank.title}, {row['sentences']:,} sentences; {row['rounds']} rounds."
            note = [row["note"]] if "note" in row else []
            lines += ["", f"## {contest.name}", "", what, *note, "", *table(head, lines_of(contest, row))]
    return "\n".join(lines) + "\n"


def keep(row: Row) -> None:
    """Into both files, in place of an earlier row of the same contest."""
    before = json.loads(STORE.read_text(encoding="utf-8")) if STORE.exists() else []
    found = {each["contest"]: each for each in before} | {row["contest"]: row}
    with atomic_write(STORE) as file:
        file.write(json.dumps(list(found.values()), indent=1) + "\n")
    (RESULTS / "parser-speed.md").write_text(page(list(found.values())), encoding="utf-8")


def named(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if not value:
        raise argparse.ArgumentTypeError(f"expected NAME=PATH, got {text!r}")
    return name, value


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parser_speed", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--model", type=named, action="append", default=[], metavar="CONTEST=FOLDER")
    parser.add_argument("--peer", type=named, action="append", default=[], metavar="NAME=PYTHON")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the treebanks")
    parser.add_argument("--work", type=Path, help="folder for the models of peers, kept for the next run")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    models, names = dict(options.model), [contest.name for contest in CONTESTS]
    if not models or models.keys() - set(names):
        parser.error(f"give the folder of a trained parser for one of {', '.join(names)}: --model CONTEST=FOLDER")
    with tempfile.TemporaryDirectory() as folder:
        work = options.work or Path(folder)
        work.mkdir(parents=True, exist_ok=True)
        place = Place(options.data, work, dict(options.peer))
        for contest in CONTESTS:
            if contest.name in models:
                row = measure(contest, Path(models[contest.name]), place, options.rounds)
                print("\n".join(" | ".join(line) for line in lines_of(contest, row)), flush=True)
                keep(row)


if __name__ == "__main__":
    main()
