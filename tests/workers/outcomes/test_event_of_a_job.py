"""An Event and its job in the whole engine: how the job ends is shown by the Event."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest

from domain.job.commands import AcceptJob
from domain.job.values import Submission
from domain.kernel.ports import Invocation, Plan
from domain.media_event.aggregate import MediaEvent
from domain.media_event.commands import AddOrUpdateEvent, StartVodJob
from domain.media_event.values import EventState, Mp4State, VodJobEnd, VodWorkflow
from projections.job.numbers import JobNumbers
from tests.workers.jobs.counted import film
from tests.workers.jobs.engine import ENGINE, Engine, once, process
from workers.jobs.registry import installed

Migrated = tuple[str, str | None]
EVENT = UUID(int=1)


@pytest.fixture
async def engine(database_url: str, migrated: Migrated, tmp_path: Path) -> AsyncIterator[Engine]:
    async with process(database_url, migrated[1], media_root=tmp_path, roles=(*ENGINE, "outcomes")) as inner:
        yield Engine(inner, JobNumbers(inner.database))


async def owned(engine: Engine) -> int:
    """A job that makes a picture, with an Event as its owner. Any job will do: the Event only hears how it ends."""
    number = await engine.numbers.draw()
    parameters = {"content_id": str(EVENT), "source": "source.mp4", "name": "poster.jpg", "time": "00:00:00.500"}
    workflow, _ = installed().checked("asset_image", parameters)
    submission = Submission(
        client="admin",
        workflow="asset_image",
        content_id=str(EVENT),
        parameters=parameters,
        tasks=workflow.graph(),
        owner=MediaEvent.stream(EVENT),
    )

    async def plan() -> Plan:
        return Plan((StartVodJob(EVENT, number, VodWorkflow.INGEST, publish=True), AcceptJob(number, submission)))

    added = AddOrUpdateEvent(EVENT, {"title": "Final"}, state=EventState.PRE_VOD, new=True)
    await engine.inner.executor.execute(added, invocation=Invocation.by("admin"))
    await engine.inner.executor.execute(plan, invocation=Invocation.by("admin"))
    return number


async def event_once(engine: Engine, end: VodJobEnd) -> MediaEvent:
    async def ask() -> MediaEvent | None:
        found = await engine.inner.streams.load(MediaEvent.stream(EVENT))
        assert isinstance(found, MediaEvent)
        job = found.details.vod_job
        return found if job is not None and job.ended is end else None

    return await once(ask)


async def test_an_event_whose_job_completed_is_video_on_demand(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / str(EVENT)).mkdir()
    film(tmp_path / str(EVENT) / "source.mp4", frames=25)
    await owned(engine)
    event = await event_once(engine, VodJobEnd.COMPLETED)
    assert (tmp_path / str(EVENT) / "poster.jpg").is_file()
    assert (event.details.state, event.details.mp4_state) == (EventState.VOD_PUBLIC, Mp4State.AVAILABLE)


async def test_an_event_whose_job_failed_shows_an_error(engine: Engine) -> None:
    await owned(engine)
    event = await event_once(engine, VodJobEnd.FAILED)
    assert (event.details.state, event.details.mp4_state) == (EventState.VOD_ERROR, Mp4State.FAILED)
    assert event.details.vod_job is not None
    assert event.details.vod_job.reason == f"the task make failed: There is no file {EVENT}/source.mp4."
