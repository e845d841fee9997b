"""A protected film in the whole engine: its Event shows the result, and the key is in no stored value."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.event.values import EventState, Mp4State
from domain.job.handlers import JobHandlers, NewJob
from domain.kernel.ports import Invocation
from projections.job.queue import JobNumberSequence
from tests.projections.content_key.issuing import handlers_on, issue_one, key_request
from tests.support.engine import ENGINE, Engine, once, process
from tests.support.packages import published
from tests.support.services import container
from tests.support.sources.numbered_frames import film, numbers, tool
from tests.workers.job.sources import BOTH, FRAMES, H264, TONE

Migrated = tuple[str, str | None]
EVENT = uuid4()
ADMIN = Invocation.by("admin")


@pytest.fixture
async def engine(database_url: str, migrated: Migrated, tmp_path: Path) -> AsyncIterator[Engine]:
    async with process(database_url, migrated[1], media_root=tmp_path / "media", roles=(*ENGINE, "outcomes")) as inner:
        yield Engine(inner, JobNumberSequence(inner.database))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a media root that is open to the account of steps."""
    root = tmp_path / "media"
    (root / "in").mkdir(parents=True)
    film(root / "in/film.mkv", *BOTH, *H264, "-c:a", "aac", frames=FRAMES, inputs=TONE)
    for path in (root, root / "in", root / "in/film.mkv"):
        path.chmod(0o755)
    return root


async def submit(engine: Engine) -> int:
    """Submit a job as a client does."""
    inner = engine.inner
    handlers = container(inner).get(JobHandlers)
    parameters = {"content_id": str(EVENT), "file": "in/film.mkv", "publish": True}
    return (
        await handlers.submit_job(NewJob(client="studio", workflow="vod_ingest", parameters=parameters), invocation=ADMIN)
    ).aggregate.number


async def public(engine: Engine) -> MediaEvent:
    async def ask() -> MediaEvent | None:
        event = await engine.inner.streams.load(MediaEvent.stream(EVENT))
        assert isinstance(event, MediaEvent)
        return event if event.details.state is EventState.VOD_PUBLIC else None

    return await once(ask)


async def test_an_event_with_drm_is_ingested_encrypted(root: Path, engine: Engine, tmp_path: Path) -> None:
    inner = engine.inner
    changes = {"vod_drm": True}
    await inner.executor.execute(AddOrUpdateEvent(EVENT, changes, state=EventState.PRE_VOD, new=True), invocation=ADMIN)
    number = await submit(engine)
    job = await engine.ended(number, seconds=120)
    assert not job.failed, job.reason
    event = await public(engine)
    key = await issue_one(handlers_on(inner), key_request(str(EVENT), "studio"))
    assert (event.details.mp4_state, event.details.thumbnail) == (Mp4State.AVAILABLE, "thumbnail.jpg")
    drm = json.loads(event.details.drm_json or "")
    assert [(entry["name"], entry["key_id"]) for entry in drm["drm_data"]] == [("CENC", str(key.kid)), ("FAIRPLAY", str(key.kid))]
    texts = await inner.database.rows("SELECT convert_from(state, 'UTF8') FROM events")
    lines = await inner.database.rows("SELECT message FROM job_log_lines")
    assert str(key.kid) in str(texts)
    assert key.key.hex() not in f"{texts}{lines}"
    names = published(root, str(EVENT))
    assert {name.rpartition("/")[0] for name in names} == {"", "cenc", "cbcs"}
    assert f"{EVENT}.mp4" in names
    assert decrypted(root / str(EVENT) / "cbcs/video-96.mp4", key.key, tmp_path / "plain.mp4") == list(range(FRAMES))

    async def tidy() -> bool:
        return not (root / ".jobs" / str(number)).exists()

    await once(tidy)  # that is done after the end of the job is told


def decrypted(path: Path, key: bytes, plain: Path) -> list[int]:
    given = ["-decryption_key", key.hex(), "-i", str(path), "-c", "copy", str(plain)]
    subprocess.run([tool("ffmpeg"), "-v", "error", *given], check=True)
    return numbers(plain)
