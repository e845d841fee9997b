"""The start of an Event's stream, as a step that composes receives it."""

from __future__ import annotations

from uuid import uuid4

from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.event.values import EventState
from domain.kernel.clock import iso
from domain.kernel.ports import Invocation
from workers.job.stream_starts import StreamStarts, answer

ADMIN = Invocation.by("admin")


async def test_a_stream_began_when_its_event_went_on_the_air(inner: Core) -> None:
    live, never = uuid4(), uuid4()
    for key in (live, never):
        await inner.executor.execute(AddOrUpdateEvent(key, {"title": "final"}, new=True), invocation=ADMIN)
    await inner.executor.execute(AddOrUpdateEvent(live, {}, state=EventState.LIVE_PUBLISHED), invocation=ADMIN)
    event = await inner.streams.load(MediaEvent.stream(live))
    assert isinstance(event, MediaEvent)
    assert event.details.actual_live_start is not None
    starts = StreamStarts(inner.streams)
    assert await answer(starts, {"event": str(live)}) == {"start": iso(event.details.actual_live_start)}
    assert await answer(starts, {"event": str(never)}) == {"start": None}
    assert await answer(starts, {"event": "no Event"}) == {"start": None}


async def test_a_step_does_not_wait_for_what_cannot_be_read() -> None:
    async def broken(event: str) -> str | None:
        raise RuntimeError("gone")

    assert "refused" in await answer(broken, {"event": "x"})
