"""Use cases of live publications over in-memory twins."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from domain.destination.targets import Target
from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.event.values import EventState, Trigger
from domain.kernel.errors import Malformed, PreconditionFailed
from domain.kernel.ports import Invocation
from domain.publication.aggregate import Publication
from domain.publication.live_handlers import LivePublicationHandlers, NewStream, RequestedLive
from domain.publication.ports import TargetCall
from domain.publication.sources import ChannelSources
from domain.publication.values import PublicationState
from domain.record.configured_record import SentConfiguration
from domain.record.kinds.channel import Channel
from domain.record.kinds.destination import Destination
from domain.record.record import RegisterRecord
from tests.domain.memory import Memory
from tests.domain.publication.memory_publications import MemoryContents, NoServers, ports_of

ME = Invocation.by("studio")
STALE = Invocation(ME.cause, if_match=frozenset({7}))
EVENT, CHANNEL, TUBE, SERVER = UUID(int=1), UUID(int=2), UUID(int=11), UUID(int=12)
STREAM = {"streamProtocol": "HLS", "liveOriginPrimaryUrl": "https://origin.test/live/{contentId}/master.m3u8"}


def configuration(document: dict[str, Any]) -> SentConfiguration:
    return SentConfiguration(json.dumps(document), {}, {})


@pytest.fixture
async def memory() -> Memory:
    memory = Memory()
    channel = configuration({"encoders": [{"name": "e", "type": "ffmpeg", "outputUrls": [STREAM]}]})
    tube = {"name": "Tube", "target": Target.YOUTUBE, "configuration_json": configuration({})}
    await memory.given(
        RegisterRecord(CHANNEL, Channel, {"name": "main", "configuration_json": channel}, new=True),
        AddOrUpdateEvent(EVENT, {"title": "Final", "channel_id": CHANNEL}, new=True),
        MediaEvent.change_state.on(EVENT, EventState.LIVE_PUBLISHED, trigger=Trigger.OPERATOR),
        RegisterRecord(TUBE, Destination, tube, new=True),
        Destination.amend.on(TUBE, {"active": True}),
    )
    return memory


@pytest.fixture
def contents() -> MemoryContents:
    return MemoryContents()


@pytest.fixture
def handlers(memory: Memory, contents: MemoryContents) -> LivePublicationHandlers:
    return LivePublicationHandlers(ports_of(memory, contents), sources=ChannelSources(memory.records), servers=NoServers())


async def made(handlers: LivePublicationHandlers, text: str = "{}") -> RequestedLive:
    outcome = await handlers.create(EVENT, [NewStream(TUBE, text)], start=False, invocation=ME)
    return RequestedLive(UUID(outcome.aggregate.key), TUBE, hard=True)


def stored(memory: Memory, entry: RequestedLive) -> Publication:
    root = memory.log.load(Publication.stream(entry.publication_id))
    assert isinstance(root, Publication)
    return root


async def test_with_a_stale_if_match_the_target_is_not_called(
    memory: Memory, handlers: LivePublicationHandlers, contents: MemoryContents
) -> None:
    entry = await made(handlers)
    for write in (
        handlers.start(EVENT, entry, invocation=STALE),
        handlers.show(EVENT, entry, published=True, invocation=STALE),
    ):
        with pytest.raises(PreconditionFailed):
            await write
    assert (contents.asked, stored(memory, entry).state) == ([], PublicationState.Scheduled)
    fresh = Invocation(ME.cause, if_match=frozenset({stored(memory, entry).version}))
    await handlers.start(EVENT, entry, invocation=fresh)
    with pytest.raises(PreconditionFailed):
        await handlers.stop(EVENT, entry, invocation=fresh)
    await handlers.stop(EVENT, entry, invocation=ME)
    for write in (
        handlers.recreate(EVENT, entry, remove_original=True, invocation=STALE),
        handlers.delete(EVENT, entry, invocation=STALE),
    ):
        with pytest.raises(PreconditionFailed):
            await write
    assert [call for call, _ in contents.asked] == [TargetCall.OPEN]
    await handlers.recreate(EVENT, entry, remove_original=True, invocation=ME)
    with pytest.raises(PreconditionFailed):
        await handlers.delete(EVENT, entry, invocation=STALE)
    assert [call for call, _ in contents.asked] == [TargetCall.OPEN, TargetCall.CLOSE, TargetCall.DELETE]


@pytest.mark.parametrize("name", [{}, {"cstm_streamName": None}, {"cstm_streamName": ""}])
async def test_another_server_needs_a_key_of_its_own(
    memory: Memory, handlers: LivePublicationHandlers, name: dict[str, Any]
) -> None:
    server = configuration({"cstm_streamUrl": "rtmp://partner.test/live", "cstm_streamName": None})
    await memory.given(
        RegisterRecord(SERVER, Destination, {"name": "S", "target": Target.CUSTOM, "configuration_json": server}, new=True)
    )
    elsewhere = {"cstm_streamUrl": "rtmp://other.test/live"}

    async def create(text: dict[str, Any]) -> Any:
        return await handlers.create(EVENT, [NewStream(SERVER, json.dumps(text))], start=False, invocation=ME)

    with pytest.raises(Malformed) as refused:
        await create({**elsewhere, **name})
    assert [error.field for error in refused.value.errors] == ["publications[0].publicationJson.cstm_streamName"]
    assert memory.topics == []
    await create({**elsewhere, "cstm_streamName": "own"})
    await create({"cstm_streamUrl": "rtmp://partner.test:1935/other", **name})


async def test_a_new_one_is_started_once_whatever_becomes_of_it(
    memory: Memory, handlers: LivePublicationHandlers, contents: MemoryContents
) -> None:
    entry = await made(handlers)
    created = stored(memory, entry).version

    async def start_new() -> PublicationState:
        return (await handlers.start_new(EVENT, entry, version=created, invocation=ME)).aggregate.state

    assert (await start_new(), await start_new()) == (PublicationState.InProgress, PublicationState.InProgress)
    await handlers.stop(EVENT, entry, invocation=ME)
    assert await start_new() is PublicationState.Completed
    await handlers.recreate(EVENT, entry, remove_original=False, invocation=ME)
    assert await start_new() is PublicationState.Scheduled
    assert [call for call, _ in contents.asked] == [TargetCall.OPEN, TargetCall.CLOSE]
