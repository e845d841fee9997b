"""Use cases of tags, playlists and archiver streams over in-memory twins."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from domain.event.commands import AddOrUpdateEvent
from domain.kernel.errors import ClaimTaken, Malformed, NotFound
from domain.kernel.ports import Invocation
from domain.record.handlers import ArchiverStreamHandlers, PlaylistHandlers, TagHandlers
from domain.record.kinds.playlist import Playlist
from domain.record.kinds.tag import Tag
from domain.record.record import RegisterRecord
from tests.domain.memory import Memory
from tests.domain.scenario import NOW

KEY, OTHER, EVENT, UNKNOWN = UUID(int=1), UUID(int=2), UUID(int=3), UUID(int=9)
ME = Invocation.by("me")


@pytest.fixture
def memory() -> Memory:
    return Memory()


async def test_a_name_that_exists_is_its_tag(memory: Memory) -> None:
    tags = TagHandlers(memory.executor, memory.records)
    await memory.given(RegisterRecord(KEY, Tag, {"name": "football"}))
    assert (await tags.add_or_rename(None, "football", invocation=ME)).aggregate.key == str(KEY)
    assert (await tags.add_or_rename(None, "Football", invocation=ME)).aggregate.key != str(KEY)
    assert memory.topics == ["tag.registered"]


async def test_a_tag_that_another_request_makes_meanwhile_is_used(memory: Memory) -> None:
    tags = TagHandlers(memory.executor, memory.records)
    memory.meanwhile(RegisterRecord(KEY, Tag, {"name": "football"}))
    assert (await tags.add_or_rename(None, "football", invocation=ME)).aggregate.key == str(KEY)
    memory.meanwhile(Tag.amend.on(KEY, {"name": "soccer"}))
    await tags.add_or_rename(None, "football", invocation=ME)
    assert memory.topics[:2] == ["tag.registered", "tag.amended"]


async def test_a_key_renames_its_tag_unless_another_has_the_name(memory: Memory) -> None:
    tags = TagHandlers(memory.executor, memory.records)
    await memory.given(RegisterRecord(KEY, Tag, {"name": "football"}))
    await tags.add_or_rename(OTHER, "handball", invocation=ME)
    with pytest.raises(ClaimTaken):
        await tags.add_or_rename(OTHER, "football", invocation=ME)
    await tags.add_or_rename(OTHER, "hockey", invocation=ME)
    assert memory.topics == ["tag.registered", "tag.amended"]


async def test_an_item_needs_an_event_and_a_playlist_and_is_of_one_playlist(memory: Memory) -> None:
    playlists = PlaylistHandlers(memory.executor, memory.records, events=memory.events)
    await memory.given(
        AddOrUpdateEvent(EVENT, {"title": "Final"}, new=True),
        *(RegisterRecord(key, Playlist, {"name": "Best of"}) for key in (KEY, OTHER)),
    )
    with pytest.raises(Malformed, match="eventId: there is no such event"):
        await playlists.add_item(UNKNOWN, UNKNOWN, start_time=NOW, invocation=ME)
    with pytest.raises(NotFound):
        await playlists.add_item(UNKNOWN, EVENT, start_time=NOW, invocation=ME)
    item = UUID((await playlists.add_item(KEY, EVENT, start_time=NOW, invocation=ME)).aggregate.key)
    with pytest.raises(NotFound):
        await playlists.delete_item(OTHER, item, invocation=ME)
    await playlists.delete_item(KEY, item, invocation=ME)
    assert memory.topics == ["playlist_item.registered", "playlist_item.deleted"]


class Counter:
    """Numbers from 1."""

    def __init__(self) -> None:
        self._drawn = 0

    async def draw(self) -> int:
        self._drawn += 1
        return self._drawn


async def test_archiver_streams_are_numbered_and_their_times_are_checked_first(memory: Memory) -> None:
    streams = ArchiverStreamHandlers(memory.executor, Counter())
    values = {"profile_id": "p", "capture_id": "c", "start_time": NOW, "end_time": NOW, "ism_url": "http://a.example/c.ism"}
    assert [(await streams.add(values, invocation=ME)).aggregate.key for _ in range(2)] == ["1", "2"]
    with pytest.raises(Malformed, match="endTime"):
        await streams.change(9, {"start_time": NOW, "end_time": NOW - timedelta(hours=1)}, invocation=ME)
    with pytest.raises(NotFound):
        await streams.change(9, {"uploaded": True}, invocation=ME)
    await streams.change(2, {"uploaded": True}, invocation=ME)
    assert memory.topics == ["archiver_stream.registered"] * 2 + ["archiver_stream.amended"]
