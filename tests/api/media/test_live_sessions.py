"""The sessions of the encoders of an Event, over HTTP."""

from __future__ import annotations

import json

import httpx

from api.wiring.core import Core
from tests.api.asking import UNKNOWN, add

EVENT = "8f51eaa1-decb-4863-89d3-9eb99768c67b"
ADDRESS = "/api/health/live/session/event/"
HEARD = {"encoder": 0, "name": "enc-1", "type": "ffmpeg", "running": True, "bytes": 5, "frames": 50, "fps": 25, "bitrate": 2e6}
ROW = """
INSERT INTO sessions (kind, key, shard, owner, wish, number, state, host, reason, started_at, changed_at, statistics)
VALUES (%s, %s, 0, %s, 1, %s, %s, 'studio-1', %s, to_timestamp(%s), now(), %s)
"""


async def test_the_sessions_of_an_event_are_shown_the_latest_first(http: httpx.AsyncClient, inner: Core) -> None:
    await add(http, id=EVENT)
    statistics = json.dumps({"encoders": [HEARD, {"name": "enc-2", "type": "http", "running": False, "last_error": "gone"}]})
    for row in (
        ("encoder", "channel-1", EVENT, 7, "stopped", "", 100, None),
        ("encoder", "channel-2", EVENT, 8, "running", "", 200, statistics),
        ("encoder", "channel-3", UNKNOWN, 9, "running", "", 300, None),
        ("publication", "push", EVENT, 9, "running", "", 300, None),
    ):
        await inner.database.execute(ROW, row)
    result = (await http.get(ADDRESS + EVENT)).raise_for_status().json()
    assert [(record["channelId"], record["number"], record["state"]) for record in result] == [
        ("channel-2", 8, "running"),
        ("channel-1", 7, "stopped"),
    ]
    first, second = result[0]["encoders"]
    assert (first["name"], first["running"], first["bytes"], first["fps"], first["lastError"]) == ("enc-1", True, 5, 25.0, "")
    assert (second["name"], second["running"], second["bytes"], second["lastError"]) == ("enc-2", False, 0, "gone")
    assert result[1]["encoders"] == []


async def test_an_event_whose_encoders_never_ran_has_none(http: httpx.AsyncClient) -> None:
    await add(http, id=EVENT)
    assert (await http.get(ADDRESS + EVENT)).json() == []


async def test_an_unknown_event_is_404(http: httpx.AsyncClient) -> None:
    assert (await http.get(ADDRESS + UNKNOWN)).status_code == 404
    assert (await http.get(ADDRESS + "x")).status_code == 400
