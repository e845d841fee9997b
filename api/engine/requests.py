"""Requests to the job engine: docs/reference/api/job-engine.md."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import IntEnum
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError, WithJsonSchema
from pydantic_core import PydanticCustomError

from api.kernel.auth import owner_of
from api.kernel.request import Request
from api.kernel.wire import Between, Flag, Instant, Integer, Listed, Name, NamedInt, Text, Wire
from domain.job.handlers import JobChanges, NewJob, semaphore_address
from domain.job.values import DEFAULT_PRIORITY, HIGHEST_PRIORITY, LOWEST_PRIORITY, JobState
from domain.kernel.errors import FieldError, Malformed
from projections.job.queries import ORDERS, UNPAGED, JobCursor, JobFilter
from projections.kernel.database.page import LARGEST

# Base of the engine's request and response models. Their names are in snake case: docs/reference/api/job-engine.md.


def as_written(name: str) -> str:
    return name


class EngineModel(Wire):
    """A model whose fields have the same name in Python and in JSON."""

    model_config = ConfigDict(alias_generator=as_written)


_PRIORITIES: Final = {str(number): number for number in range(HIGHEST_PRIORITY, LOWEST_PRIORITY + 1)}
_SEMAPHORE: Final = "sempahore_url"
"""The spelling of the field in the API."""

_NOT_NULL: Final = ("queue_state", "run_at", "priority")
_CHANGEABLE: Final = (*_NOT_NULL, _SEMAPHORE)
_MAX_HEADERS: Final = 64
_MAX_HEADER_LENGTH: Final = 1000


def _priority(value: Any) -> int:
    plain = type(value) in (int, str) or (type(value) is float and value.is_integer())
    number = _PRIORITIES.get(str(int(value) if type(value) is float and plain else value)) if plain else None
    if number is None:
        raise PydanticCustomError("priority", f"{HIGHEST_PRIORITY} to {LOWEST_PRIORITY}")
    return number


_BOUNDS = {"type": "integer", "minimum": HIGHEST_PRIORITY, "maximum": LOWEST_PRIORITY}
Priority = Annotated[int, BeforeValidator(_priority), WithJsonSchema(_BOUNDS)]
"""A priority of a job; 1 is the most urgent."""

ClientName = Annotated[str | None, Field(description="Name of the client; optional, must equal the header client.")]


class RequestedState(IntEnum):
    """The states that a client may set."""

    QUEUED = JobState.QUEUED
    BROKEN = JobState.BROKEN
    PAUSED = JobState.PAUSED


class JobOptions(EngineModel):
    workflow: Name = Field(description="Name of a workflow, such as http_fetch_verify.")
    priority: Priority = Field(DEFAULT_PRIORITY, description="1 (most urgent) to 10; default 5.")
    run_at: Instant | None = Field(None, description="Earliest start; null (the default) or a past time: now.")
    sempahore_url: Text | None = Field(
        None,
        description="Address that must answer 2xx or 3xx before the job is queued; null (the default) or an empty text: no "
        "semaphore.",
    )


class SubmitJobRequest(EngineModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "job": {"workflow": "http_fetch_verify", "priority": 3, "run_at": "2031-01-01T00:00:00.000Z"},
                    "parameters": {"content_id": "match-17", "url": "https://origin.example/match.mp4", "size": 3000000},
                }
            ]
        }
    )

    client: ClientName = None
    job: JobOptions = Field(description="The workflow and the time of its run.")
    parameters: Annotated[Any, WithJsonSchema({"type": "object"})] = Field(
        description="Parameters of the workflow, an object; names match exactly, unknown names are refused."
    )


class ChangeJobRequest(EngineModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"priority": 8, "run_at": "2031-02-01T00:00:00.000Z"}]})

    client: ClientName = None
    queue_state: Annotated[RequestedState, NamedInt(RequestedState)] | None = Field(
        None, description="PAUSED, BROKEN, or QUEUED to resume a paused job; by name or number; absent keeps it, null is refused."
    )
    run_at: Instant | None = Field(
        None, description="New time, in UTC if it has no offset; a past time means now; absent keeps it, null is refused."
    )
    priority: Priority | None = Field(None, description="1 (most urgent) to 10; absent keeps it, null is refused.")
    sempahore_url: Text | None = Field(None, description="New semaphore; null or an empty text removes it, absent keeps it.")


def _property(value: Any) -> str:
    name = value.lower() if isinstance(value, str) else value
    if name not in ORDERS:
        raise PydanticCustomError("property", f"must be one of {', '.join(ORDERS)}")
    return str(name)


OrderColumn = Annotated[str, BeforeValidator(_property), WithJsonSchema({"type": "string", "enum": list(ORDERS)})]


_ID: Final = TypeAdapter(Annotated[int, Field(ge=0, lt=2**63)])
_TEXT: Final = TypeAdapter(Annotated[str, Field(max_length=1000)])
_MOMENT: Final = TypeAdapter(datetime)
_PLACES: Final[Mapping[str, TypeAdapter[Any]]] = {
    "client": _TEXT,
    "workflow": _TEXT,
    "priority": _ID,
    "position": _ID,
    "created_at": _MOMENT,
    "updated_at": _MOMENT,
    "run_at": _MOMENT,
    "queue_state": _TEXT,
    "failed": TypeAdapter(bool),
    "reason": _TEXT,
    "started_at": _MOMENT,
    "ended_at": _MOMENT,
}
"""The types of the values in the parameter `after`, by the field that orders the list."""


class JobsQuery(EngineModel):
    """Query of the list of jobs. Filters combine with AND."""

    items: Annotated[Integer, Between(1)] = Field(
        10, description="Maximum number of jobs, 1 to 1000; larger values are reduced to 1000; default 10."
    )
    order_by: OrderColumn = Field("id", description="Field to sort by; default id. Jobs without a value come last.")
    asc: Flag = Field(False, description="1 or true: ascending; default 0.")
    state: Annotated[JobState, NamedInt(JobState)] | None = Field(None, description="One state, by number or name; all by default.")
    created_from: Instant | None = Field(None, alias="from", description="Created at this time or later.")
    created_to: Instant | None = Field(None, alias="to", description="Created at this time or earlier.")
    failed: Flag | None = Field(
        None,
        description="true: only failed jobs; false: only other jobs; all by default. Failed jobs have the state completed.",
    )
    search: str | None = Field(
        None, description="Text in the content id, the workflow or a text parameter, ignoring case; all by default."
    )
    job_ids: Annotated[list[Integer], Listed] = Field(
        default_factory=list, description="Numbers of jobs, separated by commas; all by default."
    )
    workflow: str | None = Field(None, description="Jobs of the workflow with exactly this name; all by default.")
    client: str | None = Field(None, description="Jobs of this client only; all clients by default.")
    after: str | None = Field(None, description="Jobs after this position in the same order, as in the address of the header Link.")

    def cursor(self) -> JobCursor | None:
        """Parse `after`: the id of a job, followed by ~ and the job's value of the field that orders the list, if it has a
        value."""
        if self.after is None:
            return None
        if self.order_by in UNPAGED:
            raise Malformed.at("after", f"may not be used with order_by={self.order_by}")
        number, mark, value = self.after.partition("~")
        try:
            return JobCursor(_ID.validate_strings(number), _PLACES[self.order_by].validate_strings(value) if mark else None)
        except (KeyError, ValidationError):
            raise Malformed.at("after", "must be copied from the address in the header Link, with the same order") from None


class JobCountsQuery(EngineModel):
    workflow: str | None = Field(None, description="Jobs of the workflow with exactly this name; all by default.")
    client: str | None = Field(None, description="Jobs of this client only; all clients by default.")


class DashboardQuery(EngineModel):
    client: str | None = Field(
        None,
        description="Jobs of this client only; all clients by default. For browsers, which cannot send the header client.",
    )


class FormerPageQuery(EngineModel):
    job: str | None = Field(None, description="Number of a job; any other text is ignored.")


SettingName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,100}$")]
_VALUE = {"anyOf": [{"type": "number"}, {"type": "string", "maxLength": 1000}, {"type": "boolean"}, {"type": "null"}]}


class SetSettingRequest(Wire):
    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "max_jobs", "setting": 4}]})

    client: str | None = Field(None, description="The client of the setting: the client of the header; admins may name any client.")
    name: SettingName = Field(description="Name of a setting, 1 to 100 of A-Z a-z 0-9 _ . -; custom names are allowed.")
    setting: Annotated[Any, WithJsonSchema(_VALUE)] = Field(
        description="A number, a text of at most 1000 characters, true or false; the engine's own settings take numbers. For"
        " max_webhooks null means no limit."
    )


class SwitchScheduleRequest(Wire):
    model_config = ConfigDict(json_schema_extra={"examples": [{"schedule": "queue_scheduled_jobs", "active": False}]})

    schedule: Literal["queue_scheduled_jobs"] = Field(description="queue_scheduled_jobs.")
    active: Flag = Field(description="true: due jobs are queued; false: they wait.")


def new_job(request: Request, body: SubmitJobRequest) -> NewJob:
    """Convert the request to the domain's command."""
    options = body.job
    return NewJob(
        client=owner_of(request, body.client),
        workflow=options.workflow,
        parameters=body.parameters,
        priority=options.priority,
        run_at=options.run_at,
        semaphore_url=options.sempahore_url,
        headers=headers_for_log(request),
    )


def job_changes(request: Request, body: ChangeJobRequest) -> JobChanges:
    """Convert the request to the domain's changes. Null and absent fields differ."""
    _check_client(request, body.client)
    sent = body.model_fields_set
    if sent.isdisjoint(_CHANGEABLE):
        raise Malformed.at("body", f"must have one of {', '.join(_CHANGEABLE)}")
    nulls = [name for name in _NOT_NULL if name in sent and getattr(body, name) is None]
    if nulls:
        raise Malformed(*(FieldError(name, "may not be null") for name in nulls))
    return JobChanges(
        priority=body.priority,
        run_at=body.run_at,
        state=None if body.queue_state is None else JobState(body.queue_state),
        semaphore=semaphore_address(body.sempahore_url, field=_SEMAPHORE),
        remove_semaphore=_SEMAPHORE in sent and not body.sempahore_url,
    )


def job_filter(query: JobsQuery, *, client: str | None) -> JobFilter:
    """Convert the query to a filter. `client` is the client of the header; it filters the answer if the query names no client."""
    return JobFilter(
        limit=min(query.items, LARGEST),
        order_by=query.order_by,
        descending=not query.asc,
        state=query.state,
        failed=query.failed,
        created_from=query.created_from,
        created_to=query.created_to,
        search=query.search,
        job_ids=query.job_ids,
        workflow=query.workflow,
        client=client if query.client is None else query.client,
        after=query.cursor(),
    )


def place(cursor: JobCursor) -> str:
    """Return the cursor as the parameter `after`."""
    if cursor.value is None:
        return str(cursor.id)
    value = cursor.value.isoformat() if isinstance(cursor.value, datetime) else str(cursor.value)
    return f"{cursor.id}~{value}"


def headers_for_log(request: Request) -> dict[str, str]:
    """Return the first headers of the request, each cut to the length that a job's log accepts."""
    sent = list(request.fields.items())[:_MAX_HEADERS]
    return {name.decode("latin-1"): value.decode("latin-1")[:_MAX_HEADER_LENGTH] for name, value in sent}


def _check_client(request: Request, client: str | None) -> None:
    """Raise an error if the body names another client than the header."""
    if client not in (None, request.caller.name):
        raise Malformed.at("client", "must be the client of the header")
