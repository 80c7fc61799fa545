"""The plan for much more data than was measured, as arithmetic over the figures of `benchmarks.scale`."""

from __future__ import annotations

from typing import Any

TRAINED, ANNOTATED, SLICE = 10**10, 10**12, 10**8  # tokens
NODES, CORES = 64, 16
PROCESSES = NODES * CORES
PASSES = 100  # over the data, for L-BFGS to converge
WEIGHTS = 50_000_000  # of attributes hashed to 24 bits
NETWORK = 3 * 10**9  # bytes a second of a node: 25 Gbit/s
PRICE = 0.05  # dollars for an hour of one core
SLICE_WEIGHTS = 10_000_000  # --hash-bits 19: 524,288 attributes, nearly each with nearly each of 22 tags
BYTES = 13  # of a token with its columns in a CoNLL file
FILE = 10**7  # tokens of a file to annotate


def by_task(found: dict[str, Any], task: str) -> dict[str, Any]:
    """The row of a task."""
    return next(row for row in found["speed"] if row["task"] == task)


def rate(row: dict[str, Any], n: int = 1) -> float:
    """Tokens a second that n processes have learned from or annotated."""
    seconds = row["seconds"].get(n, row["seconds"].get(str(n)))
    return float(row["tokens"] / seconds)


def hours(seconds: float) -> str:
    """Seconds in hours, or in minutes if that is more readable.

    >>> hours(7200), hours(90)
    ('2.0 hours', '1.5 minutes')
    """
    return f"{seconds / 3600:,.1f} hours" if seconds >= 3600 else f"{seconds / 60:.1f} minutes"


def reading_rate(found: dict[str, Any]) -> float:
    """Tokens a second that are read and prepared before learning begins."""
    row = found["memory"][0]
    (few, many), spent = row["tokens"], row["reading"]
    return float((many - few) / max(spent[1] - spent[0], 1e-9))


def bytes_per_token(row: dict[str, Any]) -> float:
    """What a process takes for each further token, where the number of weights hardly grows."""
    (few, many), (low, high) = row["tokens"], row["mb"]
    return float(max(0.0, 1e6 * (high - low) / (many - few)))


def bytes_per_weight(few: dict[str, Any], many: dict[str, Any]) -> float:
    """What a process takes for each weight: two models of the same data compared."""
    return float(1e6 * (many["mb"][1] - few["mb"][1]) / max(many["weights"][1] - few["weights"][1], 1))


def slice_lines(found: dict[str, Any]) -> list[str]:
    """100 million tokens in one process."""
    *rows, many = found["memory"]
    own = bytes_per_weight(rows[-1], many)
    lines = []
    for row in rows:
        each, rest = bytes_per_token(row), (SLICE - row["tokens"][1]) / 1e6
        total = (row["mb"][1] + each * rest + own * SLICE_WEIGHTS / 1e6) / 1000
        which = f"{row['kind'].split(', ')[1]}, {row['processes']} process{'es' if row['processes'] > 1 else ''}"
        lines.append(
            f"- {which}: {row['mb'][1]} MB + {each:.0f} bytes x {rest:.0f} million tokens + {own:.0f} bytes x "
            f"{SLICE_WEIGHTS / 1e6:.0f} million weights = {total:.1f} GB"
        )
    return lines


def training_lines(found: dict[str, Any]) -> list[str]:
    """10^10 tokens of training text, by a CRF over features."""
    each = rate(by_task(found, "features"))
    work = TRAINED * PASSES / each
    share = TRAINED * PASSES / (each * PROCESSES)
    moved = PASSES * 2 * 8 * WEIGHTS * CORES / NETWORK
    read = TRAINED / reading_rate(found)
    network = rate(by_task(found, "bilstm-crf"))
    memory = 8 * WEIGHTS * 4 + 2 * 10 * 4 * WEIGHTS // PROCESSES
    return [
        f"- Text: 10^10 tokens x {BYTES} bytes = {TRAINED * BYTES / 1e9:,.0f} GB on a file system that all nodes see.",
        f"- Work: 10^10 tokens x {PASSES} passes / {each:,.0f} tokens a second = {work / 3600:,.0f} core-hours.",
        f"- Nodes: {NODES} of {CORES} cores, one process a core, {PROCESSES:,} processes with "
        f"{TRAINED / PROCESSES:,.0f} tokens each: {hours(share)} of passes.",
        f"- Exchange: a pass sends and receives the gradient and the weights once, 2 x 8 bytes x {WEIGHTS:,} weights "
        f"for each process; {CORES} processes behind {NETWORK / 1e9:.0f} GB/s, {PASSES} passes: {hours(moved)}.",
        f"- Memory of a process: weights, gradient and two copies on their way, 4 x 8 bytes x {WEIGHTS:,}, and its "
        f"part of the 20 vectors of L-BFGS: {memory / 1e9:.1f} GB, {CORES * memory / 1e9:.0f} GB a node; data in "
        "--scratch.",
        f"- Cost: ({hours(share)} + {hours(moved)} + reading) x {PROCESSES:,} cores x {PRICE} dollars: "
        f"{(share + moved + read) / 3600 * PROCESSES * PRICE:,.0f} dollars.",
        "- What breaks first: reading. Each process reads the whole text and keeps every n-th sentence: 10^10 tokens / "
        f"{reading_rate(found):,.0f} a second = {hours(read)} before the first pass, however many processes there are. "
        "Next are names: without --hash-bits every process has the table of all attributes.",
        f"- A BiLSTM-CRF learns from {network:,.0f} tokens a second and core: {TRAINED / network / 3600:,.0f} "
        "core-hours an epoch. Before that, memory breaks: each process holds all sentences of a network's data.",
    ]


def annotation_lines(found: dict[str, Any]) -> list[str]:
    """10^12 tokens of annotation."""
    each = rate(by_task(found, "annotation"))
    work = ANNOTATED / each
    return [
        f"- Shards: files of 10^7 tokens, {ANNOTATED // FILE:,} of them, {FILE * BYTES / 1e6:.0f} MB each in CoNLL "
        f"columns, {ANNOTATED * BYTES / 1e12:.0f} TB in all and the same again for the result.",
        f"- Work: 10^12 tokens / {each:,.0f} tokens a second and core = {work / 3600:,.0f} core-hours; a file takes "
        f"{hours(FILE / each)}.",
        f"- Nodes: {NODES} of {CORES} cores: {hours(work / PROCESSES)}. Each node is given its part of the files, or "
        "Ray gives them out.",
        f"- Cost: {work / 3600:,.0f} core-hours x {PRICE} dollars = {work / 3600 * PRICE:,.0f} dollars.",
        f"- What breaks first: the file system. {PROCESSES:,} processes read and write "
        f"{2 * PROCESSES * each * BYTES / 1e9:.1f} GB a second. Then the list of files: a job that is continued looks "
        f"at all {ANNOTATED // FILE:,} names. A file that takes longer than the others keeps one core busy at the end: "
        f"at most {hours(FILE / each)}.",
    ]


def plan(found: dict[str, Any]) -> list[str]:
    """The plan as lines of a page."""
    price = f"A core costs {PRICE} dollars an hour here, which is an assumption; rates are those of the table."
    return [
        "## 100 million tokens", "",
        "Memory of a process is that of its tokens, which grows as between the two sizes with few weights, and that",
        "of its weights, from models with few and many weights of the same data. With --hash-bits 19 there are at most",
        f"about {SLICE_WEIGHTS / 1e6:.0f} million weights:", "", *slice_lines(found), "",
        "## 10^10 tokens of training text", "", price, "", *training_lines(found), "",
        "## 10^12 tokens of annotation", "", *annotation_lines(found), "",
    ]  # fmt: skip
