"""`medialedger webhooks`: lists webhooks and their deliveries, sends a delivery again, and tests a webhook."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

import click

from api.cli.command import ID, TEXT, calls_api, form_option, group, items_option
from api.cli.output import Document, Kind, TableColumn, field, print_list, print_one
from api.cli.remote.lookup import unique
from api.cli.remote.rest_api import RestApi
from api.wiring.startup import StartError

_SEARCHED: Final = 1000
_WHOLE: Final = 36
"""The characters of an id."""
_TAKEN, _NOT_TAKEN = 0, 1
_WEBHOOK: Final = click.argument("webhook", type=TEXT, metavar="WEBHOOK", help="Its id, or the beginning of it.")


@group(
    "webhooks",
    examples="""
    medialedger webhooks list
    medialedger webhooks health
    medialedger webhooks deliveries --failed
    medialedger webhooks resend 3fa85f64 9b1d
    medialedger webhooks test 3fa85f64
    """,
)
def webhooks() -> None:
    """List webhooks and what was sent to them, send a delivery again, and try a webhook with a sample notification."""


@webhooks.command("list")
@click.option("--event", type=ID, metavar="ID", help="Only webhooks of this Event.")
@form_option
@calls_api
def list_webhooks(api: RestApi, *, event: UUID | None, form: str) -> None:
    """List the webhooks for all Events, or those of one Event."""
    columns = (
        TableColumn("id", field("id")),
        TableColumn("url", field("webhookUrl"), Kind.LONG),
        TableColumn("state", _state, Kind.STATE),
        TableColumn("disabled", field("disabledAt"), Kind.TIME),
        TableColumn("form", lambda webhook: "JSON" if webhook.get("useJsonBody", True) else "form", wide=True),
        TableColumn("event", field("eventId"), wide=True),
        TableColumn("client", field("client"), wide=True),
    )
    listed = _all(api) if event is None else api.documents(f"/api/webhook/event/{event}")
    print_list(listed, columns, form=form, none="no webhooks")


@webhooks.command("health")
@form_option
@calls_api
def webhook_health(api: RestApi, form: str) -> None:
    """Show the state of each webhook: its last deliveries, the oldest waiting one, its fault."""
    columns = (
        TableColumn("id", field("webhookId")),
        TableColumn("url", field("webhookUrl"), Kind.LONG),
        TableColumn("state", _condition, Kind.STATE),
        TableColumn("circuit", field("circuit"), Kind.STATE),
        TableColumn("delivered", field("delivered"), Kind.NUMBER),
        TableColumn("failed", field("failed"), Kind.NUMBER),
        TableColumn("waiting", field("pending"), Kind.NUMBER),
        TableColumn("oldest", field("oldestPendingAt"), Kind.TIME),
        TableColumn("next", field("nextTryAt"), Kind.TIME, wide=True),
        TableColumn("failing since", field("failingSince"), Kind.TIME),
    )
    print_list(api.documents("/api/webhook/health"), columns, form=form, none="no webhooks")


@webhooks.command("deliveries")
@click.argument(
    "webhook", type=TEXT, metavar="[WEBHOOK]", required=False, help="The webhook's id, or its beginning (default: all webhooks)."
)
@click.option("--state", type=click.Choice(("pending", "delivered", "failed")), help="Only deliveries in this state.")
@click.option("--failed", is_flag=True, help="The same as --state failed.")
@click.option("--event", type=ID, metavar="ID", help="Only deliveries about this Event.")
@items_option(20)
@form_option
@calls_api
def list_deliveries(
    api: RestApi, *, webhook: str | None, state: str | None, failed: bool, event: UUID | None, items: int, form: str
) -> None:
    """List the deliveries of all webhooks or of one, the newest first."""
    if failed and state is not None:
        raise click.UsageError("only one of --state and --failed may be given")
    wanted = "FAILED" if failed else state and state.upper()
    if webhook is None:
        if event is not None:
            raise StartError("--event needs a WEBHOOK: the list of all webhooks has no such filter")
        deliveries = api.pages("/api/webhook/deliveries/", {"state": wanted}, most=items)
    else:
        path = f"/api/webhook/{_webhook(api, webhook)}/deliveries/"
        deliveries = api.pages(path, {"state": wanted, "eventId": event}, most=items)
    columns = (
        *((TableColumn("webhook", field("webhookUrl"), Kind.LONG),) if webhook is None else ()),
        TableColumn("id", field("id"), is_id=True),
        TableColumn("state", field("state"), Kind.STATE),
        TableColumn("action", field("action")),
        TableColumn(
            "about", lambda delivery: delivery.get("eventId") or (f"job {delivery.get('jobId')}" if delivery.get("jobId") else None)
        ),
        TableColumn("age", field("createdAt"), Kind.TIME),
        TableColumn("tries", lambda delivery: len(delivery.get("attempts") or ()), Kind.NUMBER),
        TableColumn("next", field("dueAt"), Kind.TIME),
        TableColumn("finished", field("finishedAt"), Kind.TIME, wide=True),
        TableColumn("position", field("position"), Kind.NUMBER, wide=True),
        TableColumn("error", field("error"), Kind.LONG),
    )
    print_list(deliveries, columns, form=form, none="no deliveries")


@webhooks.command("resend")
@_WEBHOOK
@click.argument("delivery", type=TEXT, metavar="DELIVERY", help="Its id, or the beginning of it.")
@calls_api
def resend_delivery(api: RestApi, *, webhook: str, delivery: str) -> None:
    """Send a finished delivery again."""
    key = _webhook(api, webhook)
    if len(delivery) != _WHOLE:
        recent = api.pages(f"/api/webhook/{key}/deliveries/", {}, most=_SEARCHED)
        delivery = unique(_ids(recent), delivery, what="delivery")
    api.call("POST", f"/api/webhook/{key}/deliveries/{delivery}/resend")
    print(f"delivery {delivery} is sent again")


@webhooks.command("test")
@_WEBHOOK
@form_option
@calls_api
def test_webhook(api: RestApi, *, webhook: str, form: str) -> int:
    """Send a sample notification; the exit code is 1 if it is not accepted."""
    result = api.call("POST", f"/api/webhook/{_webhook(api, webhook)}/test/").document
    facts = ((name, result.get(name)) for name in ("delivered", "status", "error", "seconds", "address", "response"))
    print_one(result, facts, form=form)
    return _TAKEN if result.get("delivered") is True else _NOT_TAKEN


def _all(api: RestApi) -> list[dict[str, Any]]:
    """Return the webhooks for all Events and the callbacks. Each has a list of its own in the API."""
    webhooks = api.documents("/api/webhook/")
    return webhooks + api.documents("/api/webhook/callback/", pageSize=_SEARCHED)


def _state(webhook: Document) -> str:
    return "active" if webhook.get("disabledAt") is None else "disabled"


def _condition(webhook: Document) -> str:
    return "failing" if webhook.get("disabledAt") is None and webhook.get("failingSince") else _state(webhook)


def _webhook(api: RestApi, prefix: str) -> str:
    """Return the id of a webhook. A complete id is not looked up, because it may be that of a webhook for one Event."""
    return prefix if len(prefix) == _WHOLE else unique(_ids(_all(api)), prefix, what="webhook")


def _ids(rows: Iterable[Document]) -> list[str]:
    return [str(row.get("id")) for row in rows]
