"""From the change of a state to media at a publishing point: the roles of one process, ffmpeg, and a server for the ingest."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from api.wiring.core import Core
from domain.media_event.aggregate import MediaEvent
from domain.media_event.commands import ChangeEventState, ForceStopEvent
from domain.media_event.values import EventState
from domain.records.kinds.channel import Channel
from tests.contract.encoder.ffmpeg_stage import LOCAL, SMALL, children
from tests.projections.feeding import configured, do, event, record
from tests.workers.encoders.receiver import Receiver, receiving
from tests.workers.jobs.engine import once, process
from tests.workers.sessions.memory import until

Migrated = tuple[str, str | None]
MAIN = UUID(int=101)
LIVE, STOPPED = EventState.LIVE_UNPUBLISHED, EventState.STOPPED
ROLES = ("encoding", "sessions")


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as made:
        yield made


async def given(inner: Core, receiver: Receiver, *events: int) -> list[UUID]:
    """A channel with one encoder that sends a test picture to two points, and Events on it."""
    points = {
        "primaryPublishingPoint": {"publishingPointUrl": receiver.point("a")},
        "secondaryPublishingPoint": {"publishingPointUrl": receiver.point("b")},
    }
    server = {"streamingServerSpecific": points}
    encoder: dict[str, Any] = {"name": "enc-1", "type": "ffmpeg", "encoderSpecific": SMALL, "streamingServer": server}
    await record(inner, Channel, MAIN.int, **configured("main", json.dumps({"encoders": [encoder]})))
    return [await event(inner, number, channel_id=MAIN) for number in events]


def sessions(receiver: Receiver, point: str = "a") -> list[int]:
    """The sessions of the media that arrived, each once, in the order in which they began."""
    return list(dict.fromkeys(one.session for one in receiver.media(point)))


async def stopped(inner: Core, key: UUID) -> None:
    """Until the Event has heard that its session sends nothing any more."""
    query = "SELECT FROM events WHERE originator_id = %s AND topic = 'event.encoder_stopped'"
    await once(lambda: inner.database.rows(query, (MediaEvent.stream(key),)), seconds=120)


async def test_a_change_of_state_puts_a_picture_on_the_air_and_another_takes_it_off(
    database_url: str, migrated: Migrated, tmp_path: Path, receiver: Receiver
) -> None:
    (tmp_path / "media").mkdir()
    async with process(database_url, migrated[1], media_root=tmp_path / "media", roles=ROLES, outbound_allow=LOCAL) as inner:
        first, second = await given(inner, receiver, 1, 2)
        await do(inner, ChangeEventState(first, LIVE))
        await until(lambda: receiver.media("a") and receiver.media("b"), seconds=120)
        await do(inner, ChangeEventState(second, LIVE))
        await do(inner, ChangeEventState(first, STOPPED))
        await stopped(inner, first)
        assert len(sessions(receiver)) == 1, "the second Event was not started"
        await do(inner, ChangeEventState(second, EventState.LIVE_PUBLISHED))
        await until(lambda: len(sessions(receiver)) == 2, seconds=120)
        await do(inner, ForceStopEvent(first))
        await stopped(inner, second)
        assert children("ffmpeg") == []
        before = len(receiver.taken)
        await asyncio.sleep(2)
        assert len(receiver.taken) == before
        numbers = [one.session for one in receiver.media("a")]
        assert numbers == sorted(numbers), "never two sessions at once"
        found = await inner.streams.load(MediaEvent.stream(second))
        assert isinstance(found, MediaEvent)
        assert found.details.state is EventState.LIVE_PUBLISHED
    assert children("ffmpeg") == []
