"""Events of a newer build: a process of an older build reports that it cannot answer, and never decides without them."""

from __future__ import annotations

from uuid import uuid4

import httpx

from api.wiring.core import Core
from projections.log.statement import LogRow, WriteSet
from tests.support.feeding import event

PATCH = {"content-type": "application/json-patch+json"}


async def test_an_event_with_a_topic_of_a_newer_build_is_shown_and_not_changed(inner: Core, http: httpx.AsyncClient) -> None:
    key = await event(inner, 1, title="Final")
    of_newer = LogRow.of(
        stream=f"event:{key}",
        version=2,
        topic="event.sponsored",
        event_id=uuid4(),
        state=b'{"timestamp":"2031-01-02T12:00:00Z","sponsor":"Acme"}',
        metadata='{"actor":"system","correlation_id":"x","command_id":"y"}',
    )
    position = await inner.appender.append(WriteSet([of_newer]))
    assert (await http.get(f"/api/event/{key}")).json()["title"] == "Final"
    steps = [{"op": "replace", "path": "/title", "value": "Semifinal"}]
    answered = await http.patch(f"/api/event/{key}", json=steps, headers=PATCH)
    assert (answered.status_code, answered.headers["retry-after"]) == (503, "1")
    assert answered.json()["type"] == "/problems/unavailable"
    assert await inner.database.row("SELECT max(position) FROM events WHERE originator_id = %s", (f"event:{key}",)) == (position,)
