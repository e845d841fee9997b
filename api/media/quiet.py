"""Quiet: the installation sends nothing to other systems while it is on. See docs/how-to/keep-the-product-quiet.md."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from api.audit.past_states import Renderer
from api.http.response import Response
from api.http.routing import Service, rules
from api.kernel.auth import ADMIN, READ
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from api.kernel.wire import Instant, Label, Wire
from api.media.resource import Resource
from domain.kernel.ports import Outcome
from domain.record.handlers import RecordHandlers
from domain.record.kinds.quiet import Quiet as QuietRecord
from domain.record.kinds.quiet import QuietDetails
from domain.record.ports import RecordRow
from domain.record.record import Record
from projections.record.queries import RecordQueries

routes = APIRouter(prefix="/api/quiet", tags=["Health"], route_class=MediaRoute)


class ChangeQuietRequest(Wire):
    """A change of the quiet state of the whole installation."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"quiet": True, "reason": "maintenance of the network"}]})

    quiet: bool = Field(description="true: the installation sends nothing from now on; false: everything continues.")
    reason: Label | None = Field(None, description="The reason, shown to users. Default: no reason.")


class Quiet(Wire):
    """The quiet state of the installation."""

    quiet: bool = Field(description="True if the installation sends nothing to other systems.")
    reason: str | None = Field(description="The reason that was given; null if there is none.")
    since: Instant | None = Field(description="The time of the last change; null if there was none.")

    @classmethod
    def of(cls, row: RecordRow[QuietDetails] | None) -> Quiet:
        if row is None:
            return cls(quiet=False, reason=None, since=None)
        return cls(quiet=row.details.on, reason=row.details.reason, since=row.date_modified)


QUIET = Resource(QuietRecord, "/api/quiet", Quiet.of)


@routes.get("/", dependencies=[READ], response_model=Quiet)
async def get_quiet(request: Request, records: Service[RecordQueries]) -> Response:
    """The quiet state of the installation, with its reason and the time of the last change."""
    return Response(Quiet.of(await records.find(QuietRecord, QuietRecord.ONLY_KEY)))


@routes.put("/", dependencies=[ADMIN], response_model=Quiet)
@rules(respond=QUIET.respond)
async def change_quiet(request: Request, body: ChangeQuietRequest, handlers: Service[RecordHandlers]) -> Outcome[Record]:
    """Stop everything that leaves the installation, or let it continue. All processes follow within seconds."""
    values = {"on": body.quiet, "reason": body.reason}
    return await handlers.register(QuietRecord, values, key=QuietRecord.ONLY_KEY, invocation=request.invocation)


def past_states() -> Mapping[str, Renderer]:
    return {QuietRecord.KIND: QUIET.past_state}
