"""`medialedger provision`: lists the infrastructure of Events, and shows, plans or cancels that of one Event."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from api.cli.output import JSON, NDJSON, Document, Kind, TableColumn, field, print_list, print_one
from api.cli.run.core import open_vault
from api.cli.terminal_text import printable_lines
from api.wiring.assembly import services_of
from api.wiring.container import Container
from api.wiring.quiet import quiet_mode
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from domain.kernel.clock import iso
from domain.kernel.errors import DomainError
from domain.provision.desired import desired
from domain.provision.handlers import ProvisionHandlers
from domain.provision.row import ProvisionRow
from domain.provision.values import Work, name_of
from projections.kernel.database.database import Database
from projections.provision.queries import ProvisionQueries
from workers.adapters.outbound_http import GuardedClient
from workers.kernel.quiet import REFUSAL
from workers.ports.provisioners import Provisioners

_NOTHING: Final = "nothing would change"


class _Services:
    """The services that the actions use."""

    def __init__(self, container: Container) -> None:
        self.container = container
        self.database = container.get(Database)
        self.provisions = container.get(ProvisionQueries)
        self.handlers = container.get(ProvisionHandlers)


async def print_provisions(settings: Settings, *, form: str) -> None:
    async with open_vault(settings) as (wired, _):
        rows = await ProvisionQueries(wired.database).listed()
    documents = [{**_document(row), "changedAt": iso(changed), "resourcesNeeded": len(row.needed)} for row, changed in rows]
    print_list(documents, _COLUMNS, form=form, none="no infrastructure")


async def print_plan(settings: Settings, event: UUID, *, allow_updates: bool | None, form: str) -> None:
    try:
        async with open_vault(settings) as (wired, _):
            await _plan(settings, _Services(services_of(wired, settings)), event, allow_updates=allow_updates, form=form)
    except DomainError as refusal:
        raise StartError(str(refusal)) from None


async def _plan(settings: Settings, services: _Services, event: UUID, *, allow_updates: bool | None, form: str) -> None:
    row = await services.handlers.foreseen(event, allow_updates=allow_updates, by="system")
    key = row.summary.infrastructure_key
    others = [other for other in await services.provisions.of_key(key) if other.event_id != row.event_id]
    infrastructure = desired([*others, row])
    assert infrastructure is not None, "the Event waits for these resources"
    if row in infrastructure.refused:
        raise StartError(f"the infrastructure with the key {key!r} is made differently from what the profile of this Event says")
    quiet = await quiet_mode(services.database)
    if quiet.on:
        raise StartError(REFUSAL)
    outbound = GuardedClient(settings.outbound_allow, permit=quiet.permit)
    try:
        services.container.give(GuardedClient, outbound)
        by = services.container.get(Provisioners)
        changes = await by.by_deployment[infrastructure.deployment].plan(infrastructure)
    finally:
        await outbound.close()
    if form in (JSON, NDJSON):
        document = {"eventId": str(row.event_id), "infrastructureKey": key, "plan": changes.splitlines()}
        print_one(document, (), form=form)
    else:
        print(printable_lines(changes) if changes else _NOTHING)


def _resources_up(document: Document) -> str:
    up = len(document["resourcesUp"])
    return f"{up} of {document['resourcesNeeded']}" if document["resourcesNeeded"] else str(up)


_COLUMNS: Final = (
    TableColumn("event", field("eventId")),
    TableColumn("state", field("stateString"), Kind.STATE),
    TableColumn("waits for", field("waitsFor")),
    TableColumn("since", field("changedAt"), Kind.TIME),
    TableColumn("up", _resources_up),
    TableColumn("key", field("infrastructureKey")),
    TableColumn("reason", field("reason"), Kind.LONG),
)


def _waits(row: ProvisionRow) -> str | None:
    """Return what the Event waits for."""
    match row.work:
        case Work.PROVISION:
            return "its resources"
        case Work.TERMINATE:
            return "the end of its resources"
        case Work.RELEASE:
            return "the end of the resources that a reset left"
    return None


def _document(row: ProvisionRow) -> dict[str, Any]:
    requested, terminated = row.requested_at, row.summary.terminated_at
    return {
        "eventId": str(row.event_id),
        "infrastructureKey": row.summary.infrastructure_key,
        "state": int(row.summary.state),
        "stateString": row.summary.state.name,
        "waitsFor": _waits(row),
        "run": row.run,
        "deployment": None if row.plan is None else row.plan.deployment.value,
        "template": None if row.plan is None else row.plan.template,
        "requestedAt": None if requested is None else iso(requested),
        "provisionedAt": iso(row.summary.provisioned_at),
        "terminatedAt": None if terminated is None else iso(terminated),
        "resourcesUp": [name_of(resource) for resource in row.resources],
        "reason": row.reason,
    }
