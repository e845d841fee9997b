"""Answers that show Events: names of links found once for all of them, the Video object where a single read asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from api.kernel.answer import Answer
from api.kernel.call import Call
from api.kernel.pages import page_body
from api.media.event.shape import NOTHING_LINKED, Linked, shaped
from api.media.event.wire import PlaybackQuery
from domain.kernel.errors import NotFound
from domain.media_event.aggregate import MediaEvent
from domain.media_event.links import links_of
from domain.media_event.playback import (
    PlayableEvent,
    PlaybackRequest,
    PlayerAddresses,
    StreamSource,
    Video,
    channel_configuration,
    flow_configuration,
    flow_links,
    video,
)
from domain.media_event.stream_point import requested_stream_time
from domain.records.kinds.category import Category
from domain.records.kinds.custom_property import CategoryProperty
from projections.custom_property.queries import PropertyQueries
from projections.kernel.page import Page
from projections.media_event.queries import EventRow
from projections.records.queries import RecordQueries


class EventAnswers:
    """Turns Events into answers."""

    def __init__(self, records: RecordQueries, properties: PropertyQueries) -> None:
        self._records = records
        self._properties = properties

    async def written(self, call: Call, event: MediaEvent, *, status: int = 200) -> Answer:
        """After a write: the Event as a GET would give it now."""
        row = EventRow.of(event)
        return Answer(status, shaped(row, await self._linked([row]), base_url=call.base_url), etag=row.version)

    async def single(self, call: Call, row: EventRow | None, *, key: object, query: PlaybackQuery) -> Answer:
        """A single read; 204 where the route says so when there is none."""
        request = playback_request(query)
        if row is None:
            raise NotFound(MediaEvent.KIND, str(key))
        shown = await self._video(row, request) if query.process_video else None
        return Answer(200, shaped(row, await self._linked([row]), base_url=call.base_url, video=shown), etag=row.version)

    async def listed(self, call: Call, page: Page[EventRow]) -> Answer:
        linked = await self._linked(page.results)
        return Answer(200, page_body(page, [shaped(row, linked, base_url=call.base_url) for row in page.results]))

    async def _linked(self, rows: Sequence[EventRow]) -> Linked:
        """What all of them point at, found at once; nothing is asked for Events that point at nothing."""
        links = {link for row in rows for link in links_of(row.details) if link[0] != "tag"}
        if not links:
            return NOTHING_LINKED
        categories = [key for kind, key in links if kind == Category.KIND]
        records = await self._records.shown(links)
        return Linked(records, await self._properties.of_owners(CategoryProperty.KIND, categories) if categories else {})

    async def _video(self, row: EventRow, request: PlaybackRequest) -> Video:
        details = row.details
        flow_id = next((link for name in flow_links(details.state) if (link := getattr(details, name))), None)
        text, flow = await self._configuration("channel", details.channel_id), await self._configuration("flow", flow_id)
        channel = channel_configuration(text) if text else None
        return video(
            PlayableEvent(
                id=row.id,
                content_id=str(row.id),
                state=details.state,
                title=details.title or "",
                mp4_state=details.mp4_state,
                dvr_length=details.dvr_length,
                max_bitrate=details.max_bitrate,
                min_bitrate=details.min_bitrate,
            ),
            channel=channel,
            flow=flow_configuration(flow) if flow else None,
            request=request,
            player=PlayerAddresses(channel.player_address if channel else ""),
        )

    async def _configuration(self, kind: str, key: UUID | None) -> str | None:
        found = await self._records.find(kind, key) if key is not None else None
        return found.details.configuration_json if found is not None else None


def playback_request(query: PlaybackQuery) -> PlaybackRequest:
    """Read always, so that a bad value is refused whether or not a Video object was asked for."""
    return PlaybackRequest(
        stream_time=requested_stream_time(query.in_point, query.out_point),
        audio_only=query.audio_only,
        auto_start=query.auto_start,
        view_unpublished=query.view_unpublished,
        stream_source=StreamSource.read(query.stream_source) if query.stream_source else None,
        live_playout_profile_id=query.live_playout_profile_id,
    )
