"""The tags and documents of an Event."""

from __future__ import annotations

import httpx

from tests.api.asking import UNKNOWN, add, fields_of


async def test_tags_come_in_the_order_in_which_they_were_given(http: httpx.AsyncClient) -> None:
    await add(http, Tags=[{"name": "b"}, {"name": "a"}])
    shown = await add(http, Tags=[{"name": "c"}, {"name": "a"}, {"name": "b"}])
    for path in (f"/api/tag/event/{shown['id']}", f"/api/tag/event/{shown['id']}/?noCache=true"):
        tags = (await http.get(path)).json()
        assert [tag["name"] for tag in tags] == ["c", "a", "b"]
        assert all(tag.keys() == {"id", "name"} for tag in tags)


async def test_an_unknown_event_has_no_tags_and_nobody_has_documents(http: httpx.AsyncClient) -> None:
    key = (await add(http))["id"]
    for path in (
        f"/api/tag/event/{UNKNOWN}",
        f"/api/document/event/{UNKNOWN}",
        f"/api/document/event/{key}",
        f"/api/tag/event/{key}",
    ):
        answer = await http.get(path)
        assert (answer.status_code, answer.json()) == (200, [])
    for path in ("/api/tag/event/x", "/api/document/event/x"):
        assert fields_of(await http.get(path)) == ["id"]
