"""An Event and its job in the whole engine, from the submission to what the Event and its assets show."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from api.wiring.catalogue import RECORDS
from api.wiring.job_handlers import job_handlers
from domain.asset.values import AssetState, AssetType
from domain.job.handlers import NewJob
from domain.kernel.encryption import SecretCipher
from domain.kernel.ports import Invocation
from domain.media_event.aggregate import MediaEvent
from domain.media_event.commands import AddOrUpdateEvent
from domain.media_event.values import EventState, Mp4State, VodJobEnd
from projections.asset.queries import AssetQueries
from projections.job.numbers import JobNumbers
from projections.records.queries import RecordQueries
from projections.vault.vault import Vault
from tests.workers.jobs.counted import film
from tests.workers.jobs.engine import ENGINE, Engine, once, process

Migrated = tuple[str, str | None]
EVENT = UUID(int=1)
ME = Invocation.by("admin")


@pytest.fixture
async def engine(database_url: str, migrated: Migrated, tmp_path: Path) -> AsyncIterator[Engine]:
    async with process(database_url, migrated[1], media_root=tmp_path, roles=(*ENGINE, "outcomes")) as inner:
        yield Engine(inner, JobNumbers(inner.database))


async def ingested(engine: Engine, **parameters: Any) -> None:
    """An Event, and the job that ingests a file for it."""
    inner = engine.inner
    await inner.executor.execute(AddOrUpdateEvent(EVENT, {"title": "Final"}, state=EventState.PRE_VOD, new=True), invocation=ME)
    handlers = job_handlers(
        inner.database,
        inner.executor,
        streams=inner.streams,
        records=RecordQueries(inner.database, RECORDS),
        vault=Vault(inner.database, SecretCipher(bytes(32))),
        clock=inner.clock,
    )
    given = {"content_id": str(EVENT), "file": "film.mp4", **parameters}
    await handlers.submit_job(NewJob(client="admin", workflow="vod_ingest", parameters=given), invocation=ME)
    assert (await event(engine)).details.state is EventState.VOD_INGESTING


async def event(engine: Engine) -> MediaEvent:
    found = await engine.inner.streams.load(MediaEvent.stream(EVENT))
    assert isinstance(found, MediaEvent)
    return found


async def event_once(engine: Engine, end: VodJobEnd) -> MediaEvent:
    async def ask() -> MediaEvent | None:
        found = await event(engine)
        job = found.details.vod_job
        return found if job is not None and job.ended is end else None

    return await once(ask)


async def test_an_event_whose_job_completed_is_video_on_demand_and_has_its_files_as_assets(engine: Engine, tmp_path: Path) -> None:
    film(tmp_path / "film.mp4", frames=25)
    await ingested(engine, publish=True)
    details = (await event_once(engine, VodJobEnd.COMPLETED)).details
    mp4 = tmp_path / str(EVENT) / f"{EVENT}.mp4"
    assert (details.state, details.mp4_state) == (EventState.VOD_PUBLIC, Mp4State.AVAILABLE)
    assert details.vod_file is not None
    assert (details.vod_file.duration, details.vod_file.size) == (1.0, mp4.stat().st_size)
    assert details.thumbnail
    assert (tmp_path / str(EVENT) / details.thumbnail).is_file()

    async def names() -> set[str] | None:
        found = await AssetQueries(engine.inner.database).of_event(EVENT)
        assert {(one.type, one.state) for one in found} <= {(AssetType.SYSTEM, AssetState.COMPLETED)}
        return {one.path for one in found} or None

    published = {path.relative_to(tmp_path).as_posix() for path in mp4.parent.rglob("*") if path.is_file()}
    assert await once(names) == published


async def test_an_event_whose_job_failed_shows_an_error(engine: Engine) -> None:
    await ingested(engine)
    details = (await event_once(engine, VodJobEnd.FAILED)).details
    assert (details.state, details.mp4_state) == (EventState.VOD_ERROR, Mp4State.FAILED)
    assert details.vod_job is not None
    assert details.vod_job.reason == "the task fetch failed: There is no file film.mp4."
