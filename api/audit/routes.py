"""The audit: who changed what, when and why, and how anything stood at any moment. contract.md, "Audit"; decisions.md, "Audit"."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated, Any
from urllib.parse import urlencode
from uuid import UUID

from pydantic import Field

from api.audit.shown import PastStates
from api.kernel.answer import Answer, iso
from api.kernel.auth import AUDIT
from api.kernel.call import Call
from api.kernel.pages import Descending, Whole
from api.kernel.routes import Routes
from api.kernel.surface import AUDIT_LOG
from api.kernel.wire import Between, Instant, Integer, Wire
from domain.client.aggregate import Client
from domain.kernel.errors import Malformed, NotFound
from domain.kernel.ids import canonical
from domain.kernel.mapper import Catalogue
from projections.audit.queries import AuditQueries, Entry, EntryFilter
from projections.audit.verify import Verdict
from projections.kernel.page import LARGEST

routes = Routes("", surface=AUDIT_LOG, tag="Audit")

_REST_OF_MILLISECOND = timedelta(microseconds=999)

Position = Annotated[Integer, Between(0)]


class EntryWire(Wire):
    position: int
    aggregate: str
    id: str
    version: int
    type: str
    recorded_at: Instant
    actor: str
    transaction_id: str
    causation_id: UUID | None
    data: dict[str, Any]
    hash: str


class EntriesWire(Wire):
    page_size: int
    results: list[EntryWire]
    next: str | None


class StateWire(Wire):
    aggregate: str
    id: str
    version: int
    position: int
    recorded_at: Instant
    state: dict[str, Any]


class VerdictWire(Wire):
    valid: bool
    checked: int
    first_bad_position: int | None
    reason: str | None


class EntriesQuery(Wire):
    """`after` and `before` are log positions and exclusive; with `after` the oldest come first, else the newest."""

    after: Position | None = None
    before: Position | None = None
    aggregate: str | None = None
    id: str | None = None
    type: str | None = None
    actor: str | None = None
    transaction_id: str | None = None
    recorded_from: Annotated[Instant | None, Field(alias="from")] = None
    recorded_to: Annotated[Instant | None, Field(alias="to")] = None
    page_size: Whole = 50
    order: Descending | None = None


class MomentQuery(Wire):
    """A version, or a time, of the past; neither: now."""

    version: Whole | None = None
    at: Instant | None = None


class Verifier:
    """One verification at a time, in a thread of its own: it reads the whole log."""

    def __init__(self, verify: Callable[[], Verdict]) -> None:
        self._verify = verify
        self._turn = asyncio.Lock()

    async def verdict(self) -> Verdict:
        async with self._turn:
            return await asyncio.to_thread(self._verify)


@routes.get("/events/", AUDIT, answers=EntriesWire)
async def audit_entries(call: Call, query: EntriesQuery, audit: AuditQueries) -> Answer:
    """The log, entry by entry, with every filter combined by AND."""
    ascending = not query.order if query.order is not None else query.after is not None
    wanted = EntryFilter(
        after=query.after,
        before=query.before,
        aggregate=query.aggregate,
        id=_sought(query),
        type=query.type,
        actor=query.actor,
        transaction_id=query.transaction_id,
        recorded_from=query.recorded_from,
        recorded_to=_whole_millisecond(query.recorded_to),
        ascending=ascending,
        limit=min(query.page_size, LARGEST),
    )
    found = await audit.entries(wanted)
    page = found[: wanted.limit]
    following = _next(query, page[-1].position, wanted) if len(found) > wanted.limit else None
    return Answer(200, {"pageSize": wanted.limit, "results": [entry(one) for one in page], "next": following})


@routes.get("/verify", AUDIT, answers=VerdictWire)
async def audit_verify(call: Call, verifier: Verifier) -> Answer:
    """Make the hash chain again from the stored bytes of the whole log."""
    verdict = await verifier.verdict()
    return Answer(
        200,
        {
            "valid": verdict.valid,
            "checked": verdict.checked,
            "firstBadPosition": verdict.first_bad_position,
            "reason": verdict.reason,
        },
    )


@routes.get("/{aggregate}/{id}/", AUDIT, answers=list[EntryWire])
async def audit_history(call: Call, aggregate: str, id: str, audit: AuditQueries, catalogue: Catalogue) -> Answer:
    """Everything that happened to one aggregate, oldest first."""
    entries = await audit.history(aggregate, _key(aggregate, id, catalogue))
    if not entries:
        raise NotFound(aggregate, id)
    return Answer(200, [entry(one) for one in entries])


@routes.get("/{aggregate}/{id}/state", AUDIT, answers=StateWire)
async def audit_state(
    call: Call, aggregate: str, id: str, query: MomentQuery, audit: AuditQueries, past: PastStates, catalogue: Catalogue
) -> Answer:
    """One aggregate as a GET showed it at a version or at a time of the past."""
    if query.version is not None and query.at is not None:
        raise Malformed.at("at", "give a version or a time, not both")
    at = _whole_millisecond(query.at)
    moment = await audit.moment(aggregate, _key(aggregate, id, catalogue), version=query.version, at=at)
    if moment is None:
        raise NotFound(aggregate, id)
    position = moment.position if query.version is not None else await _reached(audit, at)
    return Answer(
        200,
        {
            "aggregate": aggregate,
            "id": moment.root.key,
            "version": moment.root.version,
            "position": moment.position,
            "recordedAt": iso(moment.recorded_at),
            "state": await past.shown(moment.root, position=position, base_url=call.base_url),
        },
    )


def entry(one: Entry) -> dict[str, Any]:
    return {
        "position": one.position,
        "aggregate": one.aggregate,
        "id": one.id,
        "version": one.version,
        "type": one.type,
        "recordedAt": iso(one.recorded_at),
        "actor": one.actor,
        "transactionId": one.transaction_id,
        "causationId": one.causation_id,
        "data": one.data,
        "hash": one.hash,
    }


def _key(aggregate: str, key: str, catalogue: Catalogue) -> str:
    if aggregate not in catalogue.aggregates:
        raise NotFound(aggregate, key)
    return key if aggregate == Client.KIND else canonical(key)  # a client's name may look like a GUID


def _sought(query: EntriesQuery) -> str | None:
    return query.id if query.id is None or query.aggregate == Client.KIND else canonical(query.id)


def _whole_millisecond(moment: datetime | None) -> datetime | None:
    """Answers show milliseconds and the log keeps microseconds, so that a time that was read in an answer means its last one."""
    return moment + _REST_OF_MILLISECOND if moment is not None else None


async def _reached(audit: AuditQueries, at: datetime | None) -> int:
    """How far the log had come at a time, or has come now: what was linked to had its names of then."""
    newest = await audit.entries(EntryFilter(recorded_to=at, limit=1))
    return newest[0].position if newest else 0


def _next(query: EntriesQuery, last: int, wanted: EntryFilter) -> str:
    """The address of the next page: the same question, from where this page ended."""
    asked = {
        name: iso(value) if name in ("from", "to") else value
        for name, value in query.model_dump(by_alias=True, exclude_none=True, exclude={"order", "page_size"}).items()
    }
    asked["after" if wanted.ascending else "before"] = last
    order = {} if query.order is None else {"order": "DESC" if query.order else "ASC"}
    return "/api/audit/events/?" + urlencode({**asked, **order, "pageSize": wanted.limit})
