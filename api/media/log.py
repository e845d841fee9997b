"""The log store: document 2, "Logs"; decisions.md, "Health, logs, archiver streams"."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, Field

from api.kernel.answer import Answer, iso
from api.kernel.auth import AUDIT, READ, WRITE
from api.kernel.body import JSON, PLAIN
from api.kernel.call import Call
from api.kernel.pages import Descending, Whole, page_body
from api.kernel.parsing import Validator
from api.kernel.routes import Routes
from api.kernel.wire import Between, Instant, Integer, Listed, Name, NamedInt, Text, Wire, Words
from domain.kernel.errors import NotFound
from domain.kernel.ids import canonical
from projections.audit.actions import Actions
from projections.kernel.page import Page
from projections.logbook.logbook import Level, Logbook, LogEntry, LogFilter, Seal

routes = Routes("/log", tag="Logs")

_MOST_TAGS = 1000


LogLevel = Annotated[Level, NamedInt(Level)]
Subject = Annotated[Name, AfterValidator(canonical)]
Number = Annotated[Integer, Between(0)]


class LogBody(Wire):
    message: Words
    level: LogLevel


class LoggableBody(LogBody):
    """`Id` is that of what the entry is about: an Event's, or any other."""

    id: Subject
    tag: Annotated[tuple[Text, ...], Field(max_length=_MOST_TAGS)] | None = None


class ContextQuery(Wire):
    """`message` goes before the one that the exception itself has."""

    message: Text | None = None


class LogQuery(Wire):
    """`startIndex` counts entries from 0; `logLevels` are names or numbers, comma separated; both dates are inclusive."""

    start_index: Number = 0
    page_size: Whole = 20
    from_date: Instant | None = None
    to_date: Instant | None = None
    log_levels: Annotated[tuple[LogLevel, ...], Listed] = ()
    query_order: Descending = Field(default=False, json_schema_extra={"default": "ASC"})


class LogWire(Wire):
    id: int
    call_site: str
    date: Instant
    exception: str
    level: Literal["Trace", "Debug", "Info", "Warn", "Error", "Fatal", "Off"]
    logger: str
    machine_name: str
    message: str
    stack_trace: str
    thread: str
    username: str


class LogCollectionWire(Wire):
    page_size: int
    total_count: int
    results: list[LogWire]


class _Particulars(Wire):
    """What the languages call the parts of an exception that we look for; anything may stand there."""

    message: Any = None
    stack_trace: Any = None
    stack_trace_string: Any = None


_PARTICULARS = Validator(_Particulars, where="body")


@routes.post("/", WRITE, answers=LogWire, status=201)
async def add_log(call: Call, body: LogBody, logbook: Logbook) -> Answer:
    """Write a message down."""
    return _added(await logbook.add(body.level, body.message, username=call.caller.name, seal=_sealing(call)))


@routes.post("/exception/", WRITE, answers=LogWire, status=201, body_types=(JSON, PLAIN))
async def add_exception(call: Call, body: Any, query: ContextQuery, logbook: Logbook) -> Answer:
    """Write an exception down, as any JSON or as text; its level is Error."""
    said = _PARTICULARS.read(body if isinstance(body, dict) else {})
    added = await logbook.add(
        Level.ERROR,
        query.message or _first_text(said.message),
        username=call.caller.name,
        seal=_sealing(call),
        exception=body if isinstance(body, str) else call.body.decode("utf-8-sig"),
        stack_trace=_first_text(said.stack_trace, said.stack_trace_string),
    )
    return _added(added)


@routes.post("/loggable/", WRITE, answers=LogWire, status=201)
async def add_loggable(call: Call, body: LoggableBody, logbook: Logbook) -> Answer:
    """Write a message about something down, such as an Event."""
    added = await logbook.add(
        body.level, body.message, username=call.caller.name, subject=body.id, tags=body.tag or (), seal=_sealing(call)
    )
    return _added(added)


@routes.get("/", READ, answers=LogCollectionWire, absent=204)
async def list_logs(call: Call, query: LogQuery, logbook: Logbook) -> Answer:
    """Everything that was written down."""
    return _listed(await logbook.page(_filter(query)))


@routes.get("/event/{eventId}", READ, answers=LogCollectionWire, absent=204)
async def logs_of_event(call: Call, event_id: UUID, query: LogQuery, logbook: Logbook) -> Answer:
    """What was written down about one Event, by callers or by the service itself."""
    return _listed(await logbook.page(_filter(query, subject=str(event_id))))


@routes.get("/useraudit/", AUDIT, answers=LogCollectionWire, absent=204)
async def log_of_users(call: Call, query: LogQuery, actions: Actions) -> Answer:
    """Every change, and the client who made it. The id is the position in the log of events."""
    return _listed(await actions.all(_filter(query)))


@routes.get("/usermanagement/", AUDIT, answers=LogCollectionWire, absent=204)
async def log_of_user_management(call: Call, query: LogQuery, actions: Actions) -> Answer:
    """Every change of a client, its roles or its keys. The id is the position in the log of events."""
    return _listed(await actions.on_clients(_filter(query)))


@routes.get("/{id}", READ, answers=LogWire, absent=204)
async def log_by_id(call: Call, id: Number, logbook: Logbook) -> Answer:
    """One entry of the log store."""
    found = await logbook.find(id)
    if found is None:
        raise NotFound("log", str(id))
    return Answer(200, shaped(found))


def shaped(entry: LogEntry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "callSite": entry.call_site,
        "date": iso(entry.recorded_at),
        "exception": entry.exception,
        "level": entry.level.name.capitalize(),
        "logger": entry.logger,
        "machineName": entry.machine_name,
        "message": entry.message,
        "stackTrace": entry.stack_trace,
        "thread": entry.thread,
        "username": entry.username,
    }


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


def _added(entry: LogEntry) -> Answer:
    return Answer(201, shaped(entry), location=f"/api/log/{entry.id}")


def _sealing(call: Call) -> Seal | None:
    """The answer is kept with the entry, so that there is never the one without the other."""
    pending = call.idempotency
    return (lambda entry: pending.seal(_added(entry))) if pending is not None else None


def _listed(page: Page[LogEntry]) -> Answer:
    """204 for a page without entries, also behind the last one: who reads on until there are no more comes to an end."""
    return Answer(200, page_body(page, [shaped(entry) for entry in page.results])) if page.results else Answer(204)
