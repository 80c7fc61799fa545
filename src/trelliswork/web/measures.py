"""Counters and histograms of a server for Prometheus, each server with a registry of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
CALLS = (1, 2, 4, 8, 16, 32, 64)
COUNTERS = {
    "worker_starts": "Workers that were started again.",
    "workers_lost": "Workers that were lost while they answered.",
    "timeouts": "Batches that were stopped because they took too long.",
    "decisions": "Decisions of people who teach that were written.",
}
GAUGES = {
    "workers_ready": "Workers that can answer.",
    "requests_running": "Requests that are being answered.",
    "calls_waiting": "Calls that no worker has taken.",
}


class Measures:
    """Metrics of a server. Labels are paths of routes and names of models, of which there are few."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, text, labels, namespace="trelliswork", registry=self._registry)

        def histogram(name: str, text: str, label: str, bounds: Sequence[float]) -> Histogram:
            return Histogram(name, text, [label], namespace="trelliswork", registry=self._registry, buckets=bounds)

        self._counters = {name: counter(name, text) for name, text in COUNTERS.items()}
        self._requests = counter("requests", "Requests by path and status.", "path", "status")
        self._durations = histogram("request_seconds", "Time to answer a request.", "path", SECONDS)
        self._batches = histogram("batch_calls", "Requests that were answered together.", "model", CALLS)
        self._inference = histogram("inference_seconds", "Time of a worker for a batch.", "model", SECONDS)
        self._gauges = {
            name: Gauge(name, text, namespace="trelliswork", registry=self._registry) for name, text in GAUGES.items()
        }

    def add(self, name: str) -> None:
        """Count an event of `COUNTERS`."""
        self._counters[name].inc()

    def request(self, path: str, status: int, seconds: float) -> None:
        """Count an answered request.

        Args:
            path: Path of the route.
            status: Status of the answer.
            seconds: Time that it took.
        """
        self._requests.labels(path, status).inc()
        self._durations.labels(path).observe(seconds)

    def batch(self, model: str, n_calls: int, seconds: float) -> None:
        """Count a batch that a worker has answered.

        Args:
            model: Name of the model.
            n_calls: Number of calls in the batch.
            seconds: Time that it took.
        """
        self._batches.labels(model).observe(n_calls)
        self._inference.labels(model).observe(seconds)

    def text(self, **now: float) -> bytes:
        """Return all metrics in the text format 0.0.4; `now` has the values of `GAUGES`."""
        for name, value in now.items():
            self._gauges[name].set(value)
        return generate_latest(self)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics without the times at which each was created."""
        for metric in self._registry.collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric
