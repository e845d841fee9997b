"""Numbers and lines, and what must never be in them."""

from __future__ import annotations

import json
import logging

import httpx
import pytest
from prometheus_client import generate_latest

from api.kernel.log import JsonFormatter, RequestLog
from domain.kernel.clock import system_clock
from tests.api.http.toy import ID, SECRET, Toy


async def test_requests_are_counted_by_route_template(toy: Toy, http: httpx.AsyncClient) -> None:
    for path in (f"/api/thing/{ID}", f"/api/thing/{ID}/", "/api/thing/x", "/api/nothing", "/api/other"):
        await http.get(path)
    await http.post(f"/api/thing/{ID}")
    text = generate_latest(toy.registry).decode()
    route = 'method="GET",route="/api/thing/{thingId}"'
    assert f'medialedger_http_requests_total{{{route},status="200",surface="media"}} 2.0' in text
    assert f'medialedger_http_requests_total{{{route},status="400",surface="media"}} 1.0' in text
    assert f'medialedger_http_request_seconds_count{{{route},surface="media"}} 3.0' in text
    assert 'method="other",route="unknown",status="404",surface="media"} 2.0' in text
    assert 'status="405"' in text
    assert ID not in text


async def test_writes_and_failures_are_logged_and_good_reads_are_not(toy: Toy, http: httpx.AsyncClient) -> None:
    await http.get("/api/thing/")
    await http.get("/api/thing/x")
    await http.post("/api/thing/", json={"title": "a"}, headers={"X-Transaction-ID": "t1"})
    toy.log.flush()
    lines = [json.loads(line) for line in toy.stream.getvalue().splitlines()]
    assert [(line["method"], line["route"], line["status"]) for line in lines] == [
        ("GET", "/api/thing/{thingId}", 400),
        ("POST", "/api/thing/", 201),
    ]
    assert lines[1]["transactionId"] == "t1"
    assert lines[1]["client"] == "admin"
    assert set(lines[1]) == {*("time", "level", "logger", "message", "transactionId", "client", "method", "route", "status", "ms")}


async def test_no_secret_reaches_a_line_or_an_answer(toy: Toy, http: httpx.AsyncClient, caplog: pytest.LogCaptureFixture) -> None:
    password = "hunter2"
    texts = []
    for answer in (
        await http.post(f"/api/thing/?password={password}", json={"title": "a", "priority": password}),
        await http.post("/api/thing/", content=f'{{"title": "a", "x": {password}'),
        await http.get(f"/api/thing/{password}"),
        await http.get(f"/api/{password}"),
        await http.put(f"/api/thing/{ID}", json={"name": password}, headers={"client": password}),
    ):
        assert answer.status_code >= 400
        texts.append(answer.text)
    toy.log.flush()
    for text in (*texts, toy.stream.getvalue(), caplog.text):
        assert password not in text
        assert SECRET not in text


async def test_lines_are_written_together(toy: Toy, http: httpx.AsyncClient) -> None:
    await http.post("/api/thing/", json={"title": "a"})
    assert toy.stream.getvalue() == ""
    toy.log.flush()
    assert toy.stream.getvalue().count("\n") == 1


def test_a_line_of_the_log_has_a_limit() -> None:
    """An error of the database, for example, repeats what it was sent."""
    try:
        raise ValueError("x" * 1_000_000 + "its end")
    except ValueError as error:
        caught = (type(error), error, error.__traceback__)
    line = JsonFormatter().format(logging.LogRecord("a", logging.ERROR, __file__, 1, "y" * 1_000_000, (), caught))
    assert len(line) < 40_000
    assert json.loads(line)["exception"].endswith("its end")


def test_the_formatter_writes_one_json_line_with_extras() -> None:
    try:
        raise ValueError("broken")
    except ValueError as error:
        caught = (type(error), error, error.__traceback__)
    record = logging.LogRecord("a.b", logging.ERROR, __file__, 1, "said %s", ("it",), caught)
    record.transactionId = "t"
    line = JsonFormatter().format(record)
    assert "\n" not in line
    fields = json.loads(line)
    assert (fields["logger"], fields["level"], fields["message"], fields["transactionId"]) == (
        "a.b",
        "ERROR",
        "said it",
        "t",
    )
    assert "ValueError: broken" in fields["exception"]


def test_calls_that_come_several_times_a_second_are_logged_when_they_fail(toy: Toy) -> None:
    """Segments of live streams, for example."""
    assert [toy.log.wants("PUT", status, routine=True) for status in (201, 204, 304, 401, 507)] == [False, False, False, True, True]
    assert toy.log.wants("PUT", 201, routine=False)
    assert RequestLog(toy.stream, clock=system_clock, reads=True).wants("PUT", 201, routine=True)
