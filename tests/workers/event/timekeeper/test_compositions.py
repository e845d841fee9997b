"""Films that are made at their time: each once, and late after an outage, on a real database."""

from __future__ import annotations

from uuid import UUID

from domain.composition.handlers import NewComposition
from domain.composition.values import CompositionKind
from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.event.values import EventState, Mp4State, VodJobEnd, VodWorkflow
from domain.kernel.ports import Invocation
from projections.event.due_events import COMPOSE, DueEvents
from tests.domain.composition.compositions_given import PLAYLIST, SOURCE
from tests.projections.log.helpers import rows
from tests.support.feeding import do
from tests.workers.event.timekeeper.keeping import Keeping, composition_handlers
from tests.workers.provision.provisioned import Provisioning
from tests.workers.webhook.sender.sending import until
from workers.event.timekeeper import Rests

HOUR = 3600.0
OTHER_JOB = 1_000_000
"""A job number beyond those that the attempts of the timekeeper draw."""
GENERATING, WAITING = EventState.COMPOSE_GENERATING, EventState.COMPOSE_WAITING
_STARTED = """
SELECT split_part(o.owner, ':', 1), count(*) FROM (
    SELECT convert_from(state, 'UTF8')::json -> 'submission' ->> 'owner' AS owner FROM events WHERE topic = 'job.accepted'
) AS o GROUP BY o.owner
"""
_EARLY = """
SELECT v.id FROM events e JOIN composition_view v ON e.originator_id = 'composition:' || v.id
WHERE e.topic = 'composition.generation_started' AND e.recorded_at < v.live_stream_start
"""


async def waiting(keeping: Keeping, **seconds_by_number: float) -> None:
    """Create Events with playlists that wait for so many seconds from now. Those of the past were composed before."""
    await do(keeping.core, AddOrUpdateEvent(SOURCE, {}, mp4_state=Mp4State.AVAILABLE))
    handlers, present = composition_handlers(keeping.core), keeping.clock.now
    for name, seconds in seconds_by_number.items():
        start = keeping.seconds(seconds)
        keeping.clock.now = min(present, keeping.seconds(seconds - 1) or present)
        wanted = NewComposition(
            kind=CompositionKind.STANDARD, playlist=PLAYLIST, event_id=UUID(int=int(name[1:])), live_stream_start=start
        )
        await handlers.compose(wanted, invocation=Invocation.by("studio"))
        keeping.clock.now = present


async def test_each_film_is_made_once_at_its_time_or_late(keeping: Keeping) -> None:
    await waiting(keeping, _11=-HOUR, _12=-1, _13=2.5, _14=HOUR)
    assert keeping.in_state(WAITING) == [11, 12, 13, 14]
    assert (await DueEvents(keeping.core.database).counts())[COMPOSE] in (2, 3)  # on a busy machine the third is due by now
    async with keeping.timekeeper(), keeping.timekeeper():
        await keeping.reached(GENERATING, 11, 12, 13)
    assert keeping.in_state(WAITING) == [14]
    assert rows(keeping.url, _STARTED) == [("composition", 1)] * 3
    assert keeping.registry.get_sample_value("medialedger_timekeeper_late_seconds_count", {"action": COMPOSE}) == 3
    assert rows(keeping.url, _EARLY) == []


async def test_a_refused_composition_is_logged_once_and_retried(keeping: Keeping) -> None:
    await waiting(keeping, _11=-1, _12=-1)
    await keeping.change(11, state=EventState.LIVE_PUBLISHED)
    await do(keeping.core, MediaEvent.start_vod_job.on(UUID(int=12), OTHER_JOB, VodWorkflow.PACKAGE))
    provisioning = Provisioning(keeping.core)
    async with keeping.timekeeper() as timekeeper:
        await until(lambda: len([seconds for _, seconds in timekeeper._rests._rests.values() if seconds > Rests.FIRST]) == 2)
        [live], [busy] = [await provisioning.noted(UUID(int=number)) for number in (11, 12)]
        assert live.startswith("the schedule could not compose what was due at ")
        assert "the Event is live" in live
        assert f"job {OTHER_JOB} (vod_package) is still producing files for this Event" in busy
        await keeping.change(11, state=EventState.STOPPED)
        await do(keeping.core, MediaEvent.end_vod_job.on(UUID(int=12), OTHER_JOB, VodJobEnd.FAILED, version=4))
        await keeping.reached(GENERATING, 11, 12)
