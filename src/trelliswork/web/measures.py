"""What the server has done, as Prometheus reads it (text format 0.0.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
CALLS = (1, 2, 4, 8, 16, 32, 64)
HELP = {
    "worker_starts": "Workers that were started again.",
    "workers_lost": "Workers that were lost while they answered.",
    "timeouts": "Batches that were stopped because they took too long.",
    "decisions": "Decisions of people who teach that were written.",
}


@dataclass
class Histogram:
    """How often a value was at most each bound."""

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)
    total: float = 0.0
    n: int = 0

    def __post_init__(self) -> None:
        self.counts = [0] * len(self.bounds)

    def add(self, value: float) -> None:
        """Count a value."""
        self.total, self.n = self.total + value, self.n + 1
        for i, bound in enumerate(self.bounds):
            if value <= bound:
                self.counts[i] += 1

    def lines(self, name: str, labels: str) -> Iterable[str]:
        """As Prometheus has it."""
        for bound, count in zip((*self.bounds, "+Inf"), (*self.counts, self.n), strict=True):
            yield f'{name}_bucket{{{labels},le="{bound}"}} {count}'
        yield f"{name}_sum{{{labels}}} {self.total:.6f}"
        yield f"{name}_count{{{labels}}} {self.n}"


class Measures:
    """Counters and histograms; the names of paths and models are ours, so that they stay few."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.requests: Counter[tuple[str, int]] = Counter()
        self.durations: dict[str, Histogram] = {}
        self.batches: dict[str, Histogram] = {}
        self.inference: dict[str, Histogram] = {}

    def add(self, name: str, n: int = 1) -> None:
        """Count something that has a line in `HELP`."""
        self.counts[name] += n

    def request(self, path: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        self.requests[path, status] += 1
        self.durations.setdefault(path, Histogram(SECONDS)).add(seconds)

    def batch(self, model: str, n_calls: int, seconds: float) -> None:
        """Count a batch that a worker has answered."""
        self.batches.setdefault(model, Histogram(CALLS)).add(n_calls)
        self.inference.setdefault(model, Histogram(SECONDS)).add(seconds)

    def text(self, gauges: Mapping[str, tuple[float, str]]) -> str:
        """Everything, with numbers of the moment."""
        lines = []
        for name, told in HELP.items():
            lines += _head(f"trelliswork_{name}_total", told, "counter")
            lines.append(f"trelliswork_{name}_total {self.counts[name]}")
        lines += _head("trelliswork_requests_total", "Requests by path and status.", "counter")
        lines += [
            f'trelliswork_requests_total{{path="{_quoted(path)}",status="{status}"}} {n}'
            for (path, status), n in self.requests.items()
        ]
        for name, told, label, found in (
            ("request_seconds", "Time to answer a request.", "path", self.durations),
            ("batch_calls", "Requests that were answered together.", "model", self.batches),
            ("inference_seconds", "Time of a worker for a batch.", "model", self.inference),
        ):
            lines += _head(f"trelliswork_{name}", told, "histogram")
            for key, histogram in found.items():
                lines += histogram.lines(f"trelliswork_{name}", f'{label}="{_quoted(key)}"')
        for name, (value, told) in gauges.items():
            lines += [*_head(f"trelliswork_{name}", told, "gauge"), f"trelliswork_{name} {value:g}"]
        return "\n".join(lines) + "\n"


def _head(name: str, told: str, kind: str) -> list[str]:
    return [f"# HELP {name} {told}", f"# TYPE {name} {kind}"]


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
