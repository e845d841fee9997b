"""An Event stops, its recording becomes a film automatically, and so does a composition that waited for it, with one `up`."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from tests.domain.channel.texts_given import FLOW
from tests.e2e.on_air import Station
from tests.support.product import Products, client, migrated_home
from tests.support.waiting import until

KEY = "the-admin-key-of-these-tests"
LIVE, STOPPED = 2, 4


@pytest.mark.long
def test_films_follow_a_stop(started: Products, tmp_path: Path) -> None:
    product = started.start(migrated_home(tmp_path / "home"), admin_api_key=KEY).until_ready()
    with client(product, KEY) as http:
        news = Station(http, "news", home=product.home)
        flow = {"flows": [{**FLOW["flows"][0], "captureOnStop": True}]}
        made = http.post("/api/flow/", json={"name": "films", "configurationJson": json.dumps(flow)}).raise_for_status()
        event = news.event(flowId=made.json()["id"])
        news.to_state(event, LIVE)
        until(lambda: len(news.pictures()) >= 4)
        highlights, vain = _composed(http, event), _composed(http, news.event())
        assert _state(http, highlights) == "COMPOSE_WAITING"
        assert _state(http, vain) == "COMPOSE_ERROR"
        until(lambda: "is neither live nor scheduled nor being captured" in str(_log(http, vain)))
        news.to_state(event, STOPPED)
        until(lambda: _state(http, event) in ("VOD_PRIVATE", "VOD_ERROR"))
        assert (_state(http, event), _log(http, event)) == ("VOD_PRIVATE", [])
        until(lambda: _state(http, highlights) in ("COMPOSE_PUBLIC", "COMPOSE_ERROR"))
        assert (_state(http, highlights), _log(http, highlights)) == ("COMPOSE_PUBLIC", [])
        jobs = http.get("/engine/jobs").raise_for_status().json()
        assert sorted(job["workflow"] for job in jobs) == ["compose", "vod_capture"]


def _composed(http: httpx.Client, source: str) -> str:
    body = {"event": {"title": "highlights"}, "playlist": {"name": "highlights", "items": [{"type": 0, "value": source}]}}
    return str(http.post("/api/compose/", json=body).raise_for_status().json())


def _state(http: httpx.Client, event: str) -> str:
    return str(http.get(f"/api/event/{event}").raise_for_status().json()["stateString"])


def _log(http: httpx.Client, event: str) -> list[str]:
    answer = http.get(f"/api/log/event/{event}")
    return [entry["message"] for entry in answer.json()["results"]] if answer.status_code == 200 else []
