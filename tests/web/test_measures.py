"""The metrics of a server: their names, and that servers in one process count alone."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from trelliswork.web.measures import Measures

NAMES = {
    "worker_starts_total", "workers_lost_total", "timeouts_total", "decisions_total", "requests_total",
    *(f"{name}_{part}" for name in ("request_seconds", "batch_calls", "inference_seconds")
      for part in ("bucket", "sum", "count")),
    "workers_ready", "requests_running", "calls_waiting",
}  # fmt: skip


def values(measures: Measures) -> dict[tuple[str, ...], float]:
    """Return the value of each sample by its name and labels."""
    text = measures.text(workers_ready=2, requests_running=1, calls_waiting=0).decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {(sample.name, *sample.labels.values()): sample.value for sample in samples}


def test_names_labels_and_bounds_of_metrics() -> None:
    measures = Measures()
    measures.add("timeouts")
    measures.request('/a"\\\n', 200, 0.02)
    measures.batch("ner", 3, 7.0)
    found = values(measures)
    assert {name for name, *_ in found} == {f"trelliswork_{name}" for name in NAMES}
    assert found["trelliswork_timeouts_total",] == 1 and found["trelliswork_decisions_total",] == 0
    assert found["trelliswork_requests_total", '/a"\\\n', "200"] == 1
    assert [found["trelliswork_batch_calls_bucket", bound, "ner"] for bound in ("2.0", "4.0", "+Inf")] == [0, 1, 1]
    assert found["trelliswork_inference_seconds_sum", "ner"] == 7.0
    assert found["trelliswork_workers_ready",] == 2 and found["trelliswork_calls_waiting",] == 0


def test_two_servers_of_a_process_count_alone() -> None:
    first, second = Measures(), Measures()
    first.request("/docs", 200, 0.1)
    assert ("trelliswork_requests_total", "/docs", "200") in values(first)
    assert ("trelliswork_requests_total", "/docs", "200") not in values(second)
