"""GET /api/audit/{aggregate}/{id}/diff: what changed between two moments, by whom and when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query
from pydantic import Field
from pydantic_core import from_json

from api.audit.past_states import PastStates
from api.http.response import Response, encode
from api.http.routing import Service
from api.kernel.auth import AUDIT
from api.kernel.request import Request
from api.kernel.surfaces import AuditRoute
from api.kernel.wire import Instant, Wire
from domain.client.aggregate import Client
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.cause import ActorKind
from domain.kernel.errors import Malformed, NotFound
from domain.kernel.ids import canonical
from domain.kernel.iso_8601 import moment_of
from domain.kernel.mapper import Catalogue
from projections.audit.queries import AuditedEvent, AuditQueries

routes = APIRouter(prefix="/api/audit", tags=["Audit"], route_class=AuditRoute)

_MOST: Final = 500
"""Number of versions that a comparison may span. Each version is rendered to find the last change of each field."""
_REST_OF_MILLISECOND: Final = timedelta(microseconds=999)
_DIGITS: Final = 18


class FieldChange(Wire):
    """A field that differs, with its last change between the two moments."""

    field: str = Field(description="The field, as a GET shows it; members of objects with dots, such as video.url.")
    before: Any = Field(description="Its value at the first moment; null if it did not exist.")
    after: Any = Field(description="Its value at the second moment; null if it did not exist.")
    version: int | None = Field(
        description="The version that last changed it; null if a change of another record that it shows changed it."
    )
    recorded_at: Instant | None = Field(description="The time when the change was recorded.")
    actor: str | None = Field(description="The client that made the change.")
    actor_kind: ActorKind | None = Field(description="The kind of actor: client, person, product or shell.")
    end_user: str | None = Field(description="The end user on whose behalf the client acted, from X-Actor.")
    transaction_id: str | None = Field(description="The X-Transaction-ID of the request.")


class AggregateDiff(Wire):
    """The differences between two moments of an aggregate."""

    aggregate: str = Field(description="The kind of aggregate.")
    id: str = Field(description="The id of the aggregate.")
    from_version: int = Field(alias="from", description="The version at the first moment.")
    to_version: int = Field(alias="to", description="The version at the second moment.")
    changes: list[FieldChange] = Field(description="The fields that differ, sorted by name.")


class DiffQuery(Wire):
    """Query of a comparison: two moments, each a version or a time."""

    since: str = Field(alias="from", description="A version, or a time.")
    until: str | None = Field(None, alias="to", description="A version, or a time; by default now.")


@dataclass(frozen=True, slots=True)
class _Shown:
    """The representation of an aggregate at a moment."""

    version: int
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Subject:
    """The aggregate to compare, and the queries that read its past."""

    aggregate: str
    key: str
    base_url: str
    audit: AuditQueries
    past: PastStates

    async def at(self, moment: str | None, *, name: str) -> _Shown:
        if moment is not None and moment.isascii() and moment.isdigit() and len(moment) <= _DIGITS:
            version: int | None = int(moment)
            at = None
        else:
            version, at = None, _instant(moment, name)
        past_state = await self.audit.past_state(self.aggregate, self.key, version=version, at=at)
        if past_state is None:
            raise NotFound(self.aggregate, self.key, sentence=await self._never(moment))
        position = past_state.position if version is not None else await self.audit.position_at(at)
        return await self.shown(past_state.root, position=position)

    async def shown(self, root: AggregateRoot, *, position: int) -> _Shown:
        state = await self.past.shown(root, position=position, base_url=self.base_url)
        return _Shown(root.version, dict(_flat(from_json(encode(state)))))

    async def _never(self, moment: str | None) -> str:
        lifetime = await self.audit.lifetime(self.aggregate, self.key)
        if lifetime is None:
            return ""
        name = f"The {self.aggregate.replace('_', ' ')} {self.key}"
        return f"{name} did not exist at {moment}; its newest version is {lifetime.newest}."


@routes.get("/{aggregate}/{id}/diff", dependencies=[AUDIT], response_model=AggregateDiff)
async def get_audit_diff(
    request: Request,
    aggregate: str,
    id: str,
    query: Annotated[DiffQuery, Query()],
    audit: Service[AuditQueries],
    past: Service[PastStates],
    catalogue: Service[Catalogue],
) -> Response:
    """The differences between two versions or times of an aggregate, as a GET showed it, with the last change of each field."""
    if aggregate not in catalogue.aggregates:
        raise NotFound(aggregate, id, sentence=f"There is no kind {aggregate}; there are {', '.join(catalogue.aggregates)}.")
    key = id if aggregate == Client.KIND else canonical(id)
    subject = _Subject(aggregate, key, request.root_url, audit, past)
    before, after = await subject.at(query.since, name="from"), await subject.at(query.until, name="to")
    if abs(after.version - before.version) > _MOST:
        raise Malformed.at("to", f"must be at most {_MOST} versions away from from")
    names = sorted(name for name in {*before.fields, *after.fields} if before.fields.get(name) != after.fields.get(name))
    authors = await _authors(subject, min((before, after), key=_version), max((before, after), key=_version)) if names else {}
    changes = [_change(name, before, after, authors.get(name)) for name in names]
    shown = AggregateDiff.model_construct(
        aggregate=aggregate, id=key, from_version=before.version, to_version=after.version, changes=changes
    )
    return Response(shown)


def _version(shown: _Shown) -> int:
    return shown.version


async def _authors(subject: _Subject, early: _Shown, late: _Shown) -> dict[str, AuditedEvent]:
    """Return the event that last changed each field between the two moments."""
    authors: dict[str, AuditedEvent] = {}
    fields = early.fields
    async for entry, root in subject.audit.steps(subject.aggregate, subject.key, after=early.version, through=late.version):
        shown = (await subject.shown(root, position=entry.position)).fields
        authors |= {name: entry for name in {*fields, *shown} if fields.get(name) != shown.get(name)}
        fields = shown
    return {name: entry for name, entry in authors.items() if fields.get(name) == late.fields.get(name)}


def _change(name: str, before: _Shown, after: _Shown, author: AuditedEvent | None) -> FieldChange:
    return FieldChange.model_construct(
        field=name,
        before=before.fields.get(name),
        after=after.fields.get(name),
        version=None if author is None else author.version,
        recorded_at=None if author is None else author.recorded_at,
        actor=None if author is None else author.actor,
        actor_kind=None if author is None else author.actor_kind,
        end_user=None if author is None else author.end_user,
        transaction_id=None if author is None else author.transaction_id,
    )


def _flat(state: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the members of nested objects under dotted names. Lists stay whole."""
    for name, value in state.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _instant(moment: str | None, name: str) -> datetime | None:
    """Parse a time. A time copied from a response means the end of its millisecond."""
    if moment is None:
        return None
    instant = moment_of(moment)
    if instant is None:
        raise Malformed.at(name, "must be a version, or a date and time in ISO 8601")
    return instant + _REST_OF_MILLISECOND
