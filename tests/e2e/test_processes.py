"""`medialedger up` with two processes of the API and one of the workers: one product, whichever process answers."""

from __future__ import annotations

import itertools
import os
import re
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from threading import Event
from time import monotonic

import httpx
import pytest

from api.cli.run.limits import usable_cores
from tests.e2e.processes import Caller, alive, children, fork_server
from tests.support.product import Product, client, migrated_home, products
from tests.support.waiting import until

RATE = 2
PATCH = "application/json-patch+json"
STREAM = "/engine/dashboard/stream"
SEATS_OF_AN_ADDRESS = 40
SEATS_OF_A_CLIENT = 50
PAUSE = 0.01
"""Seconds between requests: clients that never pause take the processor from the processes that start."""
SECOND = [{"op": "replace", "path": "/title", "value": "second"}]


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with products() as started:
        home = tmp_path_factory.mktemp("processes") / "home"
        yield started.start(migrated_home(home), api_processes="2", worker_processes="1", speke_rate=str(RATE)).until_ready()


@pytest.fixture(scope="module")
def key(product: Product) -> str:
    return (product.home / "admin-api-key").read_text().strip()


@pytest.fixture
def callers(product: Product, key: str) -> Iterator[list[Caller]]:
    """Yield a connection to each process of the API."""
    with ExitStack() as stack:
        yield [stack.enter_context(closing(Caller(product.address, pid, key))) for pid in children(product, "api")]


def sample(text: str, name: str) -> float:
    """Return the sum of a metric's samples."""
    return sum(float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE))


def scraped(product: Product) -> str:
    return httpx.get(f"{product.address}/metrics", timeout=30, verify=False).text


def test_what_reads_no_log_has_no_lag(product: Product, key: str) -> None:
    def lag_by_consumer() -> dict[str, object]:
        answer = httpx.get(f"{product.address}/api/consumer/", headers={"API-KEY": key}, timeout=30, verify=False)
        return {consumer["name"]: consumer["lag"] for consumer in answer.json()}

    reads_log = {"callback", "failures", "films", "outcomes", "search", "syndication", "webhooks"}
    reads_no_log = {"controller", "deliveries", "prober", "provisioner", "pushes", "scheduler", "sealer", "sessions"}
    reads_no_log |= {"timekeeper", "windows_capture", "work"}
    until(lambda: lag_by_consumer().keys() >= reads_log | reads_no_log)
    lags = lag_by_consumer()
    assert {name for name, lag in lags.items() if lag is None} == reads_no_log, lags
    assert lags.keys() - {"provisioning"} == reads_log | reads_no_log
    assert (
        set(re.findall(r'^medialedger_consumer_lag_events{consumer="(\w+)"}', scraped(product), re.MULTILINE))
        <= lags.keys() - reads_no_log
    )


def test_each_process_tells_of_its_memory_and_files(product: Product) -> None:
    """A process that does not answer a scrape in time is reported with the values of the previous one."""
    named = ["api 1", "api 2", "supervisor", "workers 1"]

    def tells(metric: str) -> list[str]:
        return sorted(re.findall(rf'^{metric}{{process="([^"]+)"}} [1-9]', scraped(product), re.MULTILINE))

    for metric in ("process_resident_memory_bytes", "process_open_fds", "process_start_time_seconds"):
        until(partial(lambda name: tells(name) == named, metric))
    text = scraped(product)
    assert sample(text, "medialedger_build_info") == 1
    most = sample(text, re.escape('medialedger_database_pool_max{pool="main"}'))
    assert most == 3 * 8, "numbers of things are added up"


def test_a_write_through_one_process_is_seen_through_the_other(callers: list[Caller]) -> None:
    first, other = callers
    for number in range(20):
        made = first.call("POST", "/api/event/", {"title": f"first {number}"}, idempotency_key=f"k{number}")
        event = made.json["id"]
        seen = other.call("GET", f"/api/event/{event}")
        assert (made.status, seen.status, seen.json["title"]) == (200, 200, f"first {number}")
        changed = other.call("PATCH", f"/api/event/{event}", SECOND, if_match=seen.headers["etag"], content_type=PATCH)
        assert changed.status == 200
        assert first.call("GET", f"/api/event/{event}").json["title"] == "second"
        assert first.call("PATCH", f"/api/event/{event}", SECOND, if_match=seen.headers["etag"], content_type=PATCH).status == 412
        again = other.call("POST", "/api/event/", {"title": f"first {number}"}, idempotency_key=f"k{number}")
        assert (again.json["id"], again.headers["idempotency-replayed"]) == (event, "true")
        first, other = other, first


def test_a_key_made_or_revoked_through_one_process_counts_in_the_other_at_once(callers: list[Caller]) -> None:
    first, other = callers
    for number in range(20):
        made = first.call("POST", "/api/client/", {"name": f"viewer{number}", "roles": ["viewer"]})
        assert made.status == 201
        mine = {"api_key": made.json["key"]}
        assert other.call("GET", "/api/event/", **mine).status == 200
        assert first.call("DELETE", f"/api/client/viewer{number}").status in (200, 204)
        assert other.call("GET", "/api/event/", **mine).status == 401
        first, other = other, first


def test_the_rate_of_key_requests_holds_over_both_processes(callers: list[Caller]) -> None:
    """A new client has a full bucket; a document that cannot be read costs a token too."""
    began = monotonic()
    made = callers[0].call("POST", "/api/client/", {"name": "packager", "roles": ["keys"]})
    answers = [
        each.call("POST", "/packager/speke", b"nothing", api_key=made.json["key"], content_type="application/xml").status
        for _ in range(4 * RATE)
        for each in callers
    ]
    allowed = len([status for status in answers if status != 429])
    assert 4 * RATE <= allowed <= 4 * RATE + RATE * (monotonic() - began)


@pytest.mark.long
def test_each_process_has_its_share_of_the_seats_and_one_that_is_started_again_has_all_of_it(product: Product, key: str) -> None:
    """An address without a key has few seats, and so has a client."""
    pids = children(product, "api")

    def first_frame(pid: int, stack: ExitStack, key: str = key) -> bytes:
        caller = stack.enter_context(closing(Caller(product.address, pid, key)))
        return caller.first_frame(STREAM)

    with ExitStack() as stack:
        taken = [first_frame(pids[number % 2], stack, "") for number in range(SEATS_OF_AN_ADDRESS)]
        for pid in pids:
            assert b"event: full" in first_frame(pid, stack, "")
        taken += [first_frame(pids[number % 2], stack) for number in range(SEATS_OF_A_CLIENT)]
        assert all(frame.startswith(b"data: ") for frame in taken)
        for pid in pids:
            assert b"event: full" in first_frame(pid, stack)
        os.kill(pids[0], signal.SIGKILL)
        until(lambda: not alive(pids[0]) and len(children(product, "api")) == 2)
        assert b"event: full" in first_frame(pids[1], stack)
        (started,) = {*children(product, "api")} - {*pids}
        assert first_frame(started, stack).startswith(b"data: ")


def test_metrics_are_of_all_processes_and_stay_when_one_is_killed(product: Product, key: str) -> None:
    until(lambda: len(children(product, "api")) == 2)
    pids = children(product, "api")
    name = 'medialedger_http_requests_total{method="GET",route="/livez",status="200",surface="operations"}'
    before = sample(scraped(product), re.escape(name))
    for pid in (*pids, *pids, pids[0]):
        with closing(Caller(product.address, pid, key)) as caller:
            assert caller.call("GET", "/livez").status == 200
    until(lambda: sample(scraped(product), re.escape(name)) == before + 5)  # of a busy process a scrape has the last numbers
    text = scraped(product)
    assert sample(text, 'medialedger_processes{kind="workers"}') == 1
    restarts = sample(text, "medialedger_process_restarts_total")
    os.kill(pids[0], signal.SIGKILL)
    until(lambda: not alive(pids[0]) and len(children(product, "api")) == 2)
    after = scraped(product)
    assert sample(after, re.escape(name)) == before + 5
    assert sample(after, "medialedger_process_restarts_total") == restarts + 1
    warnings = [line for line in product.errors.splitlines() if f"(pid {pids[0]})" in line]
    assert len(warnings) == 1
    assert "ended: signal 9; it is restarted in" in warnings[0]


def requests(product: Product) -> float:
    return sample(scraped(product), "medialedger_http_requests_total")


def test_a_restart_one_by_one_resets_nobody(product: Product, key: str) -> None:
    until(lambda: len(children(product, "api")) == 2)
    before = {*children(product, "api"), *children(product, "workers")}
    until(lambda: requests(product) + 1 == requests(product))  # no process is late
    counted = requests(product)
    done = Event()

    def keep_alive(number: int) -> int:
        answers = 0
        with client(product, key) as http:
            while not done.wait(PAUSE):
                assert http.get("/api/event/").status_code == 200
                assert http.post("/api/event/", json={"title": f"{number} {answers}"}).status_code == 200
                answers += 2
        return answers

    def new_connections() -> int:
        answers = 0
        while not done.wait(PAUSE):
            assert httpx.get(f"{product.address}/livez", timeout=30, verify=False).status_code == 200
            answers += 1
        return answers

    with ThreadPoolExecutor() as threads:
        running = [*(threads.submit(keep_alive, number) for number in range(3)), threads.submit(new_connections)]
        try:
            product.signal(signal.SIGUSR1)
            until(lambda: "all processes were restarted" in product.errors)
        finally:
            done.set()
        answers = sum(each.result() for each in running)
    now = {*children(product, "api"), *children(product, "workers")}
    assert len(now) == 3
    assert not now & before
    scrapes = itertools.count(1)  # each is counted in the next one
    until(lambda: requests(product) == counted + answers + next(scrapes))


@pytest.mark.long
def test_a_fork_server_that_is_killed_is_started_again_with_all_processes(product: Product, key: str) -> None:
    before, server = [*children(product, "api"), *children(product, "workers")], fork_server(product)
    os.kill(server, signal.SIGKILL)
    until(lambda: not any(map(alive, before)))
    until(lambda: (len(children(product, "api")), len(children(product, "workers"))) == (2, 1))
    assert fork_server(product) != server
    for pid in children(product, "api"):
        with closing(Caller(product.address, pid, key)) as caller:
            assert caller.call("GET", "/api/event/").status == 200
    assert all(product.errors.count(f"(pid {pid}) ended: signal 9") == 1 for pid in before)


def test_a_port_that_is_shared_already_is_refused(product: Product, tmp_path: Path) -> None:
    port = product.address.rpartition(":")[2]
    with products() as started:
        second = started.start(tmp_path / "home", api_processes="2", port=port)
        assert second.ended() == 1
        assert second.errors == f"medialedger: port {port} on 127.0.0.1 is in use; stop the other program or set MEDIALEDGER_PORT\n"


def test_a_stop_answers_what_is_under_way_in_all_processes(product: Product, key: str) -> None:
    """This is the last test of this product."""
    pids = [*children(product, "api"), *children(product, "workers")]
    with ExitStack() as stack:
        streams = [stack.enter_context(closing(Caller(product.address, pid, key))) for pid in children(product, "api")]
        for each in streams:
            assert each.first_frame(STREAM).startswith(b"data: ")
        product.signal(signal.SIGTERM)
        assert product.ended() == 0
        for each in streams:
            assert each.rest().endswith(b"0\r\n\r\n")
    assert not any(map(alive, pids))
    assert product.refuses


@pytest.fixture
def stopped_home(product: Product) -> Path:
    """Return the home of the product, which has ended."""
    product.signal(signal.SIGTERM)
    assert product.ended() == 0
    return product.home


@pytest.mark.long
def test_a_supervisor_that_is_killed_leaves_no_process_and_a_second_signal_forces(stopped_home: Path) -> None:
    """A process is frozen, so it would never end without being killed."""
    with products() as started:
        killed = started.start(stopped_home, api_processes="2", worker_processes="1").until_ready()
        pids = [*children(killed, "api"), *children(killed, "workers")]
        assert len(pids) == 3
        killed.kill()
        until(lambda: not any(map(alive, pids)))
        port = killed.address.rpartition(":")[2]
        again = started.start(stopped_home, api_processes="2", port=port, shutdown_seconds="3600").until_ready()
        assert httpx.get(again.address + "/livez", verify=False).status_code == 200

        pids = children(again, "api")
        os.kill(pids[0], signal.SIGSTOP)

        def forced() -> bool:
            again.signal(signal.SIGTERM)
            return not any(map(alive, pids))

        until(forced)
        assert again.ended() == 1


def test_without_settings_up_uses_each_core_and_one_ctrl_c_ends_all(stopped_home: Path) -> None:
    cores = usable_cores()
    with products() as started:
        usual = started.start(stopped_home, processes="").until_ready()
        assert httpx.get(f"{usual.address}/readyz", verify=False).status_code == 200
        counts = [len(children(usual, kind)) for kind in ("api", "workers")]
        assert counts == ([min(cores, 8) - 1, 1] if cores > 1 else [0, 0])
        usual.signal(signal.SIGINT)
        assert usual.ended() == 0
        assert usual.refuses


def test_more_processes_than_the_database_has_connections_for_are_refused(stopped_home: Path) -> None:
    with products() as started:
        many = started.start(stopped_home, api_processes="64", worker_processes="64")
        assert many.ended() == 1
        assert (
            many.errors.splitlines()[-1]
            == "medialedger: 128 processes need up to 2064 connections; max_connections of the database is 250"
        )


def test_a_setting_that_stops_the_start_is_one_line(stopped_home: Path) -> None:
    """The first process of the API is the only one that reports it."""
    (stopped_home / "master.key").write_bytes(bytes(32))
    with products() as started:
        second = started.start(stopped_home, api_processes="2")
        assert second.ended() == 1
        assert second.errors.startswith(f"medialedger: the master key {stopped_home / 'master.key'} is not the key")
        assert second.errors.count("\n") == 1
