"""`medialedger provision`: lists the infrastructure of Events, and shows, plans or cancels that of one Event."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

import click

from api.cli.command import ID, calls_api, consent_option, form_option, group, on_database
from api.cli.output import JSON, NDJSON, moment, print_one
from api.cli.remote.rest_api import ApiError, RestApi
from api.cli.shell import confirm
from api.cli.terminal_text import aligned
from api.wiring.settings import Settings
from api.wiring.startup import StartError

_EVENT: Final = click.argument("event", type=ID, metavar="EVENT", help="The id of the Event.")


@group(
    "provision",
    examples="""
    medialedger provision list
    medialedger provision show 3fa85f64-5717-4562-b3fc-2c963f66afa6 --json
    medialedger provision plan 3fa85f64-5717-4562-b3fc-2c963f66afa6
    medialedger provision cancel 3fa85f64-5717-4562-b3fc-2c963f66afa6
    """,
)
def provision() -> None:
    """Show the infrastructure of Events: its state and key, and the work that waits for its worker. `plan` shows what
    provisioning an Event now would do: for a template it is a plan of Terraform, so call it where the role `provisioning`
    runs. `cancel` is DELETE /api/provision/{eventId}: the worker interrupts what is under way, and terminates."""


@provision.command("list")
@form_option
@on_database
async def list_provisions(settings: Settings, form: str) -> None:
    """List the infrastructure with work under way, the longest waiting first, then the latest without."""
    from api.cli.local.provision import print_provisions

    await print_provisions(settings, form=form)


@provision.command("show")
@_EVENT
@form_option
@calls_api
def show_provision(api: RestApi, *, event: UUID, form: str) -> None:
    """Show the infrastructure of an Event with its resources."""
    _print(_provision(api, event), event, form=form)


@provision.command("plan")
@_EVENT
@click.option("--allow-updates", is_flag=True, default=None, help="Plan as if existing resources could be changed.")
@form_option
@on_database
async def plan_provision(settings: Settings, *, event: UUID, allow_updates: bool | None, form: str) -> None:
    """Show what provisioning now would create, change and remove; nothing is changed."""
    from api.cli.local.provision import print_plan

    await print_plan(settings, event, allow_updates=allow_updates, form=form)


@provision.command("cancel")
@_EVENT
@consent_option
@form_option
@calls_api
def cancel_provision(api: RestApi, *, event: UUID, yes: bool, form: str) -> None:
    """Terminate the infrastructure, or interrupt its provisioning."""
    _provision(api, event)
    confirm(yes, f"terminate the infrastructure of the Event {event} at {api.label}")
    cancelled = api.call("DELETE", f"/api/provision/{event}").document
    if form in (JSON, NDJSON):
        print_one(cancelled, (), form=form)
    else:
        print(f"the infrastructure of the Event {event} is {cancelled.get('stateString')}")


def _provision(api: RestApi, event: UUID) -> dict[str, Any]:
    try:
        return api.document(f"/api/provision/{event}")
    except ApiError as error:
        if error.status == 404:
            raise StartError(f"the Event {event} has never been provisioned") from None
        raise


def _print(provision: Mapping[str, Any], event: UUID, *, form: str) -> None:
    facts = {
        "event": str(event),
        "state": provision.get("stateString"),
        "key": provision.get("infrastructureKey"),
        "provisioned": moment(provision.get("provisionedAt")),
        "terminated": moment(provision.get("terminatedAt")),
    }
    print_one(provision, facts.items(), form=form)
    resources = [resource for resource in json.loads(provision.get("resourcesJson") or "[]") if isinstance(resource, dict)]
    if form not in (JSON, NDJSON) and resources:
        print("\n".join(aligned([("resource", "type", "address"), *map(_resource, resources)])))


def _resource(resource: Mapping[str, Any]) -> tuple[str, str, str]:
    members = {name.lower(): value for name, value in resource.items()}  # a profile may spell them in any case
    address = members.get("ipaddress") or members.get("dns") or "-"
    return str(members.get("name") or "-"), str(members.get("type") or "-").lower(), str(address)
