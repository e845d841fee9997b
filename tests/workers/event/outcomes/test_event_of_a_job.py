"""An Event and its job in the whole engine, from the submission to the Event and its assets."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import datetime
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from domain.asset.values import AssetState, AssetType
from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.event.values import EventState, Mp4State, Trigger, VodJobEnd
from domain.job.handlers import JobHandlers, NewJob
from domain.kernel.ports import Invocation
from domain.record.configured_record import SentConfiguration
from domain.record.kinds.channel import Channel
from domain.record.record import RegisterRecord
from projections.asset.queries import AssetQueries
from projections.job.queue import JobNumberSequence
from tests.support.engine import ENGINE, Engine, once, process
from tests.support.origin import Origin
from tests.support.services import container
from tests.support.sources.numbered_frames import film, numbers
from tests.workers.job.streamed import Streamed, moment, playlist

Migrated = tuple[str, str | None]
EVENT, CHANNEL = UUID(int=1), UUID(int=2)
MP4 = f"{EVENT}/{EVENT}.mp4"
ME = Invocation.by("admin")


@pytest.fixture
async def engine(database_url: str, migrated: Migrated, tmp_path: Path) -> AsyncIterator[Engine]:
    allow, roles = [ip_network("127.0.0.1/32")], (*ENGINE, "outcomes")
    (tmp_path / "media").mkdir()
    async with process(database_url, migrated[1], media_root=tmp_path / "media", roles=roles, outbound_allow=allow) as inner:
        yield Engine(inner, JobNumberSequence(inner.database))


async def submitted(engine: Engine, workflow: str, **parameters: Any) -> None:
    inner = engine.inner
    handlers = container(inner).get(JobHandlers)
    given = {"content_id": str(EVENT), **parameters}
    await handlers.submit_job(NewJob(client="admin", workflow=workflow, parameters=given), invocation=ME)
    assert (await event(engine)).details.state is EventState.VOD_INGESTING


async def ingested(engine: Engine, **parameters: Any) -> None:
    """Create an Event and the job that ingests a file for it."""
    added = AddOrUpdateEvent(EVENT, {"title": "Final"}, state=EventState.PRE_VOD, new=True)
    await engine.inner.executor.execute(added, invocation=ME)
    await submitted(engine, "vod_ingest", file="film.mp4", **parameters)


async def event(engine: Engine) -> MediaEvent:
    aggregate = await engine.inner.streams.load(MediaEvent.stream(EVENT))
    assert isinstance(aggregate, MediaEvent)
    return aggregate


async def event_once(engine: Engine, end: VodJobEnd) -> MediaEvent:
    async def ask() -> MediaEvent | None:
        result = await event(engine)
        job = result.details.vod_job
        return result if job is not None and job.ended is end else None

    return await once(ask)


async def assets(engine: Engine) -> set[str]:
    """Return the paths of the assets, once there are any."""

    async def ask() -> set[str] | None:
        result = await AssetQueries(engine.inner.database).of_event(EVENT)
        assert {(entry.type, entry.state) for entry in result} <= {(AssetType.SYSTEM, AssetState.COMPLETED)}
        return {entry.path for entry in result} or None

    return await once(ask)


def published(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in (root / str(EVENT)).rglob("*") if path.is_file()}


async def test_an_event_whose_job_completed_is_video_on_demand_and_has_its_files_as_assets(engine: Engine, tmp_path: Path) -> None:
    root = tmp_path / "media"
    film(root / "film.mp4", frames=25)
    await ingested(engine, publish=True)
    details = (await event_once(engine, VodJobEnd.COMPLETED)).details
    assert (details.state, details.mp4_state) == (EventState.VOD_PUBLIC, Mp4State.AVAILABLE)
    assert details.vod_file is not None
    assert (details.vod_file.duration, details.vod_file.size) == (1.0, (root / MP4).stat().st_size)
    assert details.thumbnail
    assert (root / str(EVENT) / details.thumbnail).is_file()
    assert await assets(engine) == published(root)


async def test_an_event_that_was_live_is_captured_from_the_origin_of_its_channel(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "streams").mkdir()
    files: dict[str, Any] = {**Streamed(tmp_path / "streams").files("ts"), "ts/i.m3u8": playlist(range(8))}
    async with Origin(files) as origin:
        output = {"streamProtocol": "HLS", "liveOriginPrimaryUrl": f"{origin.url}/ts/i.m3u8"}
        sent = SentConfiguration(json.dumps({"encoders": [{"name": "enc", "outputUrls": [output]}]}), {}, {})
        for command in (
            RegisterRecord(CHANNEL, Channel, {"name": "main", "configuration_json": sent}),
            AddOrUpdateEvent(EVENT, {"channel_id": CHANNEL}, state=EventState.LIVE_PUBLISHED, new=True),
            MediaEvent.change_state.on(EVENT, EventState.STOPPED, trigger=Trigger.OPERATOR),
        ):
            await engine.inner.executor.execute(command, invocation=ME)
        await submitted(engine, "vod_capture", start=moment(1), end=moment(3), frame_accurate=True)
        in_progress = (await event(engine)).details
        details = (await event_once(engine, VodJobEnd.COMPLETED)).details
    assert (in_progress.capturing_live2_vod, details.capturing_live2_vod) == (True, False)
    assert details.capture_vod_start == datetime.fromisoformat(moment(1))
    assert (details.state, details.mp4_state) == (EventState.VOD_PRIVATE, Mp4State.AVAILABLE)
    assert numbers(tmp_path / "media" / MP4) == list(range(25, 75))
    assert await assets(engine) == published(tmp_path / "media")


async def test_an_event_whose_job_failed_shows_an_error(engine: Engine) -> None:
    await ingested(engine)
    details = (await event_once(engine, VodJobEnd.FAILED)).details
    assert (details.state, details.mp4_state) == (EventState.VOD_ERROR, Mp4State.FAILED)
    assert details.vod_job is not None
    assert details.vod_job.reason == "the task fetch failed: There is no file film.mp4."
