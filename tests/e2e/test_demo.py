"""The demo on a real product: loaded, loaded again, changed by a person, removed."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.product import Product, Products, client, migrated_home
from tests.support.waiting import until

LISTS = {
    "events": "/api/event/",
    "rooms": "/api/room/",
    "types": "/api/eventtype/",
    "categories": "/api/category/",
    "channels": "/api/channel/",
    "profiles": "/api/infrastructureprofile/",
    "flows": "/api/flow/",
    "destinations": "/api/media/destination/",
    "webhooks": "/api/webhook/",
    "publications": "/api/vodpublications/",
    "clients": "/api/client/",
}


def call(http: httpx.Client, method: str, path: str, **options: Any) -> Any:
    answer = http.request(method, path, **options).raise_for_status()
    return answer.json() if answer.content else []


def lists(http: httpx.Client) -> dict[str, list[str]]:
    """Return the ids and names of everything that can be listed."""
    answers = {name: call(http, "GET", path) for name, path in LISTS.items()}
    rows = {name: listed["results"] if isinstance(listed, dict) else listed for name, listed in answers.items()}
    return {name: sorted(str(row.get("id", row.get("Id", row.get("name")))) for row in each) for name, each in rows.items()}


def position(http: httpx.Client) -> int:
    """Return the position of the newest event that the demo caused; the product itself writes further events."""
    newest = call(http, "GET", "/api/audit/events/", params={"actor": "demo-loader", "pageSize": 1})["results"]
    return int(newest[0]["position"])


def demo(started: Products, product: Product, words: str) -> int:
    port = product.address.rpartition(":")[2]
    root = str(product.home.parent / "published")
    return started.start(product.home, f"demo {words} --port {port}", filesystem_root=root).ended()


def admin(product: Product) -> httpx.Client:
    return client(product, (product.home / "admin-api-key").read_text().strip())


def test_it_is_loaded_once_and_removed_without_what_people_made(started: Products, tmp_path: Path) -> None:
    product = started.start(migrated_home(tmp_path / "home"), filesystem_root=str(tmp_path / "published")).until_ready()
    with admin(product) as http:
        before = lists(http)
        assert demo(started, product, "load --films 1 --seed 7 --around 2031-05-01T12:00:30Z") == 0
        events = call(http, "GET", "/api/event/", params={"pageSize": 1000})["results"]
        assert len({event["id"] for event in events}) == len(events) > 30
        assert {"LIVE_PUBLISHED", "STOPPED", "PRE_LIVE", "VOD_PUBLIC"} <= {event["stateString"] for event in events}
        assert "2031-05-01T11:35:00.000Z" in {event["scheduledStart"] for event in events}
        [film] = [event["id"] for event in events if event["stateString"] == "VOD_PUBLIC" and event["flowId"]]
        video = call(http, "GET", f"/api/event/{film}", params={"processVideo": True})["video"]
        for url in [stream["url"] for stream in video["vodUrls"]] + [video["publicMp4Url"]]:
            assert httpx.get(url).status_code == 200, url
        states = {"queued", "started", "completed", "pending", "scheduled", "paused", "broken"}
        until(lambda: {state for state, _ in jobs(http)} == states)
        assert published_states(http) == {"Completed", "FailedDestination"}
        people = {entry["endUser"] for entry in call(http, "GET", "/api/audit/events/", params={"pageSize": 1000})["results"]}
        assert {"anna.keller", "jonas.meyer", "priya.nair", "tomas.novak", "lucia.ferrari"} <= people

        loaded, at = lists(http), position(http)
        assert demo(started, product, "load --films 1") == 0
        assert (lists(http), position(http)) == (loaded, at)
        assert demo(started, product, "load --films 0 --seed 8") == 1
    product.signal(signal.SIGTERM)
    assert product.ended() == 0
    product = started.start(product.home).until_ready()  # without the folder to which it has published
    with admin(product) as http:
        mine = call(http, "POST", "/api/room/", json={"name": "Mine"})["Id"]
        call(http, "POST", "/api/event/", json={"id": events[0]["id"], "title": "Renamed", "roomId": mine})
        assert demo(started, product, "remove --yes") == 0
        assert lists(http) == before | {"rooms": [mine]}
        assert not (product.home / "demo-api-key").exists()
        assert demo(started, product, "remove --yes") == 0
        head = http.get("/readyz").json()["logHead"]
        assert demo(started, product, "load --films 0") == 1
        assert lists(http) == before | {"rooms": [mine]}
        kinds = call(http, "GET", "/api/audit/events/", params={"after": head})["results"]
        assert not [entry for entry in kinds if entry["actor"] != "system"]


def jobs(http: httpx.Client) -> list[tuple[str, str]]:
    """Return the state and the workflow of each job."""
    return [(job["queue_state"], job["workflow"]) for job in call(http, "GET", "/engine/jobs", params={"items": 100})]


@pytest.mark.long
def test_up_demo_puts_a_picture_on_the_air_and_makes_films_that_are_removed_again(started: Products, tmp_path: Path) -> None:
    product = started.start(migrated_home(tmp_path / "home"), "up --demo").until_ready()
    with admin(product) as http:
        until(lambda: published_states(http) == {"Completed", "FailedDestination"}, seconds=600)
        until(lambda: {("started", "vod_capture"), ("queued", "probe_media")} <= set(jobs(http)))
        films = call(http, "GET", "/api/event/", params={"eventState": "VOD_PUBLIC"})["results"]
        assert len(films) == 4
        assert all(http.get(f"/media/{film['id']}/{film['thumbnail']}").content.startswith(b"\xff\xd8") for film in films)
        chapters = [call(http, "GET", f"/api/chapterpoint/event/{film['id']}") for film in films]
        assert sorted(map(len, chapters)) == [0, 0, 0, 3]
        at = position(http)
        until(lambda: demo(started, product, "load") == 0)  # the first one may still hold its lock
        assert position(http) == at
        assert demo(started, product, "remove --yes") == 0
        assert not any(lists(http)[name] for name in LISTS if name != "clients")
        assert not any((product.home / "media" / film["id"]).exists() for film in films)
    product.signal(signal.SIGTERM)
    assert product.ended() == 0


def published_states(http: httpx.Client) -> set[str]:
    return {result["publicationStateString"] for result in call(http, "GET", "/api/vodpublications/")["results"]}
