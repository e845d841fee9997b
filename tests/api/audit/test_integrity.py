"""The state of the log's integrity, the list of checkpoints, the verifier, and the kinds of aggregates."""

from __future__ import annotations

import inspect
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client import CollectorRegistry

from api.cli import verify_export
from api.wiring.core import Core
from tests.api.asking import add, assert_problem, last
from tests.api.audit.test_verify import tamper
from tests.projections.audit.sealed import SealedLog
from workers.audit.verification import LogVerifier

_AUDIT = "/api/audit"


@pytest.fixture
def log(database_url: str, tmp_path: Path) -> Iterator[SealedLog]:
    with SealedLog.opened(database_url, tmp_path) as opened:
        yield opened


async def test_the_background_verification_is_shown_with_what_does_not_fit(
    http: httpx.AsyncClient, inner: Core, database_url: str
) -> None:
    await add(http)
    head = await last(inner)
    body = (await http.get(f"{_AUDIT}/integrity")).json()
    assert (body["head"], body["tail"], body["scrub"], body["anchoredCheckpoint"], body["keys"]) == (head, None, None, None, [])
    [first, *_] = body["partitions"]
    assert (first["first"], first["events"], first["sealedAt"], first["chainHash"]) == (1, head, None, None)
    assert first["bytes"] > 0
    background = LogVerifier(inner.database, CollectorRegistry())
    await background.look()
    assert (await http.get(f"{_AUDIT}/integrity")).json()["tail"]["position"] == head
    await add(http)
    tamper(database_url, f"UPDATE events SET state = '{{}}' WHERE position = {head + 1}")
    await background.look()
    tail = (await http.get(f"{_AUDIT}/integrity")).json()["tail"]
    assert (tail["position"], tail["badPosition"]) == (head, head + 1)
    assert tail["reason"]


async def test_verification_goes_on_behind_what_does_not_fit(http: httpx.AsyncClient, inner: Core, database_url: str) -> None:
    for _ in range(6):
        await add(http)
    head = await last(inner)
    bad = [head - 3, head]
    for position in bad:
        tamper(database_url, f"UPDATE events SET state = '{{}}' WHERE position = {position}")
    result: list[int] = []
    after: int | None = 0
    while after is not None:
        body = (await http.get(f"{_AUDIT}/verify", params={"after": after})).json()
        result.append(body["firstBadPosition"])
        after = body["resumeAfter"]
    assert result == bad


async def test_checkpoints_are_listed_with_their_keys(http: httpx.AsyncClient, log: SealedLog) -> None:
    assert (await http.get(f"{_AUDIT}/checkpoints/")).json() == []
    for _ in range(3):
        await add(http)
        log.seal()
    [key] = (await http.get(f"{_AUDIT}/integrity")).json()["keys"]
    newest, older = (await http.get(f"{_AUDIT}/checkpoints/", params={"pageSize": 2})).json()
    assert newest["note"] == (await http.get(f"{_AUDIT}/checkpoint")).text
    read = verify_export.Checkpoint.read(newest["note"])
    assert (newest["commits"], newest["events"], b64decode(newest["root"])) == (read.commits, read.events, read.root)
    assert newest["signedBy"] == [key.split("+")[1]]
    assert newest["anchors"] == []
    [oldest] = (await http.get(f"{_AUDIT}/checkpoints/", params={"before": older["number"]})).json()
    assert oldest["number"] < older["number"] < newest["number"]
    assert_problem(await http.get(f"{_AUDIT}/checkpoints/", params={"before": 0}), 400)


async def test_the_verifier_is_the_programs_own_text(http: httpx.AsyncClient) -> None:
    answer = await http.get(f"{_AUDIT}/verifier")
    assert answer.text == inspect.getsource(verify_export)
    assert answer.headers["content-disposition"] == 'attachment; filename="verify.py"'


async def test_kinds_have_the_types_of_their_events(http: httpx.AsyncClient) -> None:
    await add(http)
    kinds = {record["aggregate"]: record["types"] for record in (await http.get(f"{_AUDIT}/kinds")).json()}
    assert {"event.registered", "event.state_changed", "event.redacted"} <= set(kinds["event"])
    for entry in (await http.get(f"{_AUDIT}/events/", params={"pageSize": 1000})).json()["results"]:
        assert entry["type"] in kinds[entry["aggregate"]]
