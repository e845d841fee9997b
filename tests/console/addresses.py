"""An address of each page of the console, with the ids of what a test has made."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, Final

import httpx

from domain.kernel.clock import iso, system_clock

LIVE: Final = 2
HOUR: Final = timedelta(hours=1)

ADDRESSES: Final = {
    "/": "/?from=2041-07-08T06:00:00Z&hours=12",
    "/schedule": "/schedule?date=2041-07-08&view=table",
    "/events": "/events?from=2041-07-08",
    "/events/:id": "/events/{event}",
    "/jobs": "/jobs?state=scheduled",
    "/jobs/new": "/jobs/new",
    "/jobs/:id": "/jobs/{job}",
    "/deliveries": "/deliveries?webhook={webhook}&state=all",
    "/destinations": "/destinations",
    "/infrastructure": "/infrastructure?tab=profiles",
    "/health": "/health",
    "/events/:id/history": "/events/{event}/history?with=0",
    "/audit": "/audit",
    "/integrity": "/integrity",
    "/audit/:kind/:id": "/audit/room/{room}?with=0",
    "/clients": "/clients",
}
"""The addresses of the pages in `console/src/pages/index.ts` that the tests open."""


def _made(http: httpx.Client, path: str, body: Any, **headers: str) -> str:
    answer = http.post(path, json=body, headers=headers)
    assert answer.is_success, (path, answer.text)
    made = {name.lower(): value for name, value in answer.json().items()}
    return str(made["id"])


def filled(http: httpx.Client) -> dict[str, str]:
    """Add one record of each kind that the pages show, and an Event on the air."""
    now = system_clock()
    room = _made(http, "/api/room/", {"name": "Hall"})
    channel = _made(http, "/api/channel/", {"name": "One"})
    times = {"scheduledStart": iso(now - HOUR), "scheduledEnd": iso(now + HOUR)}
    event = _made(http, "/api/event/", {"title": "Final", "roomId": room, "channelId": channel, **times})
    _made(http, "/api/event/", {"title": "Late", "roomId": room, **times})
    http.put(f"/api/event/state/{event}", json={"state": LIVE}).raise_for_status()
    parameters = {"content_id": event, "file": "a"}
    job = {"job": {"workflow": "probe_media", "run_at": iso(now + HOUR)}, "parameters": parameters}
    webhook = {"webhookUrl": "http://127.0.0.1:9/"}
    target = {"endpoint": "http://127.0.0.1:9", "bucket": "films", "accessKeyId": "a", "secretAccessKey": "s"}
    _made(http, "/api/media/destination/", {"name": "Films", "target": "S3", "destinationJson": json.dumps(target)})
    return {
        "room": room,
        "event": event,
        "job": _made(http, "/engine/job", job, client="admin"),
        "webhook": _made(http, "/api/webhook/", webhook),
    }
