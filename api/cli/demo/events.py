"""The Events of the demo: added from the schedule, then changed by several people as in a newsroom."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

from api.cli.demo.catalogue import Catalogue
from api.cli.demo.ledger import Ledger, Step
from api.cli.demo.schedule import Planned, Schedule, body

FIRST = "event/live"
"""The step whose Event tells the seed and the time of the demo that is there."""


def parameters(ledger: Ledger) -> tuple[int, datetime] | None:
    """The seed and the time of the demo that was begun."""
    made = ledger.find(FIRST, about="event")
    if made is None:
        return None
    _, seed, around, _ = made.data["external_id"].split("/")
    return int(seed), datetime.fromisoformat(around)


async def make_events(ledger: Ledger, schedule: Schedule, *, catalogue: Catalogue) -> None:
    events = {planned.key: planned for planned in schedule.events()}
    steps = [_added(planned, schedule, catalogue) for planned in events.values()]
    first = [step for step in steps if step.name == FIRST]
    await ledger.all(first)
    await ledger.all([step for step in steps if step.name != FIRST])
    await asyncio.gather(
        _in_order(ledger, _live(schedule)), _in_order(ledger, _rehearsed(schedule)), _edited(ledger, schedule, events)
    )


def _added(planned: Planned, schedule: Schedule, catalogue: Catalogue) -> Step:
    links = {
        "roomId": None if planned.room is None else catalogue.rooms[planned.room],
        "eventTypeId": catalogue.types[planned.type],
        "categoryId": catalogue.categories[planned.category],
        "channelId": None if planned.channel is None else catalogue.channels[planned.channel],
        "flowId": None if planned.film is None else catalogue.flow,
        "infrastructureProfileId": catalogue.profile if planned.key == "provisioned" else None,
    }
    external = f"demo/{schedule.seed}/{schedule.around:%Y-%m-%dT%H:%M}+00:00/{planned.key}"
    asked = body(planned, id=schedule.id_of(planned.key), external_id=external, links=links)
    return Step(f"event/{planned.key}", "POST", "/api/event/", asked, by=planned.by, about="event")


def _state(schedule: Schedule, key: str, state: str, *, by: str) -> Step:
    return Step(f"state/{key}/{state}", "PUT", f"/api/event/state/{schedule.id_of(key)}", {"state": state}, by=by)


def _live(schedule: Schedule) -> list[Step]:
    """First for the gallery alone, then for everybody."""
    return [
        _state(schedule, "live", "LIVE_UNPUBLISHED", by="tomas.novak"),
        _state(schedule, "live", "LIVE_PUBLISHED", by="anna.keller"),
        Step("provision", "POST", f"/api/provision/{schedule.id_of('provisioned')}", by="tomas.novak"),
    ]


def _rehearsed(schedule: Schedule) -> list[Step]:
    return [
        _state(schedule, "rehearsal", "LIVE_UNPUBLISHED", by="tomas.novak"),
        _state(schedule, "rehearsal", "STOPPED", by="tomas.novak"),
    ]


async def _edited(ledger: Ledger, schedule: Schedule, events: dict[str, Planned]) -> None:
    """Titles that are corrected, times that are moved and moved back, a description that grows."""
    late, overlap = events["late"], events["overlap-2"]
    moved = late.start + timedelta(minutes=15)
    await asyncio.gather(
        _in_order(
            ledger,
            [
                _patched(schedule, "late", 1, {"title": f"{late.title} (tbc)"}, by="priya.nair"),
                _patched(schedule, "late", 2, {"scheduledStart": moved.isoformat()}, by="jonas.meyer"),
                _patched(schedule, "late", 3, {"title": late.title, "scheduledStart": late.start.isoformat()}, by="anna.keller"),
                _patched(schedule, "late", 4, {"description": "The speaker is in traffic. Keep the line open."}, by="priya.nair"),
            ],
        ),
        _in_order(
            ledger,
            [
                _patched(schedule, "live", 1, {"title": f"{events['live'].title}, extended"}, by="lucia.ferrari"),
                _patched(schedule, "overlap-2", 1, {"title": f"{overlap.title} (moved here from St Olave)"}, by="lucia.ferrari"),
                _patched(schedule, "soon", 1, {"autoStart": True, "title": "Talk at the quay, with music"}, by="jonas.meyer"),
            ],
        ),
    )


def _patched(schedule: Schedule, key: str, number: int, values: dict[str, Any], *, by: str) -> Step:
    changes = [{"op": "replace", "path": f"/{name}", "value": value} for name, value in values.items()]
    return Step(f"edit/{key}/{number}", "PATCH", f"/api/event/{schedule.id_of(key)}", changes, by=by)


async def _in_order(ledger: Ledger, steps: list[Step]) -> None:
    for step in steps:
        await ledger.once(step)
