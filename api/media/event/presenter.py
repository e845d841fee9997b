"""Responses that show Events. They look up the linked records of all Events at once, and build the Video object on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any
from uuid import UUID

from pydantic_core import from_json

from api.audit.past_states import Moment, Renderer
from api.http.response import Response
from api.kernel.pages import next_page
from api.kernel.request import Request
from api.media import category as responses
from api.media.event.playback_requests import PlaybackQuery
from api.media.event.responses import (
    NO_LINKS,
    EventCollection,
    LinkedValues,
    event_json,
    links_of,
    storage_urls,
    thumbnail_flow,
)
from api.media.event.video import Video
from domain.channel.hosts import NO_HOSTS, ProvisionedHosts
from domain.channel.points import WatchedPoint
from domain.event import playback
from domain.event.aggregate import MediaEvent
from domain.event.playback import (
    PlayableEvent,
    PlaybackRequest,
    PlayerAddresses,
    PublishingPointUrl,
    StreamSource,
    channel_configuration,
    flow_configuration,
)
from domain.event.ports import EventRow
from domain.event.values import STREAMING
from domain.kernel.errors import NotFound
from domain.kernel.ports import Link, Outcome
from domain.kernel.stream_time import requested_stream_time
from domain.record.kinds.category import Category
from domain.record.kinds.channel import Channel, ChannelDetails
from domain.record.kinds.custom_property import CategoryProperty
from domain.record.kinds.flow import Flow
from domain.record.ports import RecordRow
from domain.record.record import D, Record
from projections.event.shown import ShownEvent, values_of
from projections.event.view import lines_of
from projections.kernel.database.page import Page
from projections.kernel.sql.slices import in_slices
from projections.publishing_point.points import ChannelPointsReader
from projections.publishing_point.queries import PointState, PointStates, state_of
from projections.record.history import RecordHistory


class EventPresenter:
    """Presents Events as of the present or as of any position of the log."""

    def __init__(
        self, history: RecordHistory, *, channels: ChannelPointsReader, points: PointStates, hosts: ProvisionedHosts
    ) -> None:
        self._history = history
        self._channels = channels
        self._points = points
        self._hosts = hosts

    async def written(
        self, request: Request, outcome: Outcome[MediaEvent], *, headers: tuple[tuple[str, str], ...] = ()
    ) -> Response:
        """Return the response to a write: the Event as a GET shows it."""
        values = values_of(lines_of(outcome))
        linked = await self._linked([values], outcome.as_of, read=outcome.linked)
        body = event_json(values, linked, base_url=request.root_url)
        return Response(body, etag=outcome.aggregate.shown_version, headers=headers)

    async def event(self, event: ShownEvent, *, base_url: str, as_of: int | None = None, video: Video | None = None) -> bytes:
        """Return an Event as JSON, with the names of linked records at this position of the log, or at present."""
        values = values_of(event.lines)
        return event_json(values, await self._linked([values], as_of), base_url=base_url, video=video)

    async def single(self, request: Request, row: EventRow | ShownEvent | None, *, key: object, query: PlaybackQuery) -> Response:
        """Return the response to a GET of one Event. Raise `NotFound` without a row. A Video object needs an `EventRow`."""
        requested = playback_request(query)
        if row is None:
            raise NotFound(MediaEvent.KIND, str(key))
        video = None
        if isinstance(row, EventRow):
            video = await self._video(row, requested)
            row = ShownEvent.of(row)
        return Response(await self.event(row, base_url=request.root_url, video=video), etag=row.version)

    async def page(self, request: Request, page: Page[ShownEvent]) -> Response:
        events, base_url = [values_of(event.lines) for event in page.results], request.root_url
        linked = await self._linked(events)
        texts = await in_slices(lambda part: [event_json(values, linked, base_url=base_url) for values in part], events)
        return Response(EventCollection.encoded(page, texts), headers=next_page(request, page))

    async def _linked(
        self, events: Sequence[Sequence[bytes]], as_of: int | None = None, *, read: Mapping[Link, Any] = MappingProxyType({})
    ) -> LinkedValues:
        """Return what the Events show of the records that they link to, with at most one query for each kind of look-up. `read`
        has records that need not be read again."""
        links = dict.fromkeys(link for values in events for link in links_of(values))
        if not links:
            return NO_LINKS
        reader = self._history.at(as_of)
        categories = [key for kind, key in links if kind == Category.KIND]
        flows = {flow for values in events if (flow := thumbnail_flow(values))}
        missing = [link for link in links if link not in read]
        records = {**read, **(await reader.shown(missing) if missing else {})}
        properties = await reader.of_owners(CategoryProperty, categories) if categories else {}
        thumbnail_flows = await reader.by_ids(Flow, flows) if flows else ()
        shown = {
            key: responses.Category.of(row.whole(Category), properties.get(key, ()))
            for key in categories
            if (row := records.get((Category.KIND, key))) is not None
        }
        return LinkedValues(records, categories=shown, storage=storage_urls(thumbnail_flows))

    async def _video(self, row: EventRow, requested: PlaybackRequest) -> Video:
        details = row.details
        channel_record = await self._record(Channel, details.channel_id)
        flow_record = await self._record(Flow, playback.current_flow(details))
        channel = channel_configuration(channel_record.details.configuration_json) if channel_record else None
        video = playback.video(
            PlayableEvent(
                id=row.id,
                content_id=str(row.id),
                state=details.state,
                title=details.title or "",
                mp4_state=details.mp4_state,
                dvr_length=details.dvr_length,
                max_bitrate=details.max_bitrate,
                min_bitrate=details.min_bitrate,
                vod_drm=details.vod_drm,
                recorded_part=details.recorded_part,
            ),
            channel=channel,
            flow=flow_configuration(flow_record.details.configuration_json) if flow_record else None,
            request=requested,
            player=PlayerAddresses(channel.player_address if channel else ""),
            points=await self._publishing_points(row, channel_record) if channel_record else (),
        )
        return Video.of(video)

    async def _publishing_points(self, event: EventRow, channel: RecordRow[ChannelDetails]) -> Sequence[PublishingPointUrl]:
        """Return the publishing points with their last samples. Only points of a live Event are sampled; no server is called
        here."""
        key = UUID(channel.id)
        read = (await self._channels.of({key: channel.version})).get(key)
        if read is None or not read.points:
            return ()
        if read.names_host:
            read = read.at((await self._hosts.hosts_of([event.id])).get(event.id, NO_HOSTS))
        states = await self._points.of_points(key) if event.details.state in STREAMING else {}
        return [_point_url(point, state_of(point, states)) for point in read.points]

    async def _record(self, kind: type[Record[D]], key: UUID | None) -> RecordRow[D] | None:
        return await self._history.at(None).find(kind, key) if key is not None else None


def _point_url(point: WatchedPoint, state: PointState | None) -> PublishingPointUrl:
    if state is None:
        return PublishingPointUrl(point.shown)
    return PublishingPointUrl(point.shown, state.state, state.has_started, state.last_updated, state.receiving)


def playback_request(query: PlaybackQuery) -> PlaybackRequest:
    """Return the playback parameters of a query. They are parsed on every single read, so an invalid value is 400 even without
    `processVideo`."""
    return PlaybackRequest(
        stream_time=requested_stream_time(query.in_point, query.out_point),
        audio_only=query.audio_only,
        auto_start=query.auto_start,
        view_unpublished=query.view_unpublished,
        stream_source=StreamSource.read(query.stream_source) if query.stream_source else None,
        live_playout_profile_id=query.live_playout_profile_id,
    )


def past_states(presenter: EventPresenter) -> Mapping[str, Renderer]:
    async def event(root: MediaEvent, moment: Moment) -> Any:
        shown = ShownEvent.of(EventRow.of(root))
        return from_json(await presenter.event(shown, base_url=moment.base_url, as_of=moment.position))

    return {MediaEvent.KIND: event}
