"""A playlist waits while an Event that it shows is live, scheduled or being captured; its film is made when all of them have
theirs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from uuid import UUID

import httpx
import pytest

from api.wiring.core import Core
from domain.composition.handlers import CompositionHandlers, NewComposition
from domain.composition.values import CompositionKind
from domain.event.aggregate import MediaEvent
from domain.event.commands import (
    AddOrUpdateEvent,
)
from domain.event.values import EventState, Trigger, VodJobEnd, VodWorkflow
from domain.kernel.errors import DomainError
from domain.kernel.ports import Invocation
from tests.domain.composition.compositions_given import EVENT, OTHER, SOURCE, item, playlist
from tests.projections.log.helpers import rows
from tests.support.clock import HandClock
from tests.support.feeding import do
from tests.workers.event.films.following import composition_handlers, fed, followed, jobs_of, worker
from tests.workers.event.outcomes.test_failures import fed as failures_fed
from tests.workers.event.outcomes.test_failures import handler as failures

CAPTURE = 1_000_000
"""A job number beyond those that compositions draw."""
WAITING, GENERATING, ERROR = EventState.COMPOSE_WAITING, EventState.COMPOSE_GENERATING, EventState.COMPOSE_ERROR


@pytest.fixture
def handlers(inner: Core) -> CompositionHandlers:
    return composition_handlers(inner, jobs=jobs_of(inner))


async def source(inner: Core, key: UUID, state: EventState, **changes: object) -> None:
    await do(inner, AddOrUpdateEvent(key, changes, state=state, new=True))


async def compose(handlers: CompositionHandlers, *keys: UUID, start: datetime | None = None) -> None:
    shown = playlist(*map(item, keys))
    wanted = NewComposition(kind=CompositionKind.STANDARD, playlist=shown, event_id=EVENT, live_stream_start=start)
    await handlers.compose(wanted, invocation=Invocation.by("studio"))


def state(inner: Core) -> EventState:
    ((result,),) = rows(inner.database.conninfo, "SELECT state FROM event_view WHERE id = %s", EVENT)
    return EventState(result)


def jobs(inner: Core) -> int:
    ((result,),) = rows(inner.database.conninfo, "SELECT count(*) FROM job_view WHERE workflow = 'compose'")
    return int(result)


def reason(inner: Core) -> str:
    ((result,),) = rows(inner.database.conninfo, "SELECT reason FROM composition_view")
    return str(result)


@pytest.fixture
async def event(inner: Core) -> None:
    await do(inner, AddOrUpdateEvent(EVENT, {"title": "highlights"}, new=True))


async def captured(inner: Core, key: UUID, *, end: VodJobEnd = VodJobEnd.COMPLETED) -> None:
    await do(inner, MediaEvent.start_vod_job.on(key, CAPTURE + key.int, VodWorkflow.CAPTURE))
    await followed(inner)
    assert state(inner) is WAITING
    await do(inner, MediaEvent.end_vod_job.on(key, CAPTURE + key.int, end, version=5, reason="no room"))


@pytest.mark.usefixtures("event")
async def test_the_film_is_made_when_the_last_source_has_its_film(inner: Core, handlers: CompositionHandlers) -> None:
    await source(inner, SOURCE, EventState.LIVE_PUBLISHED)
    await source(inner, OTHER, EventState.PRE_LIVE, scheduled_start=inner.clock() + timedelta(hours=1))
    await compose(handlers, SOURCE, OTHER)
    assert (state(inner), jobs(inner)) == (WAITING, 0)
    await do(inner, MediaEvent.change_state.on(SOURCE, EventState.STOPPED, trigger=Trigger.OPERATOR))
    await followed(inner)
    assert state(inner) is WAITING
    await captured(inner, SOURCE)
    await followed(inner)
    assert (state(inner), jobs(inner)) == (WAITING, 0)
    await do(inner, MediaEvent.change_state.on(OTHER, EventState.LIVE_PUBLISHED, trigger=Trigger.OPERATOR))
    await do(inner, MediaEvent.change_state.on(OTHER, EventState.STOPPED, trigger=Trigger.OPERATOR))
    await captured(inner, OTHER)
    await followed(inner)
    await followed(inner)
    assert (state(inner), jobs(inner)) == (GENERATING, 1)


@pytest.mark.usefixtures("event")
async def test_a_film_that_came_while_the_playlist_was_written_is_not_missed(inner: Core, handlers: CompositionHandlers) -> None:
    """The event of the film comes before that of the playlist, so no waiting playlist is found when the Event is followed."""
    await source(inner, SOURCE, EventState.LIVE_PUBLISHED)

    class Late(type(handlers)):  # type: ignore[misc]
        async def _sources(self, *args: object, **more: object) -> object:
            result = await super()._sources(*args, **more)
            await do(inner, MediaEvent.change_state.on(SOURCE, EventState.VOD_PUBLIC, trigger=Trigger.OPERATOR))
            return result

    handlers.__class__ = Late
    await compose(handlers, SOURCE)
    assert state(inner) is WAITING
    await followed(inner)
    assert (state(inner), jobs(inner)) == (GENERATING, 1)


async def deleted(inner: Core) -> None:
    await do(inner, MediaEvent.delete.on(SOURCE))


async def capture_failed(inner: Core) -> None:
    await do(inner, MediaEvent.change_state.on(SOURCE, EventState.STOPPED, trigger=Trigger.OPERATOR))
    await captured(inner, SOURCE, end=VodJobEnd.FAILED)


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (deleted, f"the Event {SOURCE} was deleted"),
        (capture_failed, f"the Event {SOURCE} has no film, and its job {CAPTURE + SOURCE.int} (vod_capture) made none"),
    ],
)
@pytest.mark.usefixtures("event")
async def test_a_source_that_gets_no_film_ends_the_wait(
    inner: Core, handlers: CompositionHandlers, end: Callable[[Core], Awaitable[None]], message: str
) -> None:
    await source(inner, SOURCE, EventState.LIVE_PUBLISHED)
    await source(inner, OTHER, EventState.LIVE_PUBLISHED)
    await compose(handlers, SOURCE, OTHER)
    await end(inner)
    await followed(inner)
    assert (state(inner), jobs(inner), reason(inner)) == (ERROR, 0, message)


@pytest.mark.usefixtures("event")
async def test_an_unusable_source_fails_the_playlist_and_is_named_in_the_log(
    inner: Core, handlers: CompositionHandlers, http: httpx.AsyncClient
) -> None:
    await source(inner, SOURCE, EventState.LIVE_PUBLISHED)
    await source(inner, OTHER, EventState.PRE_LIVE)
    await compose(handlers, SOURCE, OTHER)
    message = f"the Event {OTHER} has no film, and is neither live nor scheduled nor being captured"
    assert (state(inner), jobs(inner), reason(inner)) == (ERROR, 0, message)
    await failures_fed(inner, failures(inner))
    shown = (await http.get(f"/api/log/event/{EVENT}")).json()["results"]
    assert [entry["message"] for entry in shown] == [f"The Event is COMPOSE_ERROR: {message}"]
    await handlers.replace(EVENT, CompositionKind.STANDARD, changes={"items": (item(SOURCE),)}, invocation=Invocation.by("studio"))
    assert (state(inner), jobs(inner), reason(inner)) == (WAITING, 0, "")
    await do(inner, MediaEvent.change_state.on(SOURCE, EventState.VOD_PUBLIC, trigger=Trigger.OPERATOR))
    await followed(inner)
    assert (state(inner), jobs(inner)) == (GENERATING, 1)


@pytest.mark.usefixtures("event")
async def test_at_its_time_it_goes_on_waiting_and_is_not_due_again(
    inner: Core, handlers: CompositionHandlers, clock: HandClock
) -> None:
    await source(inner, SOURCE, EventState.LIVE_PUBLISHED)
    due = inner.clock() + timedelta(hours=1)
    await compose(handlers, SOURCE, start=due)
    await do(inner, MediaEvent.change_state.on(SOURCE, EventState.VOD_PUBLIC, trigger=Trigger.OPERATOR))
    await followed(inner)
    assert (state(inner), jobs(inner)) == (WAITING, 0)
    await do(inner, MediaEvent.change_state.on(SOURCE, EventState.LIVE_PUBLISHED, trigger=Trigger.OPERATOR))
    clock.forward(hours=1)
    await handlers.generate_on_schedule(EVENT, due, invocation=Invocation.by("system"))
    assert (state(inner), jobs(inner)) == (WAITING, 0)
    assert rows(inner.database.conninfo, "SELECT awaits_sources FROM composition_view") == [(True,)]
    await do(inner, MediaEvent.change_state.on(SOURCE, EventState.VOD_PUBLIC, trigger=Trigger.OPERATOR))
    await followed(inner)
    assert (state(inner), jobs(inner)) == (GENERATING, 1)


@pytest.mark.usefixtures("event")
async def test_another_playlist_that_waits_breaks_off_the_job_of_the_first(inner: Core, handlers: CompositionHandlers) -> None:
    await source(inner, SOURCE, EventState.VOD_PUBLIC)
    await source(inner, OTHER, EventState.LIVE_PUBLISHED)
    await compose(handlers, SOURCE)
    assert state(inner) is GENERATING
    await handlers.replace(EVENT, CompositionKind.STANDARD, changes={"items": (item(OTHER),)}, invocation=Invocation.by("studio"))
    assert state(inner) is WAITING
    assert rows(inner.database.conninfo, "SELECT DISTINCT state FROM job_view") != [("queued",)]
    await do(inner, MediaEvent.change_state.on(OTHER, EventState.VOD_PUBLIC, trigger=Trigger.OPERATOR))
    await followed(inner)
    assert (state(inner), jobs(inner)) == (GENERATING, 2)


@pytest.mark.usefixtures("event")
async def test_what_cannot_be_made_when_the_wait_ends_is_tried_again(inner: Core, handlers: CompositionHandlers) -> None:
    """The Event of the playlist went live meanwhile."""
    await source(inner, SOURCE, EventState.LIVE_PUBLISHED)
    await compose(handlers, SOURCE)
    await do(inner, MediaEvent.change_state.on(EVENT, EventState.LIVE_PUBLISHED, trigger=Trigger.OPERATOR))
    await do(inner, MediaEvent.change_state.on(SOURCE, EventState.VOD_PUBLIC, trigger=Trigger.OPERATOR))
    await fed(inner)
    await worker(inner).carry_out()
    assert jobs(inner) == 0
    with pytest.raises(DomainError):
        await handlers.follow_sources(EVENT, invocation=Invocation.by("system"))
    await do(inner, MediaEvent.change_state.on(EVENT, EventState.STOPPED, trigger=Trigger.OPERATOR))
    rows(inner.database.conninfo, "UPDATE orders SET due_at = '-infinity' RETURNING 1")
    await worker(inner).carry_out()
    assert (state(inner), jobs(inner)) == (GENERATING, 1)
