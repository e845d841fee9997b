"""Responses that show assets. They look up the flows of their Events, because the URLs are built from the flows' storage."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from api.audit.past_states import Moment, Renderer
from api.http.response import Response
from api.kernel.request import Request
from api.media.asset.responses import Asset
from api.media.event.responses import storage_urls
from domain.asset.aggregate import Asset as AssetAggregate
from domain.asset.row import AssetRow
from domain.event import playback
from domain.event.aggregate import MediaEvent
from domain.event.playback.video_object import encoded, url_below
from domain.event.ports import EventLookup
from domain.event.published_files import is_withheld
from domain.event.values import EventDetails
from domain.kernel.ports import Outcome
from domain.record.kinds.flow import Flow
from projections.log.streams import Streams
from projections.record.history import RecordHistory


class _Storage(NamedTuple):
    """The public storage URL of the flow of an Event, and whether the Event is protected."""

    url: str
    is_protected: bool


class AssetPresenter:
    """Presents assets as of the present or as of any position of the log."""

    def __init__(self, events: EventLookup, history: RecordHistory, *, streams: Streams) -> None:
        self._events = events
        self._history = history
        self._streams = streams

    async def written(self, request: Request, outcome: Outcome[AssetAggregate]) -> Response:
        """Return the response to a write: the asset as a GET shows it, or its last state if it was deleted."""
        row = AssetRow.of(outcome.aggregate)
        return Response((await self.shown([row], as_of=outcome.as_of))[0], etag=row.version)

    async def shown(self, rows: Sequence[AssetRow], *, as_of: int | None = None) -> list[Asset]:
        storage = await self._storage({row.event_id for row in rows}, as_of)
        return [Asset.of(row, url=_url(storage.get(row.event_id), row.path)) for row in rows]

    async def _storage(self, events: Collection[UUID], as_of: int | None) -> dict[UUID, _Storage]:
        """Return the storage of each Event by the Event's id."""
        details = await (self._present(events) if as_of is None else self._past(events, as_of))
        flows = {
            event: flow for event, event_details in details.items() if (flow := playback.current_flow(event_details)) is not None
        }
        if not flows:
            return {}
        urls = storage_urls(await self._history.at(as_of).by_ids(Flow, {str(flow) for flow in flows.values()}))
        return {event: _Storage(urls.get(flow, ""), details[event].vod_drm) for event, flow in flows.items()}

    async def _present(self, events: Collection[UUID]) -> dict[UUID, EventDetails]:
        rows = await asyncio.gather(*map(self._events.by_id, events))
        return {row.id: row.details for row in rows if row is not None}

    async def _past(self, events: Collection[UUID], as_of: int) -> dict[UUID, EventDetails]:
        roots = await self._streams.as_of([MediaEvent.stream(event) for event in events], as_of)
        return {UUID(root.key): root.details for root in roots.values() if isinstance(root, MediaEvent) and not root.deleted}


def _url(storage: _Storage | None, path: str) -> str | None:
    """Return the URL of a file; None without a storage URL, and for the withheld files of a protected Event."""
    if storage is None or (storage.is_protected and is_withheld(path.partition("/")[2])):
        return None
    return url_below(storage.url, encoded(path, safe="/")) or None


def past_states(presenter: AssetPresenter) -> Mapping[str, Renderer]:
    async def asset(root: AssetAggregate, moment: Moment) -> Any:
        return (await presenter.shown([AssetRow.of(root)], as_of=moment.position))[0]

    return {AssetAggregate.KIND: asset}
