"""The audit: the author, time and cause of every change, and past states of aggregates. docs/reference/api/audit.md."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any, Final
from urllib.parse import quote, urlencode
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field

from api.audit.past_states import PastStates
from api.http.response import Response
from api.http.routing import Service
from api.kernel.auth import AUDIT
from api.kernel.pages import Descending, Whole, next_link
from api.kernel.request import Request
from api.kernel.surfaces import AuditRoute
from api.kernel.wire import Between, Instant, Integer, Wire
from domain.client.aggregate import Client
from domain.kernel.cause import ActorKind
from domain.kernel.clock import iso
from domain.kernel.errors import Malformed, NotFound
from domain.kernel.ids import canonical
from domain.kernel.mapper import Catalogue
from projections.audit.checkpoint import NoCheckpoint
from projections.audit.queries import AuditedEvent, AuditQueries, EntryFilter, Lifetime
from projections.audit.stored_checkpoint import last_note
from projections.audit.verify import WHOLE, Extent, Verification
from projections.kernel.background_task import start_task
from projections.kernel.database.page import LARGEST

routes = APIRouter(prefix="/api/audit", tags=["Audit"], route_class=AuditRoute)

_REST_OF_MILLISECOND = timedelta(microseconds=999)

Position = Annotated[Integer, Between(0)]


_HIDDEN: Final = frozenset({"key_hash"})
"""Fields of events that are never shown. A key that an operator chose could be guessed from its hash."""


class AuditEntry(Wire):
    """An event of the log."""

    position: int = Field(description="The position in the event log, without gaps.")
    aggregate: str = Field(description="The kind of aggregate, such as event or room.")
    id: str = Field(description="The id of the aggregate.")
    version: int = Field(description="The version of the aggregate after this event, from 1.")
    type: str = Field(description="The type of the event, such as event.state_changed.")
    recorded_at: Instant = Field(description="The time when the log recorded it.")
    actor: str = Field(
        description="The client whose request caused it; shell:<user> for a command in a shell; system for the product itself."
    )
    actor_kind: ActorKind | None = Field(
        description="The kind of actor: client (an API key), person (a session of the console), product or shell. Null if it was "
        "erased.",
        examples=["client"],
    )
    end_user: str | None = Field(
        description="The end user on whose behalf the client acted, from X-Actor; null without that header."
    )
    transaction_id: str = Field(description="The X-Transaction-ID of the request that caused it.")
    causation_id: UUID | None = Field(description="The id of the event that caused it; null when a request did.")
    data: dict[str, Any] = Field(
        description="The fields of the event as stored, in snake case. An absent field was not changed, null was cleared. Secrets "
        "are references only, and hashes of keys are omitted."
    )
    hash: str = Field(description="The hash of the event, a leaf in the Merkle tree of its commit: 64 hexadecimal digits.")

    @classmethod
    def of(cls, entry: AuditedEvent) -> AuditEntry:
        return cls.model_construct(
            position=entry.position,
            aggregate=entry.aggregate,
            id=entry.id,
            version=entry.version,
            type=entry.type,
            recorded_at=entry.recorded_at,
            actor=entry.actor,
            actor_kind=entry.actor_kind,
            end_user=entry.end_user,
            transaction_id=entry.transaction_id,
            causation_id=None if entry.causation_id is None else UUID(entry.causation_id),
            data={name: value for name, value in entry.data.items() if name not in _HIDDEN},
            hash=entry.hash,
        )


class AuditEntryCollection(Wire):
    """A page of the event log."""

    page_size: int = Field(description="The effective number of entries in a page: at most 1000.")
    results: list[AuditEntry] = Field(
        description="The entries of this page: fewer than pageSize on the last page, if entries are large, or if few match."
    )
    next: str | None = Field(description="The address of the next page with the same filters; null on the last page.")


class AggregateState(Wire):
    """A past state of an aggregate."""

    aggregate: str = Field(description="The kind of aggregate.")
    id: str = Field(description="The id of the aggregate.")
    version: int = Field(description="The version that is shown.")
    position: int = Field(description="The position in the log of the last event that it includes.")
    recorded_at: Instant = Field(description="The time when that event was recorded.")
    state: dict[str, Any] = Field(description="The aggregate as a GET showed it then.")


class LogVerification(Wire):
    """The result of a verification of the hash chain."""

    valid: bool | None = Field(
        description="True if every event is in its position and unchanged; null while the result is not known."
    )
    checked: int = Field(
        description="The number of verified events, from the first of the log; with after, earlier events count too."
    )
    first_bad_position: int | None = Field(description="The first damaged position; null if there is none.")
    reason: str | None = Field(description="The reason why it is damaged; null if there is none.")
    next: str | None = Field(None, description="The address that verifies the next part; null at the end.")
    resume_after: int | None = Field(
        None, description="If a position is damaged: the end of its commit. Send it as after to verify the rest."
    )

    @classmethod
    def of(cls, verification: Verification, following: str | None = None) -> LogVerification:
        return cls.model_construct(
            valid=verification.valid,
            checked=verification.checked,
            first_bad_position=verification.first_bad_position,
            reason=verification.reason,
            next=following,
            resume_after=verification.resumes,
        )

    @classmethod
    def in_progress(cls, seen: int) -> LogVerification:
        """Return the response of a verification that is still running."""
        return cls.model_construct(
            valid=None, checked=seen, first_bad_position=None, reason=None, next="/api/audit/verify", resume_after=None
        )


class AuditEntriesQuery(Wire):
    """Filters of the event log; all must hold."""

    after: Position | None = Field(None, description="Only positions greater than this; the oldest come first then.")
    before: Position | None = Field(None, description="Only positions less than this.")
    aggregate: str | None = Field(None, description="The kind of aggregate; all by default.")
    id: str | None = Field(None, description="The id of an aggregate; all by default.")
    type: str | None = Field(None, description="The type of event, such as event.state_changed; all by default.")
    actor: str | None = Field(None, description="The client, its end user, shell:<user>, or system; all by default.")
    transaction_id: str | None = Field(None, description="The X-Transaction-ID; all by default.")
    recorded_from: Annotated[Instant | None, Field(alias="from")] = Field(None, description="Recorded at this time or later.")
    recorded_to: Annotated[Instant | None, Field(alias="to")] = Field(None, description="Recorded at this time or earlier.")
    page_size: Whole = Field(50, description="Entries in a page: at most 1000; larger values are reduced to 1000.")
    order: Descending | None = Field(None, description="ASC or DESC by position; by default ASC with after, otherwise DESC.")


class HistoryQuery(Wire):
    """A page of the history of an aggregate."""

    after: Position = Field(0, description="Only versions greater than this; 0 by default.")
    page_size: Whole = Field(
        LARGEST, description="Entries in a page: at most and by default 1000; larger values are reduced to 1000."
    )


class PastStateQuery(Wire):
    """Query of a past state by version or time; by default the present state."""

    version: Whole | None = Field(None, description="The version that is shown; not together with at. By default the present one.")
    at: Instant | None = Field(None, description="The time at which it is shown; not together with version. By default now.")


class VerifyQuery(Wire):
    """Query of a verification of the whole log or a part of it."""

    after: Position | None = Field(None, description="Begin after the last commit that ends at this position or before.")
    checkpoint: str | None = Field(
        None,
        description="Begin after this checkpoint, a signed note of this log that you have stored; not together with after.",
    )
    page_size: Whole | None = Field(None, description="Verify commits up to this number of events, and at least one commit.")


class Verifier:
    """Verifications of the log. One runs at a time, in its own thread, because it reads the whole log; concurrent requests for the
    whole log share it. `patience` is the number of seconds that a request waits."""

    def __init__(self, verify: Callable[..., Verification], *, patience: float = 20.0) -> None:
        self._verify = verify
        self._patience = patience
        self._lock = asyncio.Lock()
        self._under_way: asyncio.Task[Verification] | None = None
        self.seen = 0

    async def verify(self) -> Verification | None:
        """Verify the whole log. Return None if it takes longer than `patience`; the verification continues in the background, and
        the next call returns its result."""
        if self._under_way is None:
            self.seen = 0
            self._under_way = start_task(self._run(WHOLE), what="verification of the whole log")
        task = self._under_way
        done, _ = await asyncio.wait({task}, timeout=self._patience)
        if not done:
            return None
        if self._under_way is task:
            self._under_way = None
        return task.result()

    async def part(self, extent: Extent) -> Verification:
        return await self._run(extent)

    async def _run(self, extent: Extent) -> Verification:
        async with self._lock:
            return await asyncio.to_thread(partial(self._verify, extent=extent, progress=self._saw))

    def _saw(self, position: int) -> None:
        self.seen = position


@routes.get("/events/", dependencies=[AUDIT], response_model=AuditEntryCollection)
async def list_audit_entries(
    request: Request, query: Annotated[AuditEntriesQuery, Query()], audit: Service[AuditQueries]
) -> Response:
    """The event log, page by page. All filters are combined by AND."""
    ascending = not query.order if query.order is not None else query.after is not None
    selection = EntryFilter(
        after=query.after,
        before=query.before,
        aggregate=query.aggregate,
        id=_id(query),
        type=query.type,
        actor=query.actor,
        transaction_id=query.transaction_id,
        recorded_from=query.recorded_from,
        recorded_to=_whole_millisecond(query.recorded_to),
        ascending=ascending,
        limit=min(query.page_size, LARGEST),
    )
    page = await audit.entries(selection)
    following = None if page.next is None else _next(query, page.next, selection)
    results = [AuditEntry.of(entry) for entry in page.entries]
    return Response(AuditEntryCollection.model_construct(page_size=selection.limit, results=results, next=following))


@routes.get("/verify", dependencies=[AUDIT], response_model=LogVerification)
async def verify_audit(request: Request, query: Annotated[VerifyQuery, Query()], verifier: Service[Verifier]) -> Response:
    """Compute the hashes of the whole log or a part of it again from the stored bytes, and compare them."""
    if query.after is not None and query.checkpoint is not None:
        raise Malformed.at("checkpoint", "give a checkpoint or a position, not both")
    if query.after is not None or query.checkpoint is not None or query.page_size is not None:
        most = None if query.page_size is None else max(query.page_size, 1)
        last_checkpoint = None if query.checkpoint is None else last_note(query.checkpoint)
        try:
            verification = await verifier.part(Extent(since=query.after or 0, checkpoint=last_checkpoint, most=most))
        except NoCheckpoint as fault:
            raise Malformed.at("checkpoint", str(fault)) from None
        following = None if verification.next is None else f"/api/audit/verify?after={verification.next}&pageSize={most}"
        return Response(LogVerification.of(verification, following))
    whole = await verifier.verify()
    if whole is None:
        return Response(LogVerification.in_progress(verifier.seen), headers=(("retry-after", "5"),))
    return Response(LogVerification.of(whole))


@routes.get("/{aggregate}/{id}/", dependencies=[AUDIT], response_model=list[AuditEntry])
async def list_audit_history(
    request: Request,
    aggregate: str,
    id: str,
    query: Annotated[HistoryQuery, Query()],
    audit: Service[AuditQueries],
    catalogue: Service[Catalogue],
) -> Response:
    """The events of one aggregate, oldest first. If there are more, the header Link holds the address of the next page."""
    key, limit = _key(aggregate, id, catalogue), min(query.page_size, LARGEST)
    page = await audit.history(aggregate, key, after=query.after, limit=limit)
    if not page.entries and not (query.after and (await audit.history(aggregate, key, limit=1)).entries):
        raise NotFound(aggregate, id)
    headers: tuple[tuple[str, str], ...] = ()
    if page.next is not None:
        headers = (next_link(f"/api/audit/{quote(aggregate)}/{quote(key)}/?after={page.next}&pageSize={limit}"),)
    return Response([AuditEntry.of(entry) for entry in page.entries], headers=headers)


@routes.get("/{aggregate}/{id}/state", dependencies=[AUDIT], response_model=AggregateState)
async def get_audit_state(
    request: Request,
    aggregate: str,
    id: str,
    query: Annotated[PastStateQuery, Query()],
    audit: Service[AuditQueries],
    past: Service[PastStates],
    catalogue: Service[Catalogue],
) -> Response:
    """An aggregate as a GET showed it at a version or at a time of the past."""
    if query.version is not None and query.at is not None:
        raise Malformed.at("at", "give a version or a time, not both")
    at, key = _whole_millisecond(query.at), _key(aggregate, id, catalogue)
    past_state = await audit.past_state(aggregate, key, version=query.version, at=at)
    if past_state is None:
        raise NotFound(
            aggregate, id, sentence=_never(query, await audit.lifetime(aggregate, key), f"The {aggregate.replace('_', ' ')} {id}")
        )
    position = past_state.position if query.version is not None else await audit.position_at(at)
    shown = AggregateState.model_construct(
        aggregate=aggregate,
        id=past_state.root.key,
        version=past_state.root.version,
        position=past_state.position,
        recorded_at=past_state.recorded_at,
        state=await past.shown(past_state.root, position=position, base_url=request.root_url),
    )
    return Response(shown)


def _never(query: PastStateQuery, lifetime: Lifetime | None, name: str) -> str:
    """Return a sentence that names the nearest existing version or time; empty if the aggregate never existed."""
    if lifetime is None:
        return ""
    if query.version is not None:
        return f"{name} has no version {query.version}; the newest is {lifetime.newest}."
    return f"{name} did not exist before {iso(lifetime.since)}."


def _key(aggregate: str, key: str, catalogue: Catalogue) -> str:
    if aggregate not in catalogue.aggregates:
        raise NotFound(aggregate, key, sentence=f"There is no kind {aggregate}; there are {', '.join(catalogue.aggregates)}.")
    return key if aggregate == Client.KIND else canonical(key)  # a client's name may look like a GUID


def _id(query: AuditEntriesQuery) -> str | None:
    return query.id if query.id is None or query.aggregate == Client.KIND else canonical(query.id)


def _whole_millisecond(moment: datetime | None) -> datetime | None:
    """Return the end of the millisecond. Responses show milliseconds but the log stores microseconds, so a time copied from a
    response means all of its millisecond."""
    return moment + _REST_OF_MILLISECOND if moment is not None else None


def _next(query: AuditEntriesQuery, last: int, selection: EntryFilter) -> str:
    """Return the address of the next page: the same filters, after the end of this page."""
    filters = {
        name: iso(value) if name in ("from", "to") else value
        for name, value in query.model_dump(by_alias=True, exclude_none=True, exclude={"order", "page_size"}).items()
    }
    filters["after" if selection.ascending else "before"] = last
    order = {} if query.order is None else {"order": "DESC" if query.order else "ASC"}
    return "/api/audit/events/?" + urlencode({**filters, **order, "pageSize": selection.limit})
