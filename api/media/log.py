"""The log store: docs/reference/api/logs.md."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Body, Path, Query
from pydantic import AfterValidator, ConfigDict, Field

from api.http.body import JSON, PLAIN
from api.http.response import Response
from api.http.routing import Service, rules
from api.kernel.auth import AUDIT, READ, WRITE
from api.kernel.pages import Descending, Whole, next_from
from api.kernel.parsing import Validator
from api.kernel.request import Request
from api.kernel.surfaces import UnstoredMediaRoute
from api.kernel.wire import Between, Instant, Integer, Listed, Name, NamedInt, Text, Wire, Words
from domain.kernel.errors import NotFound
from domain.kernel.ids import canonical
from domain.kernel.ports import Outcome
from projections.audit.user_audit_log import UserAuditLog
from projections.kernel.database.page import Page
from projections.log_store.log_store import Level, Logbook, LogFilter
from projections.log_store.log_store import LogEntry as StoredEntry

routes = APIRouter(prefix="/api/log", tags=["Logs"], route_class=UnstoredMediaRoute)

_MOST_TAGS: Final = 1000
_EXCEPTION: Final = {"type": "ValueError", "message": "no such track", "stackTrace": "at line 3"}
_ETAG: Final = 1
"""The version of every entry, because entries never change."""


LogLevel = Annotated[Level, NamedInt(Level)]
Subject = Annotated[Name, AfterValidator(canonical)]
Number = Annotated[Integer, Between(0)]


class AddLogRequest(Wire):
    """A message for the log store."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"message": "Encoder 2 was restarted", "level": "WARN"}]})

    message: Words = Field(description="The message; may not be blank.")
    level: LogLevel = Field(
        description="The level, by number or name, ignoring case: 0 Trace, 1 Debug, 2 Info, 3 Warn, 4 Error, 5 Fatal, 6 Off."
    )


class AddLoggableRequest(AddLogRequest):
    """A message about a subject, such as an Event."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "8f51eaa1-decb-4863-89d3-9eb99768c67b",
                    "message": "Slate shown",
                    "level": "INFO",
                    "tag": ["studio"],
                }
            ]
        }
    )

    id: Subject = Field(description="The subject of the entry: the id of an Event, or any other text of at most 600 characters.")
    tag: Annotated[tuple[Text, ...], Field(max_length=_MOST_TAGS)] | None = Field(
        None, description="At most 1000 texts that are stored with the entry and not shown; null means no texts."
    )


class ExceptionQuery(Wire):
    """The context of an exception."""

    message: Text | None = Field(None, description="The context, which replaces the exception's own message.")


class LogQuery(Wire):
    """Query of the entries of a log."""

    start_index: Number = Field(0, description="Entries to skip.")
    page_size: Whole = Field(20, description="Entries in a page; sizes above 1000 are reduced to 1000.")
    from_date: Instant | None = Field(None, description="Only entries of this time or later.")
    to_date: Instant | None = Field(None, description="Only entries of this time or earlier.")
    log_levels: Annotated[tuple[LogLevel, ...], Listed] = Field(
        (), description="Levels by name or number, separated by commas; all by default."
    )
    query_order: Descending = Field(
        default="ASC", validate_default=True, description="ASC (the default): oldest first; DESC: newest first."
    )


class LogLevelName(StrEnum):
    """The level of an entry by name."""

    TRACE = "Trace"
    DEBUG = "Debug"
    INFO = "Info"
    WARN = "Warn"
    ERROR = "Error"
    FATAL = "Fatal"
    OFF = "Off"


class LogEntry(Wire):
    """An entry of the log store."""

    id: int = Field(description="The number of the entry: odd in the log store, even in the two audit logs.")
    call_site: str = Field(description="Always empty.")
    date: Instant = Field(description="The time when the entry was written.")
    exception: str = Field(description="The body of the exception as it was sent; empty if there is none.")
    level: LogLevelName = Field(description="The level, by name.")
    logger: str = Field(description="Empty for callers, medialedger for the service, audit in the two audit logs.")
    machine_name: str = Field(description="The host of the service, for its own entries; otherwise empty.")
    message: str = Field(description="The message; may be empty.")
    stack_trace: str = Field(description="The stack trace found in the exception; empty if there is none.")
    thread: str = Field(description="Always empty.")
    username: str = Field(description="The name of the client that wrote the entry; system for the service.")

    @classmethod
    def of(cls, entry: StoredEntry) -> LogEntry:
        return cls.model_construct(
            id=entry.id,
            call_site=entry.call_site,
            date=entry.recorded_at,
            exception=entry.exception,
            level=LogLevelName[entry.level.name],
            logger=entry.logger,
            machine_name=entry.machine_name,
            message=entry.message,
            stack_trace=entry.stack_trace,
            thread=entry.thread,
            username=entry.username,
        )


class LogEntryCollection(Wire):
    """A page of entries."""

    page_size: int = Field(description="The effective number of entries in a page: at most 1000.")
    total_count: int = Field(description="Total number of entries on all pages.")
    results: list[LogEntry] = Field(description="The entries of this page.")

    @classmethod
    def of(cls, page: Page[StoredEntry]) -> LogEntryCollection:
        results = [LogEntry.of(entry) for entry in page.results]
        return cls.model_construct(page_size=page.size, total_count=page.total, results=results)


class _ExceptionParts(Wire):
    """The members that are read from an exception, under the names that several languages use. Each may hold any value."""

    message: Any = None
    stack_trace: Any = None
    stack_trace_string: Any = None


_EXCEPTION_PARTS = Validator(_ExceptionParts, where="body")


async def log_added(request: Request, outcome: Outcome[Any], logbook: Service[Logbook]) -> Response:
    """Return the new entry. Entries never change, so a repeated request returns the same entry."""
    entry = await _existing(logbook, outcome.result["id"])
    return Response(LogEntry.of(entry), 201, etag=_ETAG, location=f"/api/log/{entry.id}")


@routes.post("/", dependencies=[WRITE], response_model=LogEntry, status_code=201)
@rules(if_match=False, respond=log_added)
async def add_log(request: Request, body: AddLogRequest, logbook: Service[Logbook]) -> Outcome[Any]:
    """Add a message."""
    return _added(await logbook.add(body.level, body.message, username=request.caller.name, idempotency=request.idempotency))


@routes.post("/exception/", dependencies=[WRITE], response_model=LogEntry, status_code=201)
@rules(body_types=(JSON, PLAIN), if_match=False, respond=log_added, example=_EXCEPTION)
async def add_exception(
    request: Request, body: Annotated[Any, Body()], query: Annotated[ExceptionQuery, Query()], logbook: Service[Logbook]
) -> Outcome[Any]:
    """Add an exception, as any JSON or as text. Its level is Error."""
    parts = _EXCEPTION_PARTS.read(body if isinstance(body, dict) else {})
    added = await logbook.add(
        Level.ERROR,
        query.message or _first_text(parts.message),
        username=request.caller.name,
        idempotency=request.idempotency,
        exception=body if isinstance(body, str) else request.content.decode("utf-8-sig"),
        stack_trace=_first_text(parts.stack_trace, parts.stack_trace_string),
    )
    return _added(added)


@routes.post("/loggable/", dependencies=[WRITE], response_model=LogEntry, status_code=201)
@rules(if_match=False, respond=log_added)
async def add_loggable(request: Request, body: AddLoggableRequest, logbook: Service[Logbook]) -> Outcome[Any]:
    """Add a message about a subject, such as an Event."""
    added = await logbook.add(
        body.level,
        body.message,
        username=request.caller.name,
        subject=body.id,
        tags=body.tag or (),
        idempotency=request.idempotency,
    )
    return _added(added)


@routes.get("/", dependencies=[READ], response_model=LogEntryCollection)
@rules(absent=204)
async def list_logs(request: Request, query: Annotated[LogQuery, Query()], logbook: Service[Logbook]) -> Response:
    """All entries of the log store."""
    return _listed(request, await logbook.page(_filter(query)), query=query)


@routes.get("/event/{eventId}", dependencies=[READ], response_model=LogEntryCollection)
@rules(absent=204)
async def list_logs_of_event(
    request: Request,
    event_id: Annotated[UUID, Path(alias="eventId")],
    query: Annotated[LogQuery, Query()],
    logbook: Service[Logbook],
) -> Response:
    """The entries about an Event, of callers and of the service itself."""
    return _listed(request, await logbook.page(_filter(query, subject=str(event_id))), query=query)


@routes.get("/useraudit/", dependencies=[AUDIT], response_model=LogEntryCollection)
@rules(absent=204)
async def list_user_audit_logs(request: Request, query: Annotated[LogQuery, Query()], audit: Service[UserAuditLog]) -> Response:
    """Every change, and the client that made it."""
    return _listed(request, await audit.all(_filter(query)), query=query)


@routes.get("/usermanagement/", dependencies=[AUDIT], response_model=LogEntryCollection)
@rules(absent=204)
async def list_user_management_logs(
    request: Request, query: Annotated[LogQuery, Query()], audit: Service[UserAuditLog]
) -> Response:
    """Every change of a client, its roles or its keys."""
    return _listed(request, await audit.of_clients(_filter(query)), query=query)


@routes.get("/{id}", dependencies=[READ], response_model=LogEntry)
@rules(absent=204)
async def get_log(request: Request, id: Number, logbook: Service[Logbook], audit: Service[UserAuditLog]) -> Response:
    """The entry with this number, of the log store or, for callers that may read them, of the audit logs."""
    may_audit = not request.caller.roles.isdisjoint(AUDIT.roles)
    if may_audit and (entry := await audit.find(id)) is not None:
        return Response(LogEntry.of(entry), etag=_ETAG)
    return Response(LogEntry.of(await _existing(logbook, id)), etag=_ETAG, settled=True)


async def _existing(logbook: Logbook, key: int) -> StoredEntry:
    entry = await logbook.find(key)
    if entry is None:
        raise NotFound("log", str(key))
    return entry


def _filter(query: LogQuery, *, subject: str | None = None) -> LogFilter:
    return LogFilter(
        start=query.start_index,
        size=query.page_size,
        recorded_from=query.from_date,
        recorded_to=query.to_date,
        levels=query.log_levels,
        subject=subject,
        descending=query.query_order,
    )


def _first_text(*values: Any) -> str:
    return next((value for value in values if isinstance(value, str)), "")


def _added(entry: StoredEntry) -> Outcome[Any]:
    return Outcome(result={"id": entry.id}, recorded=True)


def _listed(request: Request, page: Page[StoredEntry], *, query: LogQuery) -> Response:
    """Return a page. A page without entries is 204, also after the last page, so a client that reads page by page stops there."""
    if not page.results:
        return Response(status_code=204)
    return Response(LogEntryCollection.of(page), headers=next_from(request, page, start=query.start_index))
