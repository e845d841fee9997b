"""The Events of the demo: added from the schedule, then changed by several people as in a newsroom."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

from api.cli.demo.catalogue import DemoRecords
from api.cli.demo.ledger import DemoRequest, Ledger
from api.cli.demo.schedule import DemoSchedule, Planned, body

FIRST = "event/live"
"""The step whose Event stores the seed and the time of the loaded demo."""


def parameters(ledger: Ledger) -> tuple[int, datetime] | None:
    """Return the seed and the time of the demo whose loading has begun; None if there is none."""
    change = ledger.find(FIRST, about="event")
    if change is None:
        return None
    _, seed, around, _ = change.data["external_id"].split("/")
    return int(seed), datetime.fromisoformat(around)


async def make_events(ledger: Ledger, schedule: DemoSchedule, *, catalogue: DemoRecords) -> None:
    events = {planned.key: planned for planned in schedule.events()}
    steps = [_addition(planned, schedule, catalogue) for planned in events.values()]
    first = [step for step in steps if step.name == FIRST]
    await ledger.all(first)
    await ledger.all([step for step in steps if step.name != FIRST])
    await asyncio.gather(
        _in_order(ledger, _live(schedule)), _in_order(ledger, _rehearsal(schedule)), _edit(ledger, schedule, events)
    )


def _addition(planned: Planned, schedule: DemoSchedule, catalogue: DemoRecords) -> DemoRequest:
    links = {
        "roomId": None if planned.room is None else catalogue.rooms[planned.room],
        "eventTypeId": catalogue.types[planned.type],
        "categoryId": catalogue.categories[planned.category],
        "channelId": None if planned.channel is None else catalogue.channels[planned.channel],
        "flowId": None if planned.film is None else catalogue.flow,
        "infrastructureProfileId": catalogue.profile if planned.key == "provisioned" else None,
    }
    external = f"demo/{schedule.seed}/{schedule.around:%Y-%m-%dT%H:%M}+00:00/{planned.key}"
    values = body(planned, id=schedule.id_of(planned.key), external_id=external, links=links)
    return DemoRequest(f"event/{planned.key}", "POST", "/api/event/", values, by=planned.by, about="event")


def _state(schedule: DemoSchedule, key: str, state: str, *, by: str) -> DemoRequest:
    return DemoRequest(f"state/{key}/{state}", "PUT", f"/api/event/state/{schedule.id_of(key)}", {"state": state}, by=by)


def _live(schedule: DemoSchedule) -> list[DemoRequest]:
    """Return the steps of the live Event, which is first visible in the gallery only, then public."""
    return [
        _state(schedule, "live", "LIVE_UNPUBLISHED", by="tomas.novak"),
        _state(schedule, "live", "LIVE_PUBLISHED", by="anna.keller"),
        DemoRequest("provision", "POST", f"/api/provision/{schedule.id_of('provisioned')}", by="tomas.novak"),
    ]


def _rehearsal(schedule: DemoSchedule) -> list[DemoRequest]:
    return [
        _state(schedule, "rehearsal", "LIVE_UNPUBLISHED", by="tomas.novak"),
        _state(schedule, "rehearsal", "STOPPED", by="tomas.novak"),
    ]


async def _edit(ledger: Ledger, schedule: DemoSchedule, events: dict[str, Planned]) -> None:
    """Correct titles, move times and move them back, and extend a description."""
    late, overlap = events["late"], events["overlap-2"]
    moved = late.start + timedelta(minutes=15)
    await asyncio.gather(
        _in_order(
            ledger,
            [
                _patch(schedule, "late", 1, {"title": f"{late.title} (tbc)"}, by="priya.nair"),
                _patch(schedule, "late", 2, {"scheduledStart": moved.isoformat()}, by="jonas.meyer"),
                _patch(schedule, "late", 3, {"title": late.title, "scheduledStart": late.start.isoformat()}, by="anna.keller"),
                _patch(schedule, "late", 4, {"description": "The speaker is in traffic. Keep the line open."}, by="priya.nair"),
            ],
        ),
        _in_order(
            ledger,
            [
                _patch(schedule, "live", 1, {"title": f"{events['live'].title}, extended"}, by="lucia.ferrari"),
                _patch(schedule, "overlap-2", 1, {"title": f"{overlap.title} (moved here from St Olave)"}, by="lucia.ferrari"),
                _patch(schedule, "soon", 1, {"autoStart": True, "title": "Talk at the quay, with music"}, by="jonas.meyer"),
            ],
        ),
    )


def _patch(schedule: DemoSchedule, key: str, number: int, values: dict[str, Any], *, by: str) -> DemoRequest:
    changes = [{"op": "replace", "path": f"/{name}", "value": value} for name, value in values.items()]
    return DemoRequest(f"edit/{key}/{number}", "PATCH", f"/api/event/{schedule.id_of(key)}", changes, by=by)


async def _in_order(ledger: Ledger, steps: list[DemoRequest]) -> None:
    for step in steps:
        await ledger.once(step)
