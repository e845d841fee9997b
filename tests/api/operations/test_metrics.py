"""The metrics of several processes as one."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from pydantic_core import from_json, to_json

from api.http.metrics import RequestMetrics
from api.operations.metrics import Snapshot, exposition, of_process, snapshot, total, without_gauges


def process(requests: int, *, age: float) -> CollectorRegistry:
    registry = CollectorRegistry()
    Gauge("age_seconds", "Age", registry=registry).set(age)
    sizes = Histogram("size", "Size", buckets=(1, 10), registry=registry)
    meter = RequestMetrics(registry, prefix="http").meter("media", "GET", route="/{id}")
    reported = Counter("told", "Told", ("whom",), registry=registry)
    for number in range(requests):
        sizes.observe(number)
        meter.observe(200, 0.002)
        reported.labels(f"caller {number}").inc()
    return registry


def lines(text: bytes) -> set[str]:
    return {line for line in text.decode().splitlines() if "_created" not in line}


def sent(registry: CollectorRegistry) -> Snapshot:
    """Return the snapshot after a transfer through a channel."""
    result: Snapshot = from_json(to_json(snapshot(registry)))
    return result


def test_one_process_is_shown_as_prometheus_itself_shows_it() -> None:
    registry = process(3, age=1.5)
    assert lines(exposition(sent(registry))) == lines(generate_latest(registry))


def test_counts_are_added_up_and_a_time_is_the_longest() -> None:
    both = exposition(total([sent(process(3, age=1.5)), sent(process(12, age=0.5))]))
    assert {
        "age_seconds 1.5",
        "size_count 15.0",
        "size_sum 69.0",
        'size_bucket{le="1.0"} 4.0',
        'size_bucket{le="+Inf"} 15.0',
        'http_requests_total{method="GET",route="/{id}",status="200",surface="media"} 15.0',
        'told_total{whom="caller 0"} 2.0',
        'told_total{whom="caller 11"} 1.0',
    } <= lines(both)
    assert both.count(b"# TYPE size histogram") == 1


def test_when_a_series_began_is_not_told() -> None:
    assert b"_created" in generate_latest(process(1, age=0))
    assert b"_created" not in exposition(sent(process(1, age=0)))


def test_of_a_process_that_has_ended_the_counts_stay_and_the_gauges_go() -> None:
    text = lines(exposition(total([without_gauges(sent(process(3, age=9))), sent(process(1, age=1))])))
    assert {"age_seconds 1.0", "size_count 4.0"} <= text


def test_a_total_changes_none_of_its_parts() -> None:
    first = sent(process(2, age=1))
    before = to_json(first)
    assert total([total([first, first]), first]) != first
    assert to_json(first) == before


def test_numbers_of_things_are_added_up_and_what_there_is_for_all_is_not() -> None:
    def snapshot_of(number: float) -> Snapshot:
        registry = CollectorRegistry()
        for name in ("connections", "wait_seconds", "build_info", "partitions_free"):
            Gauge(name, name, registry=registry).set(number)
        return sent(registry)

    assert {"connections 5.0", "wait_seconds 3.0", "build_info 3.0", "partitions_free 3.0"} <= lines(
        exposition(total([snapshot_of(2), snapshot_of(3)]))
    )


def test_processes_are_told_apart_by_what_the_system_says_of_them() -> None:
    def snapshot_of(name: str, number: float) -> Snapshot:
        registry = CollectorRegistry()
        Gauge("process_open_fds", "Open", registry=registry).set(number)
        Counter("process_cpu_seconds", "CPU", registry=registry).inc(number)
        Gauge("streams", "Streams", registry=registry).set(number)
        return of_process(sent(registry), name)

    text = lines(exposition(total([snapshot_of("api 1", 2), snapshot_of("api 2", 3), without_gauges(snapshot_of("api 1", 9))])))
    assert {
        'process_open_fds{process="api 1"} 2.0',
        'process_open_fds{process="api 2"} 3.0',
        'process_cpu_seconds_total{process="api 1"} 11.0',
        "streams 5.0",
    } <= text
