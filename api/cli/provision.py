"""`medialedger provision`: lists the infrastructure of Events, and shows, plans or cancels that of one Event."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from uuid import UUID

from api.cli import shell
from api.cli.output import JSON, NDJSON, Column, Document, Kind, field, print_list, print_one
from api.cli.printable import aligned, printable, printable_lines
from api.cli.run.core import open_vault
from api.cli.shell import confirm
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
from domain.provision.values import Work, name_of, type_of
from projections.kernel.database.database import Database
from projections.provision.queries import ProvisionQueries
from workers.adapters.outbound_http import GuardedClient
from workers.kernel.quiet import REFUSAL
from workers.ports.provisioners import Provisioners

_NOTHING: Final = "nothing would change"


async def run(args: Namespace, settings: Settings) -> int:
    try:
        async with open_vault(settings) as (wired, _):
            await _ACTIONS[args.action](args, settings, _Services(services_of(wired, settings)))
    except DomainError as refusal:
        raise StartError(str(refusal)) from None
    return 0


class _Services:
    """The services that the actions use."""

    def __init__(self, container: Container) -> None:
        self.container = container
        self.database = container.get(Database)
        self.provisions = container.get(ProvisionQueries)
        self.handlers = container.get(ProvisionHandlers)

    async def by_event(self, event: UUID) -> ProvisionRow:
        row = await self.provisions.of_event(event)
        if row is None:
            raise StartError(f"the Event {event} has never been provisioned")
        return row


async def _list(args: Namespace, settings: Settings, services: _Services) -> None:
    rows = await services.provisions.listed()
    documents = [{**_document(row), "changedAt": iso(changed), "resourcesNeeded": len(row.needed)} for row, changed in rows]
    print_list(documents, _COLUMNS, form=args.form, none="no infrastructure")


async def _show(args: Namespace, settings: Settings, services: _Services) -> None:
    row = await services.by_event(args.event)
    if args.form in (JSON, NDJSON):
        print_one({**_document(row), "needed": list(row.needed), "resources": list(row.resources)}, (), form=args.form)
        return
    for name, value in _document(row).items():
        print(f"{name}: {'-' if value is None else printable(str(value))}")
    up = {name_of(resource): resource for resource in row.resources}
    wanted = {name_of(resource): resource for resource in row.needed}
    table = [("resource", "type", "up", "wanted", "address")]
    for name, resource in {**wanted, **up}.items():
        address = str(resource.get("ipAddress") or resource.get("dns") or "-")
        table.append((name, type_of(resource), _yes_no(name in up), _yes_no(name in wanted), address))
    print("\n".join(aligned(table)))


async def _plan(args: Namespace, settings: Settings, services: _Services) -> None:
    row = await services.handlers.foreseen(args.event, allow_updates=args.allow_updates, by="system")
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
    if args.form in (JSON, NDJSON):
        document = {"eventId": str(row.event_id), "infrastructureKey": key, "plan": changes.splitlines()}
        print_one(document, (), form=args.form)
    else:
        print(printable_lines(changes) if changes else _NOTHING)


async def _cancel(args: Namespace, settings: Settings, services: _Services) -> None:
    await services.by_event(args.event)
    confirm(args, f"terminate the infrastructure of the Event {args.event}")
    outcome = await services.handlers.terminate(args.event, invocation=shell.invocation())
    row = ProvisionRow.of(outcome.aggregate)
    if args.form in (JSON, NDJSON):
        print_one(_document(row), (), form=args.form)
    else:
        print(f"the infrastructure of the Event {row.event_id} is {row.summary.state.name}")


_ACTIONS: Final[Mapping[str, Callable[[Namespace, Settings, _Services], Awaitable[None]]]] = {
    "list": _list,
    "show": _show,
    "plan": _plan,
    "cancel": _cancel,
}


def _resources_up(document: Document) -> str:
    up = len(document["resourcesUp"])
    return f"{up} of {document['resourcesNeeded']}" if document["resourcesNeeded"] else str(up)


_COLUMNS: Final = (
    Column("event", field("eventId")),
    Column("state", field("stateString"), Kind.STATE),
    Column("waits for", field("waitsFor")),
    Column("since", field("changedAt"), Kind.TIME),
    Column("up", _resources_up),
    Column("key", field("infrastructureKey")),
    Column("reason", field("reason"), Kind.LONG),
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


def _yes_no(fact: bool) -> str:
    return "yes" if fact else "no"
