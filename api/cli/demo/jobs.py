"""Jobs of the demo in every state, of the workflows of the product."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, Final

from api.cli.demo.ledger import DemoRequest, Ledger
from api.cli.demo.schedule import DemoSchedule

_RECORDED: Final = "02:00:00"
"""The length from the first segment that the origin lists. With a time of day as its end, a capture would begin at that end."""
_GATE: Final = "https://gate.broadcast.invalid/open"


async def make_waiting_jobs(ledger: Ledger, schedule: DemoSchedule) -> None:
    """Submit a failed, a pending, a scheduled, a paused and a broken job. None of them does more than fail."""
    tomorrow = (schedule.around + timedelta(days=1)).isoformat()
    await ledger.all(
        [
            _probe("failed", "delivery-0411", by="jonas.meyer", priority=2),
            _probe("pending", "delivery-0412", by="jonas.meyer", sempahore_url=_GATE),
            _probe("scheduled", "delivery-0413", by="priya.nair", run_at=tomorrow),
        ]
    )
    for name, state in (("paused", "PAUSED"), ("broken", "BROKEN")):
        job = await ledger.once(_probe(name, f"delivery-{name}", by="tomas.novak", run_at=tomorrow))
        await ledger.once(DemoRequest(f"job/{name}/state", "PUT", f"/engine/job/{job}", {"queue_state": state}, by="tomas.novak"))


async def make_long_job(ledger: Ledger, schedule: DemoSchedule) -> None:
    """Submit a job that records the live Event for hours, and a job that waits for it, since only one may run at a time."""
    await ledger.once(DemoRequest("job/one-at-a-time", "POST", "/engine/settings", {"name": "max_jobs", "setting": 1}))
    if ledger.find("job/running") is None:
        await _wait_on_air(ledger, schedule.id_of("live"))
        parameters = {
            "content_id": schedule.id_of("recording"),
            "sources": [f"{ledger.product.base}/origin/live/demo-one/master.m3u8"],
            "start": "00:00:00",
            "end": _RECORDED,
        }
        job = {"job": {"workflow": "vod_capture", "priority": 1}, "parameters": parameters}
        await ledger.once(DemoRequest("job/running", "POST", "/engine/job", job, by="anna.keller", about="job"))
    await ledger.once(_probe("queued", "delivery-0414", by="anna.keller", priority=9))


async def _wait_on_air(ledger: Ledger, event: str) -> None:
    """Wait until the picture of the Event arrives at the origin. An Event that was stopped meanwhile has none."""
    while True:
        event_document = await ledger.product.get(f"/api/event/{event}")
        if event_document is None or event_document["stateString"] not in ("LIVE_PUBLISHED", "LIVE_UNPUBLISHED"):
            return
        health = await ledger.product.get(f"/api/health/live/stream/event/{event}")
        if any(point["receivingData"] for live in health.values() for point in live["urls"]):
            return
        await asyncio.sleep(0.5)


def _probe(name: str, content: str, *, by: str, **options: Any) -> DemoRequest:
    """Return a step that submits a job to read the metadata of a film that was not delivered."""
    body = {"job": {"workflow": "probe_media", **options}, "parameters": {"content_id": content, "file": f"{content}/film.mxf"}}
    return DemoRequest(f"job/{name}", "POST", "/engine/job", body, by=by, about="job")
