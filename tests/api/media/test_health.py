"""The health and the version of the service."""

from __future__ import annotations

import re
import time
from pathlib import Path
from uuid import uuid4

import httpx
import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from api.kernel.version import four_part, product_version
from api.media.health import Health
from api.wiring.core import Core
from projections.consumers.leases import MemberState, ShardLeases
from projections.kernel.database.database import Database
from tests.api.serving import serving
from tests.projections.consuming import hold
from tests.support.application import introduce
from workers.adapters.ffmpeg import Ffmpeg, find

WELL = {"api": "ok", "transcoding": "ok", "database": "ok", "consumers": "ok"}


def report_of(answer: httpx.Response) -> dict[str, str]:
    """The report within a problem: RFC 9457 lets a problem have members of its own."""
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert (answer.status_code, body["status"], body["type"]) == (503, 503, "/problems/unhealthy")
    return {name: body[name] for name in WELL}


async def test_a_healthy_service_says_so(http: httpx.AsyncClient, inner: Core) -> None:
    headers = {"API-KEY": await introduce(inner, "probe", "viewer")}
    for path in ("/api/health/", "/api/health"):
        answer = await http.get(path, headers=headers)
        assert (answer.status_code, answer.json()) == (200, WELL)
        assert answer.headers["cache-control"] == "no-store"


async def test_a_transcoder_that_does_not_run_is_503(inner: Core, database_url: str, tmp_path: Path) -> None:
    health = Health(inner.database, Ffmpeg(tmp_path / "ffmpeg"), machine="m")
    async with serving(inner, database_url, lambda _: {Health: health}) as http:
        answer = await http.get("/api/health/")
    assert report_of(answer) == WELL | {"transcoding": "the transcoder cannot be started"}
    assert (answer.headers["retry-after"], answer.headers["cache-control"]) == ("5", "no-store")
    assert str(tmp_path) not in answer.text


async def test_a_database_that_is_gone_is_503(inner: Core, database_url: str, postgres: str) -> None:
    """The caller is still cached, so the call is answered without a database."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE DATABASE short_lived")
        async with Database(make_conninfo(database_url, dbname="short_lived"), size=1) as gone:
            connection.execute("DROP DATABASE short_lived WITH (FORCE)")
            health = Health(gone, Ffmpeg(find("ffmpeg")), machine="m", seconds=0.2)
            async with serving(inner, database_url, lambda _: {Health: health}) as http:
                answer = await http.get("/api/health/")
    assert report_of(answer) == WELL | dict.fromkeys(("database", "consumers"), "the database does not answer")


async def test_consumers_that_read_the_log_instead_of_the_broker_are_named_and_the_service_works(
    http: httpx.AsyncClient, inner: Core
) -> None:
    for name in ("webhooks", "callback"):
        leases = ShardLeases(inner.database, name, shards=1, member=uuid4())
        await leases.start()
        await hold(leases, MemberState(reads_log_since=time.monotonic() - 61))
    answer = await http.get("/api/health/")
    output = "callback, webhooks: reading the log because the broker is unavailable"
    assert (answer.status_code, answer.json()) == (200, WELL | {"consumers": output})
    attention = (await http.get("/api/health/overview/")).json()["attention"]
    wanted = r"The broker has been unavailable for \d+ min( \d+ s)?: callback, webhooks read the log instead\."
    assert any(re.fullmatch(wanted, record["text"]) for record in attention)
    members = [member for record in (await http.get("/api/consumer/")).json() for member in record["members"]]
    assert [member["readsLogSeconds"] > 60 for member in members] == [True, True]
    metrics = (await http.get("/metrics")).text
    [seconds] = re.findall(r'^medialedger_consumer_reads_log_seconds\{consumer="webhooks"\} (.+)$', metrics, re.MULTILINE)
    assert float(seconds) >= 61


async def test_a_database_that_is_too_slow_is_503(inner: Core, database_url: str) -> None:
    async with Database(database_url, size=1) as busy, busy.connection():
        health = Health(busy, Ffmpeg(find("ffmpeg")), machine="m", seconds=0.05)
        async with serving(inner, database_url, lambda _: {Health: health}) as http:
            answer = await http.get("/api/health/")
    assert report_of(answer)["database"] == "the database does not answer"


async def test_the_version_has_four_parts_and_names_the_client(http: httpx.AsyncClient, inner: Core) -> None:
    headers = {"API-KEY": await introduce(inner, "probe", "viewer")}
    version = four_part(product_version())
    assert (await http.get("/api/health/version", headers=headers)).json() == {
        "client": "probe",
        "machineName": "here",
        "assemblyVersion": version,
        "fileVersion": version,
        "productVersion": version,
    }
    assert [part.isdigit() for part in version.split(".")] == [True] * 4


@pytest.mark.parametrize(
    ("version", "shown"),
    [
        ("0.1.0", "0.1.0.0"),
        ("1", "1.0.0.0"),
        ("1.2.3.4.5", "1.2.3.4"),
        ("1.2.dev3", "1.2.0.0"),
        ("2.0rc1", "2.0.0.0"),
        ("0+source", "0.0.0.0"),
        ("unknown", "0.0.0.0"),
    ],
)
def test_any_version_becomes_four_parts(version: str, shown: str) -> None:
    assert four_part(version) == shown
