"""Functions that write to the log and read tables."""

from __future__ import annotations

from typing import Any, TypeVar
from uuid import UUID

import psycopg

from api.wiring.core import Core
from domain.event.commands import AddOrUpdateEvent
from domain.event.values import EventState
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.cause import Cause
from domain.kernel.command import Command
from domain.kernel.ports import Invocation
from domain.record.configured_record import SentConfiguration
from domain.record.kinds.room import Room
from domain.record.kinds.tag import Tag
from domain.record.record import Record, RegisterRecord
from projections.kernel.database.database import Database
from projections.kernel.schema.view import View

R = TypeVar("R", bound=AggregateRoot)


async def do(inner: Core, command: Command[R], *, cause: Cause | None = None) -> R:
    outcome = await inner.executor.execute(command, invocation=Invocation(cause or Cause.by("system")))
    return outcome.aggregate


async def event(inner: Core, number: int, *, state: EventState | None = None, **changes: Any) -> UUID:
    """An Event with an id made of a small number."""
    key = UUID(int=number)
    await do(inner, AddOrUpdateEvent(key, changes, state=state))
    return key


async def record(inner: Core, kind: type[Record], number: int, **values: Any) -> UUID:
    """A record of any kind with an id made of a small number."""
    key = UUID(int=number)
    await do(inner, RegisterRecord(key, kind, values))
    return key


async def room(inner: Core, number: int, name: str, reference_id: str | None = None) -> UUID:
    return await record(inner, Room, number, name=name, **({} if reference_id is None else {"reference_id": reference_id}))


async def tag(inner: Core, number: int, name: str) -> UUID:
    return await record(inner, Tag, number, name=name)


def configured(name: str, text: str = "{}") -> dict[str, Any]:
    """Values of a channel or flow whose text holds no secrets."""
    return {"name": name, "configuration_json": SentConfiguration(text, {}, {})}


async def table(database: Database, view: View[Any]) -> list[tuple[Any, ...]]:
    """Every column of every row of a view."""
    names = ", ".join(column.name for column in view.columns)
    return await database.rows(f"SELECT {names} FROM {view.name} ORDER BY {', '.join(view.key)}")


async def shown(database: Database, view: View[Any]) -> list[tuple[Any, ...]]:
    """Return the rows of a view.

    If an aggregate has many rows, each has the version of its own last change. A rebuild cannot know it, so it is left out.
    """
    return [unversioned(view, row) for row in await table(database, view)]


def unversioned(view: View[Any], row: tuple[Any, ...]) -> tuple[Any, ...]:
    return row[:1] + row[2:] if view.parts else row


def as_superuser(conninfo: str, *statements: str) -> None:
    """Run statements that only the owner of the server can run, past the log's own triggers."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        for statement in statements:
            connection.execute(statement.encode())
