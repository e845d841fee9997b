"""Callbacks: the webhooks that the jobs of a client are told to. Document 3, "Job engine"; all of it is ours: issue 7, "Callbacks".

None is made here: a job, or the flow of its Event, names an address. DELETE, secret, deliveries, resend, recover and test are those
of every webhook.
"""

from __future__ import annotations

from uuid import UUID

from api.kernel.answer import Answer
from api.kernel.auth import READ, WRITE
from api.kernel.call import Call
from api.kernel.commands import CommandBus
from api.kernel.pages import FreshQuery, PageQuery, page_body
from api.kernel.routes import Routes
from api.kernel.wire import Label
from api.media.webhook.wire import CallbackBody, CallbacksWire, CallbackWire, shaped
from api.media.webhook.writes import WEBHOOKS
from domain.kernel.errors import NotFound
from domain.records.kinds.webhook import CALLBACKS, Webhook, callbacks_of
from domain.records.record import AmendRecord, Record
from projections.log.ledger import Plan
from projections.records.queries import RecordQueries

routes = Routes("/webhook", tag="Webhooks")


class CallbacksQuery(PageQuery):
    """Those of one client."""

    client: Label | None = None


@routes.get("/callback/", READ, answers=CallbacksWire)
async def list_callbacks(call: Call, query: CallbacksQuery, records: RecordQueries) -> Answer:
    """The callbacks of all clients or of one, by the time when they were made."""
    parent = None if query.client is None else callbacks_of(query.client)
    page = await records.page_of_parents(Webhook.KIND, CALLBACKS, parent=parent, window=query.window, descending=query.order)
    return Answer(200, page_body(page, [shaped(row) for row in page.results]))


@routes.get("/{id}/callback/", READ, answers=CallbackWire, absent=204)
async def callback_by_id(call: Call, id: UUID, query: FreshQuery, records: RecordQueries) -> Answer:
    """One callback."""
    row = await records.find(Webhook.KIND, id)
    return WEBHOOKS.found(row if row is not None and row.details.job_client is not None else None, id)


@routes.put("/{id}/callback/", WRITE, answers=CallbackWire)
async def amend_callback(call: Call, id: UUID, body: CallbackBody, bus: CommandBus, records: RecordQueries) -> Answer:
    """Set a callback to work again, with null, or disable it. Nothing else of it can be changed."""

    async def plan() -> Plan[Record]:
        client = (await records.known(Webhook.KIND, id)).details.job_client
        if client is None:
            raise NotFound(Webhook.KIND, str(id))
        return Plan(AmendRecord(id, Webhook, {"disabled_at": body.disabled_at}, still={"job_client": client}))

    return await bus.send(call, plan, WEBHOOKS.written)
