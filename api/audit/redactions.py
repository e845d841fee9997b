"""Erasure of the content or the cause of events, for admins: docs/reference/api/audit.md#redact."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from api.audit.past_states import Moment, Renderer
from api.http.response import Response
from api.http.routing import Service, rules
from api.kernel.auth import ADMIN, AUDIT
from api.kernel.request import Request
from api.kernel.surfaces import AuditRoute
from api.kernel.wire import Between, Flag, Instant, Integer, Text, Wire
from domain.client.aggregate import Client
from domain.kernel.errors import Malformed, NotFound, Refused
from domain.kernel.ids import canonical
from domain.kernel.mapper import Catalogue
from domain.kernel.ports import Outcome
from domain.redaction.aggregate import Redaction as RedactionAggregate
from domain.redaction.events import Part
from projections.audit.redactor import PROTECTED_KINDS, RedactionOrder, RedactionSelection, Redactor

routes = APIRouter(prefix="/api/audit", tags=["Audit"], route_class=AuditRoute)

_AT_ONCE: Final = 5.0
"""Seconds that a request works on a redaction itself. The rest is done in the background."""

Position = Annotated[Integer, Between(1)]
_REDACTION: Final = "redaction"


class RedactRequest(Wire):
    """The events to redact: those of an aggregate, at positions, or caused by an actor."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"reason": "asked for by the person", "aggregate": "event", "id": "…"}]}
    )

    reason: Annotated[Text, Field(min_length=1, max_length=1000)] = Field(
        description="The reason. It stays in the log permanently, so it must not name a person."
    )
    aggregate: str | None = Field(None, description="The kind of the aggregate whose events lose content; required with id.")
    id: str | None = Field(None, description="The id of the aggregate.")
    positions: (
        Annotated[list[Annotated[list[Position], Field(min_length=2, max_length=2)]], Field(min_length=1, max_length=1000)] | None
    ) = Field(None, description="Ranges of positions, each with its first and last one.")
    actor: Annotated[Text, Field(min_length=1, max_length=200)] | None = Field(
        None, description="The actor or end user whose events lose their cause."
    )
    parts: Annotated[list[Part], Field(min_length=1)] | None = Field(
        None, description="content, cause, or both; cause by default with actor, else content."
    )
    dry_run: Flag = Field(False, description="Only count the events, erase nothing. Default false.")


class RedactionStatus(Wire):
    """A redaction and its progress."""

    id: UUID | None = Field(description="Its id; null for a dry run.")
    state: str = Field(description="counted, erasing, cleaning (the log is done, derived data are not) or done.")
    parts: list[str] = Field(description="The parts of events that are erased.")
    events: int = Field(description="The number of events that lost a part; in a dry run, that would.")
    streams: int = Field(description="The number of aggregates that lost content, each counted with every batch.")
    kept: int = Field(
        description="Events that keep their content because their aggregate is in use; repeat the request when it has ended."
    )
    reached: int = Field(description="The position of the log up to which the redaction is done.")
    through: int = Field(description="The last position of the log that the redaction covers.")
    requested_at: Instant | None = Field(description="The time of the request.")
    finished_at: Instant | None = Field(description="The time when it was done; null until then.")

    @classmethod
    def of(cls, order: RedactionOrder) -> RedactionStatus:
        state = "done" if order.finished_at else "cleaning" if order.reached >= order.through else "erasing"
        return cls.model_construct(
            id=order.id,
            state=state,
            parts=list(order.parts),
            events=order.events,
            streams=order.streams,
            kept=order.skipped,
            reached=order.reached,
            through=order.through,
            requested_at=order.requested_at,
            finished_at=order.finished_at,
        )


async def redaction_shown(request: Request, outcome: Outcome[Any], redactor: Service[Redactor]) -> Response:
    counted = outcome.result.get("counted")
    if counted is not None:
        return Response(_counted(counted))
    return Response(RedactionStatus.of(await _order(redactor, str(outcome.result[_REDACTION]))))


def _counted(counted: dict[str, Any]) -> RedactionStatus:
    nothing: dict[str, Any] = {"id": None, "kept": 0, "reached": 0, "requested_at": None, "finished_at": None}
    return RedactionStatus.model_construct(**{**nothing, "state": "counted", "through": 0, **counted})


@routes.post("/redact", dependencies=[ADMIN], response_model=RedactionStatus)
@rules(absent=404, if_match=False, respond=redaction_shown)
async def redact_log(
    request: Request, body: RedactRequest, redactor: Service[Redactor], catalogue: Service[Catalogue]
) -> Outcome[Any]:
    """Erase the content or the causes of events, in the log and in all data derived from them. The proofs of the log stay valid."""
    parts = body.parts or [Part.CAUSE if body.actor is not None else Part.CONTENT]
    selection = _selection(body, parts, catalogue)
    if body.dry_run:
        events, streams = await redactor.count(selection, parts)
        return Outcome(result={"counted": {"events": events, "streams": streams, "parts": [str(part) for part in parts]}})
    if selection.stream is not None:
        await redactor.check(selection.stream, parts)
    order = await redactor.request(selection, parts, reason=body.reason, cause=request.cause)
    begun = time.monotonic()
    while order.finished_at is None and time.monotonic() - begun < _AT_ONCE:
        cleaning = order.reached >= order.through
        order = await redactor.step(order)
        if cleaning:
            break
    return Outcome(result={_REDACTION: str(order.id)})


@routes.get("/redact/{id}", dependencies=[AUDIT], response_model=RedactionStatus)
async def get_redaction(request: Request, id: str, redactor: Service[Redactor]) -> Response:
    """The progress of a redaction."""
    return Response(RedactionStatus.of(await _order(redactor, id)))


async def _order(redactor: Redactor, key: str) -> RedactionOrder:
    try:
        order = await redactor.find(UUID(key))
    except ValueError:
        raise Malformed.at("id", "must be a GUID") from None
    if order is None:
        raise NotFound("redaction", key)
    return order


def _selection(body: RedactRequest, parts: Sequence[Part], catalogue: Catalogue) -> RedactionSelection:
    by_stream = body.aggregate is not None or body.id is not None
    if by_stream + (body.positions is not None) + (body.actor is not None) != 1:
        raise Malformed.at("aggregate", "give one of aggregate with id, positions, and actor")
    if body.actor is not None:
        return RedactionSelection(actor=body.actor)
    if body.positions is not None:
        if any(first > last for first, last in body.positions):
            raise Malformed.at("positions", "a range ends before it begins")
        return RedactionSelection(positions=_without_overlaps([(first, last) for first, last in body.positions]))
    if body.aggregate is None or body.id is None:
        raise Malformed.at("id", "give aggregate and id together")
    if body.aggregate not in catalogue.aggregates:
        raise Malformed.at("aggregate", f"must be one of {', '.join(catalogue.aggregates)}")
    if body.aggregate in PROTECTED_KINDS and Part.CONTENT in parts:
        raise Refused(f"the content of a {body.aggregate.replace('_', ' ')} is required and cannot be erased; delete it instead")
    key = body.id if body.aggregate == Client.KIND else canonical(body.id)
    return RedactionSelection(stream=f"{body.aggregate}:{key}")


def _without_overlaps(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined


def past_states() -> Mapping[str, Renderer]:
    async def redaction(root: RedactionAggregate, moment: Moment) -> Any:
        return {"reason": root.reason, "parts": list(root.parts), "positions": [list(position) for position in root.positions]}

    return {RedactionAggregate.KIND: redaction}
