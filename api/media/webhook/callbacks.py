"""Routes of callbacks, which are called for the jobs of one client: docs/reference/api/webhooks.md#callbacks.

No route adds a callback: its address comes from a job or the flow of its Event. The routes for deletion, secret, deliveries,
resend, recovery and test are those of every webhook. All of them require the client of the jobs or an admin.
"""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from api.http.response import Response
from api.http.routing import Service, rules
from api.kernel.auth import READ, WRITE
from api.kernel.pages import FreshQuery, next_page, page_body
from api.kernel.request import Request
from api.kernel.surfaces import UnstoredMediaRoute
from api.media.webhook.requests import CallbacksQuery, UpdateCallbackRequest
from api.media.webhook.responses import CALLBACKS, Callback, CallbackCollection
from api.media.webhook.routes import check_own_callback
from domain.kernel.ports import Outcome
from domain.record.record import Record
from domain.webhook import callback
from projections.log.executor import CommandExecutor
from projections.record.queries import RecordQueries

routes = APIRouter(prefix="/api/webhook", tags=["Webhooks"], route_class=UnstoredMediaRoute)


@routes.get("/callback/", dependencies=[READ], response_model=CallbackCollection)
async def list_callbacks(request: Request, query: Annotated[CallbacksQuery, Query()], records: Service[RecordQueries]) -> Response:
    """The callbacks of all clients or of one, by the time of their creation."""
    page = await records.page(callback.Callback, parent=query.client, window=query.window, descending=query.order)
    return Response(page_body(page, [Callback.of(row) for row in page.results]), headers=next_page(request, page))


@routes.get("/{id}/callback/", dependencies=[READ], response_model=Callback)
@rules(absent=204)
async def get_callback(
    request: Request, id: UUID, query: Annotated[FreshQuery, Query()], records: Service[RecordQueries]
) -> Response:
    """The callback with this id."""
    return CALLBACKS.single(await records.find(callback.Callback, id), id)


@routes.put("/{id}/callback/", dependencies=[WRITE], response_model=Callback)
@rules(respond=CALLBACKS.respond)
async def update_callback(
    request: Request, id: UUID, body: UpdateCallbackRequest, records: Service[RecordQueries], executor: Service[CommandExecutor]
) -> Outcome[Record]:
    """Enable or disable a callback. No other field of a callback can be changed."""
    await check_own_callback(request, id, records)
    command = callback.Callback.amend.on(id, {"disabled_at": body.disabled_at})
    return await executor.execute(command, invocation=request.invocation)
