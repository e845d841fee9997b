"""A job with an owner in the whole engine: its file is published, and then its owner is notified, however the job ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from domain.job.aggregate import Job
from domain.job.values import Submission
from domain.kernel.ports import Invocation, Plan
from domain.record.kinds.room import Room
from domain.record.record import RegisterRecord
from projections.job.queue import JobNumberSequence
from tests.support.engine import ENGINE, Engine, once, process
from tests.support.sources.numbered_frames import film, numbers
from tests.workers.event.outcomes.owned_jobs import ROOM, names, rename
from workers.job.registry import installed

Migrated = tuple[str, str | None]


@pytest.fixture
async def engine(database_url: str, migrated: Migrated, tmp_path: Path) -> AsyncIterator[Engine]:
    roles = (*ENGINE, "outcomes")
    async with process(database_url, migrated[1], media_root=tmp_path, roles=roles, owners={Room.KIND: rename}) as inner:
        yield Engine(inner, JobNumberSequence(inner.database))


async def owned(engine: Engine, **more: Any) -> int:
    """Create a room, and the job that makes a picture for it, in one append."""
    number = await engine.numbers.draw()
    parameters = {"content_id": "match", "source": "match.mp4", "name": "assets/goal.jpg", "time": "00:00:00.500", **more}
    workflow, _ = installed().checked("asset_image", parameters)
    submission = Submission(
        client="admin",
        workflow="asset_image",
        content_id="match",
        parameters=parameters,
        tasks=workflow.graph(),
        owner=Room.stream(ROOM),
    )

    async def plan() -> Plan:
        return Plan((RegisterRecord(ROOM, Room, {"name": "requested"}), Job.accept.on(number, submission)))

    await engine.inner.executor.execute(plan, invocation=Invocation.by("admin"))
    return number


def published(root: Path) -> list[Path]:
    return list(root.glob("match/**/*"))


async def reports(engine: Engine, start: str) -> list[str]:
    """Return all names of the room, once the last one begins with this text."""

    async def ask() -> list[str] | None:
        result = await names(engine.inner)
        return result if result[-1].startswith(start) else None

    return await once(ask)


async def test_the_file_is_there_when_its_owner_is_told(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "match").mkdir()
    film(tmp_path / "match/match.mp4", frames=25)
    number = await owned(engine)
    picture = tmp_path / "match/assets/goal.jpg"
    result = await reports(engine, "completed")
    assert result == ["requested", f"completed {number} match/assets/goal.jpg {picture.stat().st_size}"]
    assert numbers(picture) == [12]


async def test_an_owner_is_told_of_a_failure_and_nothing_is_published(engine: Engine, tmp_path: Path) -> None:
    number = await owned(engine)
    assert await reports(engine, "failed") == ["requested", f"failed {number}"]
    assert (await engine.job(number)).reason == "the task make failed: There is no file match/match.mp4."
    assert not published(tmp_path)


async def test_an_owner_is_told_of_a_job_that_is_broken_off(engine: Engine) -> None:
    number = await owned(engine, source="none.mp4")
    await reports(engine, "failed")
    await engine.do(Job.break_off.on(number))
    assert await reports(engine, "broken") == ["requested", f"failed {number}", f"broken {number}"]
