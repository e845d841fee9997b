"""Consumers, as operators see them: how far each one is behind the log, and the records that it could not take in.

All of it is ours: issue 5, "Operators see it"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

from api.kernel.answer import Answer, iso
from api.kernel.auth import READ, WRITE
from api.kernel.call import Call
from api.kernel.pages import Whole
from api.kernel.routes import Routes
from api.kernel.wire import Between, Instant, Integer, Wire
from domain.client.aggregate import Client
from domain.kernel.errors import Malformed, NotFound
from domain.kernel.ids import canonical
from projections.consumers.parked import Parked, ParkedRecord
from projections.consumers.queries import ConsumerQueries, ConsumerStatus, Member
from projections.kernel.page import LARGEST

routes = Routes("/consumer", tag="Consumers")


class MemberWire(Wire):
    id: UUID
    host: str
    busy: int
    seen_at: Instant


class ConsumerWire(Wire):
    """`position` and `lag` are null for a consumer that takes its work from a table and not from the log."""

    name: str
    shards: int
    position: int | None
    head: int
    lag: int | None
    members: list[MemberWire]
    parked: int
    oldest_parked_at: Instant | None


class ParkedWire(Wire):
    """`attempts` counts the tries that failed; `replay`: somebody has asked for another one."""

    position: int
    aggregate: str
    id: str
    type: str
    error: str
    attempts: int
    replay: bool
    parked_at: Instant


class ReplayingWire(Wire):
    replaying: int


class ParkedQuery(Wire):
    """`after` is a position, and exclusive."""

    after: Annotated[Integer, Between(0)] = 0
    page_size: Whole = LARGEST


class ReplayQuery(Wire):
    """One aggregate by its kind and id; without them all that is parked."""

    aggregate: str | None = None
    id: str | None = None


@routes.get("/", READ, answers=list[ConsumerWire])
async def list_consumers(call: Call, consumers: ConsumerQueries) -> Answer:
    """Every consumer: how far it is behind the log, who runs it, and how much it could not take in."""
    members = await consumers.members()
    return Answer(200, [shaped(one, members.get(one.name, ())) for one in await consumers.all()])


@routes.get("/{name}/parked/", READ, answers=list[ParkedWire])
async def list_parked_records(call: Call, name: str, query: ParkedQuery, consumers: ConsumerQueries, parked: Parked) -> Answer:
    """Records that a consumer could not take in, in the log's order, up to 1000 at once."""
    await _check_known(name, consumers)
    found = await parked.page(name, after=query.after, limit=min(query.page_size, LARGEST))
    return Answer(200, [_parked(one) for one in found])


@routes.post("/{name}/parked/replay/", WRITE, answers=ReplayingWire)
async def replay_parked_records(call: Call, name: str, query: ReplayQuery, consumers: ConsumerQueries, parked: Parked) -> Answer:
    """Have parked records tried again, in order, by whoever runs the consumer: all, or those of one aggregate."""
    stream = _stream(query)
    await _check_known(name, consumers)
    return Answer(200, {"replaying": await parked.ask_replay(name, stream=stream)})


def shaped(consumer: ConsumerStatus, members: Sequence[Member]) -> dict[str, Any]:
    oldest = consumer.oldest_parked_at
    return {
        "name": consumer.name,
        "shards": consumer.shards,
        "position": consumer.position,
        "head": consumer.head,
        "lag": consumer.lag,
        "members": [{"id": str(one.id), "host": one.host, "busy": one.busy, "seenAt": iso(one.seen_at)} for one in members],
        "parked": consumer.parked,
        "oldestParkedAt": iso(oldest) if oldest is not None else None,
    }


def _parked(record: ParkedRecord) -> dict[str, Any]:
    return {
        "position": record.position,
        "aggregate": record.kind,
        "id": record.key,
        "type": record.topic,
        "error": record.error,
        "attempts": record.attempts,
        "replay": record.replay,
        "parkedAt": iso(record.parked_at),
    }


def _stream(query: ReplayQuery) -> str | None:
    if query.aggregate is None and query.id is None:
        return None
    if query.aggregate is None or query.id is None:
        raise Malformed.at("aggregate" if query.aggregate is None else "id", "is required beside the other")
    return f"{query.aggregate}:{query.id if query.aggregate == Client.KIND else canonical(query.id)}"


async def _check_known(name: str, consumers: ConsumerQueries) -> None:
    if not await consumers.known(name):
        raise NotFound("consumer", name)
