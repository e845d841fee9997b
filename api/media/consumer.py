"""Consumers of the event log for operators: their lag, and the records that they could not process.

docs/reference/api/consumers.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field

from api.http.response import Response
from api.http.routing import Service, rules
from api.kernel.auth import ADMIN, READ, WRITE
from api.kernel.pages import Whole
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from api.kernel.wire import Between, Instant, Integer, Wire
from domain.client.aggregate import Client
from domain.kernel.errors import Conflict, Malformed, NotFound
from domain.kernel.ids import canonical
from domain.kernel.ports import Outcome
from projections.consumers.leases import RELAY, forget
from projections.consumers.parked_records import ParkedRecord as StoredRecord
from projections.consumers.parked_records import ParkedRecords
from projections.consumers.queries import ConsumerQueries, ConsumerStatus, Member
from projections.kernel.database.database import Database
from projections.kernel.database.page import LARGEST

routes = APIRouter(prefix="/api/consumer", tags=["Consumers"], route_class=MediaRoute)


class ConsumerMember(Wire):
    """A process that runs a consumer."""

    id: UUID = Field(description="The id of the process.")
    host: str = Field(description="The host that it runs on.")
    busy: int = Field(description="Number of records in progress.")
    seen_at: Instant = Field(description="The time when it last renewed its leases.")
    failing_seconds: float | None = Field(
        description="Seconds since its work began to fail without a success; null if it does not fail."
    )
    fault: str | None = Field(description="The reason why it fails; null if it does not.")
    reads_log_seconds: float | None = Field(
        description="Seconds that it has read the log because the broker is unavailable; null if it reads the broker."
    )

    @classmethod
    def of(cls, member: Member) -> ConsumerMember:
        return cls.model_construct(
            id=member.id,
            host=member.host,
            busy=member.busy,
            seen_at=member.seen_at,
            failing_seconds=member.failing,
            fault=member.fault,
            reads_log_seconds=member.reads_log,
        )


class Consumer(Wire):
    """A consumer of the event log."""

    name: str = Field(description="The name of the consumer.")
    shards: int = Field(description="Number of shards that its work is divided into.")
    held: int = Field(description="Number of shards that a process has a valid lease on.")
    position: int | None = Field(
        description="The position of the event log up to which it has processed everything; null for a consumer that reads a table."
    )
    head: int = Field(description="The last position of the event log.")
    lag: int | None = Field(description="head minus position; null if position is null.")
    members: list[ConsumerMember] = Field(description="The processes that run it.")
    parked: int = Field(description="Number of events that it could not process, counted up to 100001.")
    oldest_parked_at: Instant | None = Field(description="The time when the oldest of these was parked; null if there is none.")

    @classmethod
    def of(cls, status: ConsumerStatus, members: Sequence[Member]) -> Consumer:
        return cls.model_construct(
            name=status.name,
            shards=status.shards,
            held=status.owned_shards,
            position=status.position,
            head=status.head,
            lag=status.lag,
            members=[ConsumerMember.of(member) for member in members],
            parked=status.parked,
            oldest_parked_at=status.oldest_parked_at,
        )


class ParkedRecord(Wire):
    """An event that a consumer could not process."""

    position: int = Field(description="The position of the event in the log.")
    aggregate: str = Field(description="The kind of its aggregate.")
    id: str = Field(description="The id of its aggregate.")
    type: str = Field(description="The type of the event, such as event.state_changed.")
    error: str = Field(description="The reason why it could not be processed.")
    attempts: int = Field(description="Number of failed attempts.")
    replay: bool = Field(description="True if a requested retry is still pending.")
    parked_at: Instant = Field(description="The time when it was parked, or last retried.")

    @classmethod
    def of(cls, record: StoredRecord) -> ParkedRecord:
        return cls.model_construct(
            position=record.position,
            aggregate=record.kind,
            id=record.key,
            type=record.topic,
            error=record.error,
            attempts=record.attempts,
            replay=record.replay,
            parked_at=record.parked_at,
        )


class RequestedReplay(Wire):
    """The number of parked records that will be retried."""

    replaying: int = Field(description="Number of records that will be retried.")


class ForgottenConsumer(Wire):
    """A consumer that was removed."""

    name: str = Field(description="The name of the consumer.")
    parked: int = Field(description="Number of parked records that were removed with it, counted up to 100001.")


class ParkedRecordsQuery(Wire):
    """Query of the parked records of a consumer."""

    after: Annotated[Integer, Between(0)] = Field(0, description="Only records after this position of the event log.")
    page_size: Whole = Field(LARGEST, description="Maximum number of records; sizes above 1000 are reduced to 1000.")


class ReplayQuery(Wire):
    """The parked records to retry: those of one aggregate, or all."""

    aggregate: str | None = Field(
        None, description="The kind of the aggregate to retry; together with id. Without both, all records."
    )
    id: str | None = Field(None, description="The id of the aggregate to retry; together with aggregate.")


@routes.get("/", dependencies=[READ], response_model=list[Consumer])
async def list_consumers(request: Request, consumers: Service[ConsumerQueries]) -> Response:
    """Every consumer with its lag, the processes that run it, and the number of records that it could not process."""
    members = await consumers.members()
    return Response([Consumer.of(status, members.get(status.name, ())) for status in await consumers.all()])


@routes.get("/{name}/parked/", dependencies=[READ], response_model=list[ParkedRecord])
async def list_parked_records(
    request: Request,
    name: str,
    query: Annotated[ParkedRecordsQuery, Query()],
    consumers: Service[ConsumerQueries],
    parked: Service[ParkedRecords],
) -> Response:
    """The records that a consumer could not process, by position, up to 1000 at once."""
    await _check_exists(name, consumers)
    page = await parked.page(name, after=query.after, limit=min(query.page_size, LARGEST))
    return Response([ParkedRecord.of(record) for record in page])


async def replay_requested(request: Request, outcome: Outcome[Any]) -> Response:
    return Response(RequestedReplay.model_construct(replaying=outcome.result["replaying"]))


@routes.post("/{name}/parked/replay/", dependencies=[WRITE], response_model=RequestedReplay)
@rules(if_match=False, respond=replay_requested)
async def replay_parked_records(
    request: Request,
    name: str,
    query: Annotated[ReplayQuery, Query()],
    consumers: Service[ConsumerQueries],
    parked: Service[ParkedRecords],
) -> Outcome[Any]:
    """Let the consumer retry its parked records in order: all of them, or those of one aggregate."""
    stream = _stream(query)
    await _check_exists(name, consumers)
    return Outcome(result={"replaying": await parked.request_replay(name, stream=stream)})


async def consumer_forgotten(request: Request, outcome: Outcome[Any]) -> Response:
    return Response(ForgottenConsumer.model_construct(**outcome.result))


@routes.delete("/{name}", dependencies=[ADMIN], response_model=ForgottenConsumer)
@rules(if_match=False, respond=consumer_forgotten)
async def forget_consumer(
    request: Request, name: str, consumers: Service[ConsumerQueries], database: Service[Database]
) -> Outcome[Any]:
    """Remove a consumer that no longer runs, with its parked records.

    A consumer that follows the log would begin again at its first event, so only the relay to a Kafka cluster and consumers that
    read tables can be removed.
    """
    consumer = next((status for status in await consumers.all() if status.name == name), None)
    if consumer is None:
        raise NotFound("consumer", name)
    if consumer.position is not None and not name.startswith(RELAY):
        raise Conflict(f"the consumer {name} cannot be forgotten: on its next run it would repeat its work from the first event")
    if not await forget(database, name):
        raise Conflict(f"the consumer {name} is running: stop the processes that have its role first")
    return Outcome(result={"name": name, "parked": consumer.parked})


def _stream(query: ReplayQuery) -> str | None:
    if query.aggregate is None and query.id is None:
        return None
    if query.aggregate is None or query.id is None:
        raise Malformed.at("aggregate" if query.aggregate is None else "id", "is required: give aggregate and id together")
    return f"{query.aggregate}:{query.id if query.aggregate == Client.KIND else canonical(query.id)}"


async def _check_exists(name: str, consumers: ConsumerQueries) -> None:
    if not await consumers.exists(name):
        raise NotFound("consumer", name)
