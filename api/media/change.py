"""A stream of the changes of the log as they are recorded, as server-sent events: docs/reference/api/changes.md."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Annotated, Final

from fastapi import APIRouter, Query
from pydantic import Field, StringConstraints
from pydantic_core import to_json

from api.guards.seats import Seats
from api.http.errors import BadRequest
from api.http.response import EVENT_STREAM, Response
from api.http.routing import Service, rules
from api.kernel.auth import READ, Role
from api.kernel.callers import KnownCallers
from api.kernel.request import Request
from api.kernel.subscribers import AWAY, Subscriber, SubscriberLimit, event_stream
from api.kernel.surfaces import MediaRoute
from api.kernel.wire import Between, Integer, Wire
from domain.client.aggregate import Client
from domain.content_key.aggregate import ContentKey
from domain.kernel.clock import iso
from domain.kernel.errors import Malformed, Unavailable
from domain.kernel.ids import canonical
from domain.kernel.mapper import Catalogue
from projections.log.change_feed import ChangeFeed, ChangeFilter, LogChange, read_batch
from projections.log.reader import head

routes = APIRouter(prefix="/api/changes", tags=["Changes"], route_class=MediaRoute)

_MOST: Final = 1_000
"""Streams of a process. One client may have a quarter of them, because a newsroom may share the key of its console."""
_LIFE: Final = 300.0
"""Seconds after which a client must open the stream again."""
_SILENCE: Final = 2.0
"""Seconds without a change after which a beat is sent. A screen that receives nothing for 5 seconds shows that it is not
connected."""
_LISTED: Final = 100
_AUDITORS: Final = frozenset({Role.AUDITOR, Role.ADMIN})
_OF_AUDITORS: Final = frozenset({Client.KIND, ContentKey.KIND})
_RETRY: Final = b"retry: 2000\n"

Names = Annotated[str, StringConstraints(max_length=4000)]


class ChangesQuery(Wire):
    """Query of the stream of changes. Lists are comma-separated; all filters must match."""

    after: Annotated[Integer, Between(0)] | None = Field(
        None,
        description="Begin after this position of the log. Last-Event-ID takes precedence; by default the log's end.",
    )
    aggregate: Names | None = Field(None, description="Kinds of aggregates, such as event,job; all by default.")
    id: Names | None = Field(None, description="Ids of aggregates; all by default.")
    type: Names | None = Field(None, description="Types of events, such as event.state_changed; all by default.")


class ChangeStreams:
    """The streams of one process. `life` is in seconds."""

    def __init__(self, feed: ChangeFeed, *, seats: Seats | None = None, life: float = _LIFE, silence: float = _SILENCE) -> None:
        self._feed = feed
        self._life = life
        self._silence = silence
        self.subscribers = SubscriberLimit("changes", seats or Seats(), most=_MOST)

    async def frames(self, after: int | None, selection: ChangeFilter) -> AsyncGenerator[bytes, None]:
        """Yield the changes after a position, or after the log's end. Positions without a matching change are sent with the next
        beat."""
        ends = time.monotonic() + self._life
        try:
            async with self._feed.followed():
                end = await head(self._feed.lists)
                position = end if after is None else min(after, end)
                yield _RETRY + _mark("reset" if after is not None and after > end else "open", position)
                async with aclosing(self._from(position, selection)) as followed:
                    async for reached, sent in followed:
                        position = reached
                        yield sent
                        if time.monotonic() > ends:
                            yield _mark("renew", position)
                            return
        except Unavailable:
            yield _RETRY + AWAY

    async def _from(self, position: int, selection: ChangeFilter) -> AsyncGenerator[tuple[int, bytes], None]:
        """Yield the changes that the log already has, then those of the shared reader. A subscriber that falls behind the reader
        must open the stream again."""
        while True:
            try:
                self._feed.after(position)
                break
            except LookupError:
                older = await read_batch(self._feed.lists, position)
                if older is not None:
                    position = older.last
                    yield position, older.encoded(selection, _frame) or _mark("beat", position)
        while True:
            try:
                batch = self._feed.after(position)
            except LookupError:
                yield position, _mark("behind", position)
                return
            if batch is None:
                await self._feed.grown(position, seconds=self._silence)
                if self._feed.away:
                    yield position, AWAY
                elif self._feed.position <= position:
                    yield position, _mark("beat", position)
                continue
            position = batch.last
            sent = batch.encoded(selection, _frame)
            if sent:
                yield position, sent


def _mark(name: str, position: int) -> bytes:
    """Return a message about the stream itself. Its id is the position to continue from."""
    return b'id: %d\nevent: %s\ndata: {"position":%d}\n\n' % (position, name.encode(), position)


def _frame(change: LogChange) -> bytes:
    shown = {
        "position": change.position,
        "aggregate": change.aggregate,
        "id": change.id,
        "version": change.version,
        "type": change.type,
        "recordedAt": iso(change.recorded_at),
    }
    return b"id: %d\ndata: %s\n\n" % (change.position, to_json(shown))


@routes.get("/stream", dependencies=[READ])
@rules(media_type=EVENT_STREAM)
async def stream_changes(
    request: Request,
    query: Annotated[ChangesQuery, Query()],
    streams: Service[ChangeStreams],
    catalogue: Service[Catalogue],
    callers: Service[KnownCallers],
) -> Response:
    """The changes of all aggregates as server-sent events, in the order of the log, without their content.

    With Last-Event-ID, or `after`, the stream continues after this position. Changes of clients and content keys are sent to
    auditors and admins only.
    """
    selection = _filter(query, catalogue, sees_all=bool(_AUDITORS & request.caller.roles))
    after = _last_event_id(request)
    roles = _AUDITORS if _AUDITORS & request.caller.roles else READ.roles
    subscriber = Subscriber("", has_key=True, client=request.caller.name, lasts=partial(callers.lasts, request, roles))
    return event_stream(
        streams.subscribers.within_limit(streams.frames(query.after if after is None else after, selection), subscriber)
    )


def _filter(query: ChangesQuery, catalogue: Catalogue, *, sees_all: bool) -> ChangeFilter:
    aggregates = _listed(query.aggregate, "aggregate")
    unknown = sorted(aggregates - set(catalogue.aggregates))
    if unknown:
        raise Malformed.at("aggregate", f"must be one or more of {', '.join(catalogue.aggregates)}")
    ids = _listed(query.id, "id")
    return ChangeFilter(
        aggregates,
        ids | {canonical(id_) for id_ in ids},
        _listed(query.type, "type"),
        frozenset() if sees_all else _OF_AUDITORS,
    )


def _listed(text: str | None, field: str) -> frozenset[str]:
    if text is None:
        return frozenset()
    names = frozenset(part.strip() for part in text.split(",")) - {""}
    if not names or len(names) > _LISTED:
        raise Malformed.at(field, f"must be 1 to {_LISTED} values, separated by commas")
    return names


def _last_event_id(request: Request) -> int | None:
    sent = request.header("last-event-id")
    if not sent:
        return None
    if not (sent.isascii() and sent.isdigit() and len(sent) < 19):
        raise BadRequest.at("Last-Event-ID", "must be a position of the log, like the ids of the stream")
    return int(sent)
