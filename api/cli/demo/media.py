"""The films of the demo: made by ffmpeg, ingested by the workflow `vod_ingest`, then cut, marked and composed by the product."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from api.cli.demo.ledger import DemoRequest, Ledger, wait_for_job
from api.cli.demo.schedule import FILM_LENGTH, DemoSchedule, Planned
from api.cli.local.media import bring_in, remove_source
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from workers.adapters.ffmpeg import find
from workers.kernel.media_programs import missing

_SOURCE = "demo-film.mp4"
_CHAPTERS = (("00:00:00.000", "Opening"), ("00:00:03.000", "The story of the day"), ("00:00:06.000", "Weather"))


async def make_films(ledger: Ledger, schedule: DemoSchedule, *, settings: Settings) -> Sequence[str]:
    """Make the films and wait until all are packaged. Return the ids of their Events in the order of the schedule."""
    planned_events = [planned for planned in schedule.events() if planned.film is not None]
    jobs = [await _ingest(ledger, schedule, settings, planned) for planned in planned_events]
    events = [schedule.id_of(planned.key) for planned in planned_events]
    for job, event in zip(jobs, events, strict=True):
        result = await wait_for_job(ledger.product, job)
        await remove_source(f"incoming/{event}/{_SOURCE}", settings, event=event)
        if result["failed"] or result["queue_state"] != "completed":
            raise StartError(f"a film of the demo was not made; `medialedger jobs show {job}` says why")
        await _wait_on_demand(ledger, event)
    return events


async def _ingest(ledger: Ledger, schedule: DemoSchedule, settings: Settings, planned: Planned) -> str:
    """Return the id of the job that makes the film."""
    name, event = f"ingest/{planned.key}", schedule.id_of(planned.key)
    if (change := ledger.find(name, about="job")) is not None:
        return change.id
    await remove_source(f"incoming/{event}/{_SOURCE}", settings, event=event)  # of a start that was interrupted
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="medialedger-demo-"))
    try:
        await make_film(folder / _SOURCE, look=planned.film or 0, seed=schedule.seed)
        file = await bring_in(folder / _SOURCE, settings, event=event)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    parameters = {"content_id": event, "file": file, "publish": True, "renditions": [180]}
    job = {"job": {"workflow": "vod_ingest", "priority": 3}, "parameters": parameters}
    return await ledger.once(DemoRequest(name, "POST", "/engine/job", job, by="lucia.ferrari", about="job"))


async def _wait_on_demand(ledger: Ledger, event: str) -> None:
    """Wait until the Event shows the end of its job, which is a moment later than the end."""
    while True:
        document = await ledger.product.get(f"/api/event/{event}")
        if document is None or document["stateString"] not in ("PRE_VOD", "VOD_INGESTING"):
            return
        await asyncio.sleep(0.2)


async def make_pieces(ledger: Ledger, events: Sequence[str]) -> None:
    """Make chapters, a clip, a GIF and a picture of the first film, and wait until they are made."""
    event = events[0]
    clip = {"eventId": event, "start": "00:00:02", "end": "00:00:05"}
    await ledger.all(
        [
            DemoRequest(
                f"chapter/{number}",
                "POST",
                "/api/chapterpoint/",
                {"eventId": event, "startTime": start, "title": title},
                by="priya.nair",
            )
            for number, (start, title) in enumerate(_CHAPTERS)
        ]
    )
    steps = [
        _asset("video", {"name": "Opening, for the website", "clip": clip}, by="priya.nair"),
        _asset("gif", {"name": "Loop for the web", "clip": clip, "width": 240}, by="jonas.meyer"),
        _asset("image", {"name": "Still", "eventId": event, "time": "00:00:06"}, by="jonas.meyer"),
    ]
    made_before = all(ledger.find(step.name) for step in steps)
    for asset in [] if made_before else await ledger.all(steps):
        document = await ledger.product.get(f"/api/asset/{asset}")
        await wait_for_job(ledger.product, str(document["jobId"]))


def _asset(kind: str, body: Mapping[str, Any], *, by: str) -> DemoRequest:
    return DemoRequest(f"asset/{kind}", "POST", f"/api/asset/{kind}/", body, by=by, about="asset")


async def make_composition(ledger: Ledger, schedule: DemoSchedule, *, events: Sequence[str]) -> None:
    """Compose a film of parts of the other films."""
    items = [{"type": "EVENT", "value": event, "properties": {"start": "00:00:01", "end": "00:00:04"}} for event in events[:2]]
    event = {
        "id": schedule.id_of("composition"),
        "title": "The week in six seconds",
        "externalId": f"demo/{schedule.seed}/composition",
    }
    body = {"event": event, "playlist": {"name": "The week", "items": items}}
    await ledger.once(DemoRequest("composition", "POST", "/api/compose/", body, by="lucia.ferrari"))


LOOKS: Final = (
    "gradients=s=640x360:r=25:d={length}:seed={seed}:speed=0.03:nb_colors=6",
    "gradients=s=640x360:r=25:d={length}:seed={seed}:speed=0.02:type=spiral:nb_colors=3",
    "life=s=160x90:r=25:seed={seed}:ratio=0.3:mold=10:life_color=white:death_color=#204060:mold_color=#0a1520,scale=640:360:flags=neighbor",
    "pal75bars=s=640x360:r=25:d={length},hue=h=t*40",
)


async def make_film(target: Path, *, look: int, seed: int) -> None:
    """Make a film with ffmpeg. Raise `StartError` with the last line of its output if it fails."""
    program = find("ffmpeg")
    if program is None:
        raise StartError(f"{missing('ffmpeg')} The demo has no films without it.")
    picture = LOOKS[look % len(LOOKS)].format(length=FILM_LENGTH, seed=seed + look)
    tone = f"sine=frequency={220 + 110 * look}:duration={FILM_LENGTH}"
    command = [
        *("-hide_banner", "-loglevel", "error", "-y", "-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", tone),
        *("-t", str(FILM_LENGTH), "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "50"),
        *("-c:a", "aac", "-b:a", "64k", "-threads", "1", str(target)),
    ]
    process = await asyncio.create_subprocess_exec(str(program), *command, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE)
    _, errors = await process.communicate()
    if process.returncode:
        lines = errors.decode(errors="replace").strip().splitlines() or ["no reason was given"]
        raise StartError(f"ffmpeg could not make a film of the demo: {lines[-1]}")
