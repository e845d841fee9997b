"""The metadata file over in-memory twins: what is a good one, and what the Event takes over."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from domain.event import events
from domain.event.aggregate import MediaEvent
from domain.event.asset_sync import AssetSync
from domain.event.commands import AddOrUpdateEvent
from domain.event.metadata_file import LARGEST, BrokenMetadata, parsed
from domain.event.values import EventState, Mp4State, Trigger, VodFile
from domain.event.vod_metadata import VodMetadataHandlers
from domain.kernel.errors import DomainError, Malformed, NotFound, PreconditionFailed, Refused
from domain.kernel.idempotency import IdempotencyKey
from domain.kernel.ports import Invocation
from tests.domain.media_files import MODIFIED, MemoryMediaFiles
from tests.domain.memory import Memory
from tests.domain.scenario import fact

ME = Invocation.by("studio")
EVENT = UUID("11111111-1111-4111-8111-111111111111")
PATH, MP4 = f"{EVENT}/metadata.json", f"{EVENT}/{EVENT}.mp4"


def document(**changes: Any) -> dict[str, Any]:
    files = [{"name": f"{EVENT}.mp4", "size": 7}, {"name": "hls/main.m3u8", "size": 0}]
    given = {"contentId": str(EVENT), "duration": 12.5, "files": files, **changes}
    return {name: value for name, value in given.items() if value is not ...}


def text(**changes: Any) -> bytes:
    return json.dumps(document(**changes)).encode()


class Assets:
    """The twin of the synchronisation of assets."""

    def __init__(self, refusal: DomainError | None = None) -> None:
        self.refusal = refusal
        self.synchronised: list[tuple[UUID, Invocation]] = []

    async def __call__(self, event_id: UUID, *, invocation: Invocation) -> object:
        self.synchronised.append((event_id, invocation))
        if self.refusal is not None:
            raise self.refusal
        return None


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def files() -> MemoryMediaFiles:
    return MemoryMediaFiles()


def handlers(memory: Memory, files: MemoryMediaFiles, assets: Assets | None = None) -> VodMetadataHandlers:
    return VodMetadataHandlers(memory.executor, memory.events, files=files, assets=AssetSync(assets or Assets(), memory.notes))


async def an_event(memory: Memory, state: EventState = EventState.VOD_PRIVATE) -> None:
    await memory.given(AddOrUpdateEvent(EVENT, {}, new=True), MediaEvent.change_state.on(EVENT, state, trigger=Trigger.OPERATOR))


class TestSync:
    async def test_the_event_takes_over_length_and_file_and_the_assets_follow(
        self, memory: Memory, files: MemoryMediaFiles
    ) -> None:
        await an_event(memory)
        files.put(PATH, text())
        files.put(MP4, b"12345678")
        assets = Assets()
        keyed = Invocation(ME.cause, idempotency=IdempotencyKey("studio", "a", b"b"))
        await handlers(memory, files, assets).sync_metadata(EVENT, invocation=keyed)
        assert memory.happened == [
            fact(events.VodFileChanged, vod_file=VodFile(duration=12.5, size=8, modified=MODIFIED)),
            fact(events.Mp4StateChanged, mp4_state=Mp4State.AVAILABLE, previous=Mp4State.NONE),
        ]
        assert assets.synchronised == [(EVENT, ME)], "the key is that of the first append"

    @pytest.mark.parametrize(
        ("listed", "there", "expected"),
        [
            (True, True, Mp4State.AVAILABLE),
            (True, False, Mp4State.AVAILABLE),
            (False, True, Mp4State.AVAILABLE),
            (False, False, Mp4State.NONE),
        ],
    )
    async def test_an_mp4_is_available_where_it_is_listed_or_there(
        self, memory: Memory, files: MemoryMediaFiles, listed: bool, there: bool, expected: Mp4State
    ) -> None:
        await an_event(memory)
        files.put(PATH, text() if listed else text(files=[]))
        if there:
            files.put(MP4, b"1")
        outcome = await handlers(memory, files).sync_metadata(EVENT, invocation=ME)
        assert outcome.aggregate.details.mp4_state is expected

    async def test_a_repeat_changes_nothing(self, memory: Memory, files: MemoryMediaFiles) -> None:
        await an_event(memory)
        files.put(PATH, text())
        for _ in range(2):
            await handlers(memory, files).sync_metadata(EVENT, invocation=ME)
        assert memory.topics == ["event.vod_file_changed", "event.mp4_state_changed"]

    async def test_assets_that_cannot_be_synchronised_are_noted(self, memory: Memory, files: MemoryMediaFiles) -> None:
        await an_event(memory)
        files.put(PATH, text())
        await handlers(memory, files, Assets(Refused("too many files"))).sync_metadata(EVENT, invocation=ME)
        assert memory.notes.written == [(str(EVENT), "The assets were not synchronised: too many files")]

    async def test_without_an_event_it_is_bad_input(self, memory: Memory, files: MemoryMediaFiles) -> None:
        files.put(PATH, text())
        with pytest.raises(Malformed, match="there is no such Event"):
            await handlers(memory, files).sync_metadata(EVENT, invocation=ME)
        await an_event(memory)
        await memory.given(MediaEvent.delete.on(EVENT))
        with pytest.raises(Malformed, match="there is no such Event"):
            await handlers(memory, files).sync_metadata(EVENT, invocation=ME)

    async def test_an_event_that_is_deleted_meanwhile_is_bad_input(self, memory: Memory, files: MemoryMediaFiles) -> None:
        await an_event(memory)
        files.put(PATH, text())
        memory.meanwhile(MediaEvent.delete.on(EVENT))
        with pytest.raises(Malformed, match="there is no such Event"):
            await handlers(memory, files).sync_metadata(EVENT, invocation=ME)

    async def test_the_state_is_looked_at_before_the_file(self, memory: Memory, files: MemoryMediaFiles) -> None:
        await an_event(memory, EventState.STOPPED)
        with pytest.raises(Malformed, match="STOPPED has no metadata"):
            await handlers(memory, files).sync_metadata(EVENT, invocation=ME)

    @pytest.mark.parametrize(
        "meanwhile", [MediaEvent.change_state.on(EVENT, EventState.STOPPED, trigger=Trigger.OPERATOR), MediaEvent.delete.on(EVENT)]
    )
    async def test_an_event_that_changes_meanwhile_is_decided_on_again(
        self, memory: Memory, files: MemoryMediaFiles, meanwhile: Any
    ) -> None:
        await an_event(memory)
        files.put(PATH, text())
        memory.meanwhile(meanwhile)
        with pytest.raises(Malformed):
            await handlers(memory, files).sync_metadata(EVENT, invocation=ME)

    async def test_an_outdated_if_match_is_told_before_what_is_wrong_with_the_file(
        self, memory: Memory, files: MemoryMediaFiles
    ) -> None:
        await an_event(memory)
        for content in (b"{", text()):
            files.put(PATH, content)
            with pytest.raises(PreconditionFailed):
                await handlers(memory, files).sync_metadata(EVENT, invocation=replace(ME, if_match=frozenset({7})))
        assert memory.topics == []

    @pytest.mark.parametrize("content", [None, b"{"])
    async def test_a_missing_or_broken_file_is_refused(
        self, memory: Memory, files: MemoryMediaFiles, content: bytes | None
    ) -> None:
        await an_event(memory)
        if content is not None:
            files.put(PATH, content)
        with pytest.raises(Refused):
            await handlers(memory, files).sync_metadata(EVENT, invocation=ME)
        assert memory.topics == []


class TestRead:
    async def test_the_file_is_given_as_it_is(self, memory: Memory, files: MemoryMediaFiles) -> None:
        await an_event(memory, EventState.PRE_LIVE)
        files.put(PATH, b" " + text(extra=[1.50]))
        assert await handlers(memory, files).metadata(EVENT) == b" " + text(extra=[1.50])

    async def test_without_event_or_file_there_is_none(self, memory: Memory, files: MemoryMediaFiles) -> None:
        files.put(PATH, text())
        with pytest.raises(NotFound):
            await handlers(memory, files).metadata(EVENT)
        await an_event(memory)
        with pytest.raises(NotFound):
            await handlers(memory, MemoryMediaFiles()).metadata(EVENT)

    async def test_a_file_of_one_mebibyte_is_read_and_no_larger_one(self, memory: Memory, files: MemoryMediaFiles) -> None:
        await an_event(memory)
        files.put(PATH, text().ljust(LARGEST))
        assert len(await handlers(memory, files).metadata(EVENT)) == LARGEST
        files.put(PATH, text().ljust(LARGEST + 1))
        with pytest.raises(BrokenMetadata, match="has more than 1048576 bytes"):
            await handlers(memory, files).metadata(EVENT)


@pytest.mark.parametrize("name", [".", "..", "../a.mp4", "a/../b", "/a", "a//b", "", "a/", "..\\a", 7, None, "./a"])
def test_a_name_stays_in_the_folder(name: Any) -> None:
    with pytest.raises(BrokenMetadata, match=r"^metadata\.json of the Event is invalid at files\[1\]: the name must be a path"):
        parsed(text(files=[{"name": "a..b/.c.mp4", "size": 0}, {"name": name, "size": 1}]), content_id=str(EVENT))


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"[]",
        b"null",
        b"\xff",
        text() + b"x",
        text(contentId=str(UUID(int=3))),
        text(contentId=...),
        text(duration=...),
        text(duration="12"),
        text(duration=True),
        text(duration=-0.5),
        text().replace(b"12.5", b"NaN"),
        text().replace(b"12.5", b"1e999"),
        text(files=...),
        text(files={}),
        text(files=[3]),
        text(files=[{"name": "a"}]),
        text(files=[{"name": "a", "size": -1}]),
        text(files=[{"name": "a", "size": 1.5}]),
        text(files=[{"name": "a", "size": True}]),
        b'{"a":' * 250 + b"1" + b"}" * 250,
    ],
)
def test_everything_else_is_broken(broken: bytes) -> None:
    with pytest.raises(BrokenMetadata):
        parsed(broken, content_id=str(EVENT))


def test_a_whole_number_of_seconds_is_a_length() -> None:
    assert parsed(text(duration=3), content_id=str(EVENT)).duration == 3.0
