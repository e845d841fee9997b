"""The whole path from the change of a state to media at a publishing point: the roles of one process, ffmpeg, and a server for the
ingest."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from api.wiring.core import Core
from domain.composition.aggregate import Composition
from domain.composition.values import CompositionKind, Item, ItemType, Playlist
from domain.event.aggregate import MediaEvent
from domain.event.values import EventState
from domain.record.kinds.channel import Channel
from tests.contract.encoder.ffmpeg_stage import LOCAL, SMALL, children
from tests.projections.log.helpers import rows
from tests.support.engine import once, process
from tests.support.feeding import configured, do, event, record
from tests.support.receiver import Receiver, receiving
from tests.support.sessions import force_stop, go_live, stop, until
from tests.support.sources.numbered_frames import film, numbers, probed

Migrated = tuple[str, str | None]
MAIN = UUID(int=101)
LIVE, STOPPED = EventState.LIVE_UNPUBLISHED, EventState.STOPPED
ROLES = ("timekeeper", "sessions")


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as made:
        yield made


async def given(inner: Core, receiver: Receiver, *events: int, composes: bool = False) -> list[UUID]:
    """Create a channel with one encoder that sends a test picture to two points, and Events on it."""
    points = {
        "primaryPublishingPoint": {"publishingPointUrl": receiver.point("a")},
        "secondaryPublishingPoint": {"publishingPointUrl": receiver.point("b")},
    }
    server = {"streamingServerSpecific": points}
    encoder: dict[str, Any] = {"name": "enc-1", "type": "ffmpeg", "encoderSpecific": SMALL, "streamingServer": server}
    encoder["supportsComposition"] = composes
    await record(inner, Channel, MAIN.int, **configured("main", json.dumps({"encoders": [encoder]})))
    return [await event(inner, number, channel_id=MAIN) for number in events]


def sessions(receiver: Receiver, point: str = "a") -> list[int]:
    """Return the sessions of the media that arrived, each once, in the order in which they began."""
    return list(dict.fromkeys(entry.session for entry in receiver.media(point)))


async def stopped(inner: Core, key: UUID) -> None:
    """Wait until the Event has recorded that its session sends nothing any more."""
    query = "SELECT FROM events WHERE originator_id = %s AND topic = 'event.encoder_stopped'"
    await once(lambda: inner.database.rows(query, (MediaEvent.stream(key),)), seconds=120)


async def test_an_event_goes_on_the_air_and_the_next_one_when_its_channel_is_free(
    database_url: str, migrated: Migrated, tmp_path: Path, receiver: Receiver
) -> None:
    (tmp_path / "media").mkdir()
    async with process(database_url, migrated[1], media_root=tmp_path / "media", roles=ROLES, outbound_allow=LOCAL) as inner:
        first, second = await given(inner, receiver, 1, 2)
        await go_live(inner, first)
        await until(lambda: receiver.media("a") and receiver.media("b"), seconds=120)
        await go_live(inner, second, EventState.LIVE_PUBLISHED)
        await stop(inner, first)
        await stopped(inner, first)
        await until(lambda: len(sessions(receiver)) == 2, seconds=120)
        await force_stop(inner, first)
        await stopped(inner, second)
        assert children("ffmpeg") == []
        before = len(receiver.taken)
        await asyncio.sleep(2)
        assert len(receiver.taken) == before
        numbers = [entry.session for entry in receiver.media("a")]
        assert numbers == sorted(numbers), "never two sessions at once"
        aggregate = await inner.streams.load(MediaEvent.stream(second))
        assert isinstance(aggregate, MediaEvent)
        assert aggregate.details.state is EventState.LIVE_PUBLISHED
    assert children("ffmpeg") == []


async def test_the_playlist_of_an_event_goes_on_by_the_clock_when_its_worker_is_replaced(
    database_url: str, migrated: Migrated, tmp_path: Path, receiver: Receiver
) -> None:
    """No other account may read the film of the first item."""
    source, playing = UUID(int=5), UUID(int=1)
    media = tmp_path / "media"
    (media / str(source)).mkdir(parents=True)
    film(media / f"{source}/{source}.mp4", frames=120, first=1)
    film(media / "path.mp4", frames=120, first=121)
    (media / f"{source}/{source}.mp4").chmod(0o600)
    items = (
        Item(type=ItemType.EVENT, value=str(source)),
        Item(type=ItemType.DIRECT_FULL_MP4, value="path.mp4"),
        Item(type=ItemType.DIRECT_FULL_MP4, value="gone.mp4"),
    )
    started = partial(process, database_url, migrated[1], media_root=media, roles=ROLES, outbound_allow=LOCAL)
    async with started() as inner:
        await given(inner, receiver, 1, composes=True)
        playlist = Playlist(items=items, looped=True)
        compose = Composition.compose.on(
            UUID(int=77), event_id=playing, kind=CompositionKind.ENCODER, playlist=playlist, client="admin"
        )
        await do(inner, compose)
        await go_live(inner, playing)
        await until(lambda: len(receiver.media("a")) >= 4, seconds=120)
    [(index, at)] = rows(database_url, _ANCHOR)
    begun, restarted = at - index * 4.8, time.time()
    async with started() as inner:
        await until(lambda: len(sessions(receiver)) == 2, seconds=120)
        await once(lambda: inner.database.rows(_ITEM, ("1",)), seconds=120)
        await once(lambda: inner.database.rows(_NOTE, ("item 3 of the playlist",)), seconds=120)
        await stop(inner, playing)
        await stopped(inner, playing)
    (_, first), (shown, number) = (_first_picture(receiver, tmp_path, session=session) for session in sessions(receiver))
    assert first == 1
    due = begun + (number - 1) / 25
    rounds = math.ceil((restarted - due) / 9.6)  # the two films together are 240 frames
    assert due + rounds * 9.6 < shown + 0.1, f"frame {number} was not due between the start and its picture"


_ANCHOR = "SELECT (place #>> '{0,anchor,index}')::int, (place #>> '{0,anchor,at}')::float8 FROM sessions"
_NOTE = "SELECT FROM logbook WHERE starts_with(message, %s)"
_ITEM = "SELECT FROM sessions WHERE statistics #>> '{encoders,0,playout,item}' = %s"


def _first_picture(receiver: Receiver, folder: Path, *, session: int) -> tuple[float, int]:
    """Return the time at which the first frame of a session was shown, by the time of the media, and its number."""
    taken = [entry for entry in receiver.media("a") if entry.session == session and entry.path.startswith("/a/v0-")]
    path = folder / f"{session}.mp4"
    path.write_bytes(receiver.file(f"/a/v0-{session}.mp4") + b"".join(entry.body for entry in taken))
    (packet, *_) = probed(path, "-select_streams", "v", "-show_entries", "packet=pts_time")["packets"]
    return float(packet["pts_time"]), numbers(path)[0]
