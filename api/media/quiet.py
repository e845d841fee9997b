"""Quiet: nothing leaves the installation while it is on. See docs/how-to/keep-the-product-quiet.md."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from api.http.response import Response
from api.http.router import Router
from api.kernel.auth import ADMIN, READ
from api.kernel.request import Request
from api.kernel.surfaces import MEDIA
from api.kernel.wire import Instant, Label, Wire
from api.media.resource import Resource
from domain.kernel.ports import Outcome
from domain.records.handlers import RecordHandlers
from domain.records.kinds.quiet import Quiet as QuietRecord
from domain.records.record import Record
from domain.records.row import RecordRow
from projections.records.queries import RecordQueries

routes = Router("/quiet", tag="Health", surface=MEDIA)


class ChangeQuietRequest(Wire):
    """An order for the whole installation."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"quiet": True, "reason": "maintenance of the network"}]})

    quiet: bool = Field(description="true: nothing leaves the installation from now on; false: everything goes on.")
    reason: Label | None = Field(None, description="Why, for the people who see it. Default: none.")


class Quiet(Wire):
    """Whether the installation is quiet."""

    quiet: bool = Field(description="Whether nothing leaves the installation.")
    reason: str | None = Field(description="Why it was ordered; null where nobody has said.")
    since: Instant | None = Field(description="When the last order was given; null where none was.")

    @classmethod
    def of(cls, row: RecordRow | None) -> Quiet:
        if row is None:
            return cls(quiet=False, reason=None, since=None)
        return cls(quiet=row.details.on, reason=row.details.reason, since=row.date_modified)


QUIET = Resource(QuietRecord, "/api/quiet", Quiet.of)


@routes.get("/", READ, response_model=Quiet)
async def get_quiet(request: Request, records: RecordQueries) -> Response:
    """Whether the installation is quiet, why, and since when."""
    return Response(200, Quiet.of(await records.find(QuietRecord.KIND, QuietRecord.ONLY_KEY)))


@routes.put("/", ADMIN, response_model=Quiet, respond=QUIET.respond)
async def change_quiet(request: Request, body: ChangeQuietRequest, handlers: RecordHandlers) -> Outcome[Record]:
    """Stop everything that leaves the installation, or let it go on. Each process follows within seconds."""
    values = {"on": body.quiet, "reason": body.reason}
    return await handlers.register(QuietRecord, values, key=QuietRecord.ONLY_KEY, invocation=request.invocation)
