"""Live publications that the streaming server of a channel pushes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final
from uuid import UUID

from domain.channel.channel import ChannelDocument
from domain.channel.pushing_server import PushingServer, pushing_server
from domain.channel.secrets import opened
from domain.event.ports import EventLookup
from domain.kernel.json_document import readable
from domain.kernel.ports import Vault
from domain.publication.ports import TargetAnswer
from domain.publication.row import PublicationRow
from domain.record.kinds.channel import Channel
from domain.record.ports import RecordLookup
from workers.ports.live import StreamTarget, StreamTargets, StreamTargetsUnavailable, live_face
from workers.ports.targets import TargetFailed
from workers.publication.contents import TargetContents

SECONDS: Final = 20.0
MakeStreamTargets = Callable[[PushingServer], StreamTargets]


class ChannelServers:
    """The streaming servers of channels: implements `domain.publication.ports.StreamingServers`."""

    def __init__(
        self, events: EventLookup, records: RecordLookup, *, vault: Vault, contents: TargetContents, make: MakeStreamTargets
    ) -> None:
        self._events = events
        self._records = records
        self._vault = vault
        self._contents = contents
        self._make = make

    async def channel_of(self, publication: PublicationRow) -> UUID | None:
        event = await self._events.by_id(UUID(publication.content_id))
        key = None if event is None else event.details.on_air_channel_id or event.details.channel_id
        return None if key is None or await self._of(key) is None else key

    async def start(self, publication: PublicationRow, channel_id: UUID) -> TargetAnswer:
        async def start(targets: StreamTargets, server: PushingServer) -> TargetAnswer:
            async with self._contents.opened(publication) as (target, order):
                ingest = await live_face(target).open_live(order, publication.details)
            await targets.start(StreamTarget(publication.name_at_target, server.source, ingest))
            return TargetAnswer(details=ingest.details)

        return await self._ask(channel_id, start)

    async def stop(self, publication: PublicationRow) -> TargetAnswer:
        async def stop(targets: StreamTargets, _: PushingServer) -> TargetAnswer:
            await targets.stop(publication.name_at_target)
            return TargetAnswer()

        return await self._ask(publication.served_by, stop)

    async def statistics(self, publication: PublicationRow) -> TargetAnswer:
        async def ask(targets: StreamTargets, _: PushingServer) -> TargetAnswer:
            return TargetAnswer(details=await targets.statistics(publication.name_at_target))

        return await self._ask(publication.served_by, ask)

    async def _ask(
        self, channel_id: UUID | None, ask: Callable[[StreamTargets, PushingServer], Awaitable[TargetAnswer]]
    ) -> TargetAnswer:
        server = None if channel_id is None else await self._of(channel_id)
        if server is None:
            return TargetAnswer(fault="The channel no longer has a streaming server.")
        try:
            async with asyncio.timeout(SECONDS):
                return await ask(self._make(server), server)
        except StreamTargetsUnavailable as down:
            return TargetAnswer(fault=str(down), passing=True)
        except TargetFailed as failure:
            return TargetAnswer(fault=str(failure), passing=failure.kind == "retry")
        except TimeoutError:
            return TargetAnswer(fault=f"The streaming server did not answer within {SECONDS:g} seconds.", passing=True)

    async def _of(self, channel_id: UUID) -> PushingServer | None:
        channel = await self._records.find(Channel, channel_id)
        if channel is None:
            return None
        text, owner = channel.details.configuration_json, Channel.stream(channel.id)
        if pushing_server(readable(ChannelDocument, opened(text, {}))) is None:
            return None
        read = {place: await self._vault.read(ref.reference, owner=owner) for place, ref in channel.details.secrets.items()}
        secrets = {place: secret for place, secret in read.items() if secret is not None}
        return pushing_server(readable(ChannelDocument, opened(text, secrets)))
