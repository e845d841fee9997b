"""How jobs are spelled on the wire, which is in snake case here: document 3, "Job"; decisions.md, "Job engine"."""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError, from_json

from api.kernel.answer import iso
from api.kernel.wire import Between, Flag, Instant, Integer, Listed, Name, NamedInt, Text, Wire
from api.version import four_part, product_version
from domain.job.values import DEFAULT_PRIORITY, HIGHEST_PRIORITY, LOWEST_PRIORITY, JobState
from projections.job.queries import ORDERS, JobRow

_PRIORITIES: Final = {str(number): number for number in range(HIGHEST_PRIORITY, LOWEST_PRIORITY + 1)}


def as_written(name: str) -> str:
    return name


class Spoken(Wire):
    """What the engine says and is told."""

    model_config = ConfigDict(alias_generator=as_written)


def _priority(value: Any) -> int:
    plain = type(value) in (int, str) or (type(value) is float and value.is_integer())
    number = _PRIORITIES.get(str(int(value) if type(value) is float and plain else value)) if plain else None
    if number is None:
        raise PydanticCustomError("priority", f"{HIGHEST_PRIORITY} to {LOWEST_PRIORITY}")
    return number


_BOUNDS = {"type": "integer", "minimum": HIGHEST_PRIORITY, "maximum": LOWEST_PRIORITY}
Priority = Annotated[int, BeforeValidator(_priority), WithJsonSchema(_BOUNDS)]
"""1 is the most urgent."""


class AskedState(IntEnum):
    """The states that a client may ask for."""

    QUEUED = JobState.QUEUED
    BROKEN = JobState.BROKEN
    PAUSED = JobState.PAUSED


class JobRequest(Spoken):
    """`run_at`: not before then. `sempahore_url`, spelled as document 3 has it, must answer 2xx or 3xx before the job is queued."""

    workflow: Name
    priority: Priority = DEFAULT_PRIORITY
    run_at: Instant | None = None
    sempahore_url: Text | None = None


class JobBody(Spoken):
    """`client`, when it is there, is the one of the header. What `parameters` holds depends on the workflow."""

    client: str | None = None
    job: JobRequest
    parameters: Annotated[Any, WithJsonSchema({"type": "object"})]


class JobChangeBody(Spoken):
    """What is absent stays as it is; something else than `client` must be there. A `sempahore_url` that is null or empty takes away
    the one that is set."""

    client: str | None = None
    queue_state: Annotated[AskedState, NamedInt(AskedState)] | None = None
    run_at: Instant | None = None
    priority: Priority | None = None
    sempahore_url: Text | None = None


class AcceptedWire(Spoken):
    id: int
    result: str


class UpdatedWire(Spoken):
    """Each update that was performed, such as `priority updated from 5 to 8`."""

    id: int
    result: list[str]


def _property(value: Any) -> str:
    name = value.lower() if isinstance(value, str) else value
    if name not in ORDERS:
        raise PydanticCustomError("property", f"must be one of {', '.join(ORDERS)}")
    return str(name)


class JobsQuery(Spoken):
    """Filters combine with AND. `from` and `to` bound the creation. `failed` together with a `state` finds completed jobs only.
    More than 1000 `items` are cut to 1000."""

    items: Annotated[Integer, Between(1)] = 10
    order_by: Annotated[str, BeforeValidator(_property), WithJsonSchema({"type": "string", "enum": list(ORDERS)})] = "id"
    asc: Flag = False
    state: Annotated[JobState, NamedInt(JobState)] | None = None
    created_from: Annotated[Instant | None, Field(alias="from")] = None
    created_to: Annotated[Instant | None, Field(alias="to")] = None
    failed: Flag | None = None
    search: str | None = None
    job_ids: Annotated[list[Integer], Listed] = Field(default_factory=list)
    client: str | None = None


class JobSummaryWire(Spoken):
    id: int
    client: str
    workflow: str
    priority: int
    position: int
    created_at: Instant
    updated_at: Instant
    run_at: Instant | None
    queue_state: str
    failed: bool


class JobWire(JobSummaryWire):
    """`position` is 1 for the client's next job to start, and 0 while a job is not queued."""

    parameters: dict[str, Any]


class SingleJobWire(JobWire):
    top_of_queue: bool


def summary(job: JobRow) -> dict[str, Any]:
    return {
        "id": job.id,
        "client": job.client,
        "workflow": job.workflow,
        "priority": job.priority,
        "position": job.position,
        "created_at": iso(job.created_at),
        "updated_at": iso(job.updated_at),
        "run_at": None if job.run_at is None else iso(job.run_at),
        "queue_state": job.state.name.lower(),
        "failed": job.failed,
    }


def shown(job: JobRow) -> dict[str, Any]:
    return {**summary(job), "parameters": from_json(job.parameters or "null")}


def engine_version() -> str:
    """Three dotted numbers: document 3, "Versioning"."""
    return four_part(product_version()).rpartition(".")[0]
