"""POST /asset/caption/: forms and JSON, repeats, what is refused, and how captions are listed and deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from api.wiring.core import Core
from projections.asset.queries import StoredCaptionTexts
from tests.api.asking import UNKNOWN, add, fields_of, last, logged, topics
from tests.api.media.asset.assets_given import film, image

SRT = b"1\n00:00:01,000 --> 00:00:02,000\nHallo\n"
FACTS = {"language": "de", "kind": "captions", "name": "Deutsch"}


async def sent(http: httpx.AsyncClient, event: str, *, headers: dict[str, str] | None = None, **facts: str) -> httpx.Response:
    form = {"eventId": event, **FACTS, **facts}
    return await http.post("/api/asset/caption/", data=form, files={"file": ("a.srt", SRT)}, headers=headers)


async def test_a_file_of_a_form_is_kept_for_its_job(http: httpx.AsyncClient, inner: Core, media_root: Path) -> None:
    event = await film(http, media_root)
    before = await last(inner)
    answer = await sent(http, event)
    shown = answer.json()
    assert (answer.status_code, shown) == (
        200,
        {
            "id": shown["id"],
            "eventId": event,
            "name": "Deutsch",
            "path": f"{event}/captions/deutsch.de.captions.vtt",
            "extension": ".vtt",
            "jobId": shown["jobId"],
            "contentId": event,
            "state": 0,
            "stateString": "GENERATING",
            "type": 4,
            "typeString": "CAPTION",
            "language": "de",
            "kind": "captions",
            "dateCreated": "2031-01-02T12:00:00.000Z",
            "dateModified": "2031-01-02T12:00:00.000Z",
            "url": None,
        },
    )
    assert await topics(inner, f"asset:{shown['id']}") == ["asset.caption_requested"]
    accepted, _ = [event for event in await logged(inner) if event.position > before]
    text = UUID(accepted.data["submission"]["parameters"]["sent"])
    assert await StoredCaptionTexts(inner.database).read(text) == SRT
    got = await http.get(f"/api/asset/{shown['id']}/")
    assert (got.status_code, got.json()) == (200, shown)


async def test_a_path_or_an_address_goes_to_the_job(http: httpx.AsyncClient, inner: Core, media_root: Path) -> None:
    event = await film(http, media_root)
    for name, value in (("file", "in/a.srt"), ("url", "https://a.example/a.srt")):
        answer = await http.post("/api/asset/caption/", json={"eventId": event, **FACTS, "name": name, name: value})
        assert answer.status_code == 200, answer.text
        [accepted] = [event for event in await logged(inner) if event.topic == "job.accepted"][-1:]
        assert accepted.data["submission"]["parameters"][name] == value


async def test_a_repeat_with_another_boundary_is_a_repeat(http: httpx.AsyncClient, inner: Core, media_root: Path) -> None:
    event = await film(http, media_root)
    first = await sent(http, event, headers={"Idempotency-Key": "k"})
    before = await last(inner)
    again = await sent(http, event, headers={"Idempotency-Key": "k"})
    assert (again.status_code, again.json(), again.headers["idempotency-replayed"]) == (200, first.json(), "true")
    assert await last(inner) == before
    other = await sent(http, event, headers={"Idempotency-Key": "k"}, name="Other")
    assert other.status_code == 409


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"file": None}, ["file"]),
        ({"url": "https://a.example/a"}, ["file"]),
        ({"language": "german"}, ["language"]),
        ({"language": ""}, ["language"]),
        ({"kind": "songs"}, ["kind"]),
        ({"kind": None}, ["kind"]),
        ({"name": " "}, ["name"]),
        ({"file": "../a.srt"}, ["file"]),
        ({"file": ".jobs/1/files/text"}, ["file"]),
        ({"file": None, "url": "ftp://a.example/a"}, ["url"]),
        ({"priority": 11}, ["priority"]),
    ],
)
async def test_what_is_wrong_is_told_and_changes_nothing(
    http: httpx.AsyncClient, inner: Core, media_root: Path, body: dict[str, Any], fields: list[str]
) -> None:
    event = await film(http, media_root)
    before = await last(inner)
    answer = await http.post("/api/asset/caption/", json={"eventId": event, **FACTS, "file": "in/a.srt", **body})
    assert (answer.status_code, fields_of(answer)) == (400, fields), answer.text
    assert await last(inner) == before


async def test_an_event_that_is_unknown_or_has_no_film(http: httpx.AsyncClient) -> None:
    assert (await sent(http, UNKNOWN)).status_code == 404
    answer = await sent(http, (await add(http))["id"])
    assert (answer.status_code, answer.json()["detail"]) == (409, "the Event has no VOD file to which captions can be added")


async def test_a_file_is_taken_in_its_own_field_only(http: httpx.AsyncClient, media_root: Path) -> None:
    event = await film(http, media_root)
    answer = await http.post("/api/asset/caption/", data={"eventId": event, **FACTS}, files={"url": ("a.srt", SRT)})
    assert (answer.status_code, fields_of(answer)) == (400, ["url"])


async def test_lists_and_deletions_have_them_where_their_type_is_asked_for(http: httpx.AsyncClient, media_root: Path) -> None:
    event = await film(http, media_root)
    caption, picture = (await sent(http, event)).json(), await image(http, event)

    async def listed(**query: str) -> list[str]:
        return [record["id"] for record in (await http.get("/api/asset/", params=query)).json()]

    for name, value in (("eventId", event), ("contentId", event), ("jobId", caption["jobId"]), ("name", "Deutsch")):
        assert caption["id"] not in await listed(**{name: value})
        assert await listed(**{name: value, "types": "caption"}) == [caption["id"]]
    assert sorted(await listed(eventId=event, types="IMAGE,CAPTION")) == sorted([caption["id"], picture["id"]])
    assert (await http.delete("/api/asset/", params={"eventId": event})).json() == {"deletedCount": 1}
    assert (await http.get(f"/api/asset/{caption['id']}/")).status_code == 200
    assert (await http.delete("/api/asset/", params={"eventId": event, "types": "CAPTION"})).json() == {"deletedCount": 1}
    assert (await http.get(f"/api/asset/{caption['id']}/")).status_code == 404


async def test_a_caption_is_replaced_and_is_deleted_by_its_id(http: httpx.AsyncClient, media_root: Path) -> None:
    event = await film(http, media_root)
    first, second = (await sent(http, event)).json(), (await sent(http, event)).json()
    assert (second["id"], second["path"]) == (first["id"], first["path"])
    assert second["jobId"] != first["jobId"]
    assert (await http.put(f"/api/asset/{first['id']}/", params={"name": "x"})).status_code == 409
    assert (await http.delete(f"/api/asset/{first['id']}")).json()["typeString"] == "CAPTION"
