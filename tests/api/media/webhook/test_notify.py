"""POST /webhook/notify/{eventId}: the response, the appended event, and an Event that stays unchanged."""

from __future__ import annotations

import httpx

from api.wiring.core import Core
from tests.api.asking import UNKNOWN, add, assert_problem, last, logged, of_event
from tests.support.clock import HandClock


async def test_a_forced_notification_is_recorded_and_nothing_of_the_event_changes(
    http: httpx.AsyncClient, inner: Core, clock: HandClock
) -> None:
    key = (await add(http, Title="Final"))["id"]
    before = await http.get(f"/api/event/{key}")
    clock.forward(hours=1)
    for _ in range(2):
        notified = await http.post(f"/api/webhook/notify/{key}")
        assert (notified.status_code, notified.json()) == (200, {"eventId": key})
    after = await http.get(f"/api/event/{key}")
    assert (after.json(), after.headers["etag"]) == (before.json(), before.headers["etag"])
    assert (await http.get("/api/event/?fromModified=2031-01-02T12:30:00Z")).json()["totalCount"] == 0
    assert await of_event(inner, key) == ["registered", "notification_forced", "notification_forced"]
    assert (await logged(inner, f"event:{key}"))[1].data == {"timestamp": "2031-01-02T13:00:00Z"}
    past = (await http.get(f"/api/audit/event/{key}/state?version=2")).json()["state"]
    assert past["dateModified"] == before.json()["dateModified"]
    assert_problem(await http.post("/api/event/", json={"Id": key, "Title": "Late"}, headers={"If-Match": '"3"'}), 412)
    changed = await http.post("/api/event/", json={"Id": key, "Title": "Semi-final"}, headers={"If-Match": after.headers["etag"]})
    assert (changed.json()["dateModified"], changed.headers["etag"]) == ("2031-01-02T13:00:00.000Z", '"4"')


async def test_a_repeat_under_the_same_key_is_one_notification(http: httpx.AsyncClient, inner: Core) -> None:
    key = (await add(http))["id"]
    answers = [await http.post(f"/api/webhook/notify/{key}", headers={"Idempotency-Key": "1"}) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert await of_event(inner, key) == ["registered", "notification_forced"]


async def test_a_missing_event_is_404(http: httpx.AsyncClient, inner: Core) -> None:
    key = (await add(http))["id"]
    await http.delete(f"/api/event/{key}")
    before = await last(inner)
    for gone in (key, UNKNOWN):
        assert_problem(await http.post(f"/api/webhook/notify/{gone}"), 404)
    assert await last(inner) == before
