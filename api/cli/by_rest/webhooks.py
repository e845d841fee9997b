"""`medialedger webhooks`: lists webhooks and their deliveries, sends a delivery again, and tests a webhook."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from api.cli.output import Column, Document, Kind, field, print_list, print_one
from api.cli.remote.lookup import unique
from api.cli.remote.rest_api import ApiError, RestApi

_SEARCHED: Final = 1000
_WHOLE: Final = 36
"""The characters of an id."""
_TAKEN, _NOT_TAKEN = 0, 1


def run(args: Namespace, api: RestApi) -> int:
    return _ACTIONS[args.action](args, api) or 0


def _all(api: RestApi) -> list[dict[str, Any]]:
    """Return the webhooks for all Events and the callbacks. Each has a list of its own in the API."""
    webhooks = api.documents("/api/webhook/")
    return webhooks + api.documents("/api/webhook/callback/", pageSize=_SEARCHED)


def _list(args: Namespace, api: RestApi) -> None:
    columns = (
        Column("id", field("id")),
        Column("url", field("webhookUrl"), Kind.LONG),
        Column("state", _state, Kind.STATE),
        Column("disabled", field("disabledAt"), Kind.TIME),
        Column("form", lambda webhook: "JSON" if webhook.get("useJsonBody", True) else "form", wide=True),
        Column("event", field("eventId"), wide=True),
        Column("client", field("client"), wide=True),
    )
    webhooks = _all(api) if args.event is None else api.documents(f"/api/webhook/event/{args.event}")
    print_list(webhooks, columns, form=args.form, none="no webhooks")


def _state(webhook: Document) -> str:
    return "active" if webhook.get("disabledAt") is None else "disabled"


def _health(args: Namespace, api: RestApi) -> None:
    columns = (
        Column("id", field("webhookId")),
        Column("url", field("webhookUrl"), Kind.LONG),
        Column("state", _condition, Kind.STATE),
        Column("circuit", field("circuit"), Kind.STATE),
        Column("delivered", field("delivered"), Kind.NUMBER),
        Column("failed", field("failed"), Kind.NUMBER),
        Column("waiting", field("pending"), Kind.NUMBER),
        Column("oldest", field("oldestPendingAt"), Kind.TIME),
        Column("next", field("nextTryAt"), Kind.TIME, wide=True),
        Column("failing since", field("failingSince"), Kind.TIME),
    )
    print_list(api.documents("/api/webhook/health"), columns, form=args.form, none="no webhooks")


def _condition(webhook: Document) -> str:
    return "failing" if webhook.get("disabledAt") is None and webhook.get("failingSince") else _state(webhook)


def _deliveries(args: Namespace, api: RestApi) -> None:
    state = "FAILED" if args.failed else args.state and args.state.upper()
    if args.webhook is None:
        if args.event is not None:
            raise ApiError("--event needs a WEBHOOK: the list of all webhooks has no such filter")
        deliveries = api.pages("/api/webhook/deliveries/", {"state": state}, most=args.items)
    else:
        path = f"/api/webhook/{_webhook(api, args.webhook)}/deliveries/"
        deliveries = api.pages(path, {"state": state, "eventId": args.event}, most=args.items)
    columns = (
        *((Column("webhook", field("webhookUrl"), Kind.LONG),) if args.webhook is None else ()),
        Column("id", field("id")),
        Column("state", field("state"), Kind.STATE),
        Column("action", field("action")),
        Column(
            "about", lambda delivery: delivery.get("eventId") or (f"job {delivery.get('jobId')}" if delivery.get("jobId") else None)
        ),
        Column("age", field("createdAt"), Kind.TIME),
        Column("tries", lambda delivery: len(delivery.get("attempts") or ()), Kind.NUMBER),
        Column("next", field("dueAt"), Kind.TIME),
        Column("finished", field("finishedAt"), Kind.TIME, wide=True),
        Column("position", field("position"), Kind.NUMBER, wide=True),
        Column("error", field("error"), Kind.LONG),
    )
    print_list(deliveries, columns, form=args.form, none="no deliveries")


def _resend(args: Namespace, api: RestApi) -> None:
    webhook = _webhook(api, args.webhook)
    delivery = args.delivery
    if len(delivery) != _WHOLE:
        recent = api.pages(f"/api/webhook/{webhook}/deliveries/", {}, most=_SEARCHED)
        delivery = unique(_ids(recent), delivery, what="delivery")
    api.call("POST", f"/api/webhook/{webhook}/deliveries/{delivery}/resend")
    print(f"delivery {delivery} is sent again")


def _test(args: Namespace, api: RestApi) -> int:
    result = api.call("POST", f"/api/webhook/{_webhook(api, args.webhook)}/test/").document
    facts = ((name, result.get(name)) for name in ("delivered", "status", "error", "seconds", "address", "response"))
    print_one(result, facts, form=args.form)
    return _TAKEN if result.get("delivered") is True else _NOT_TAKEN


def _webhook(api: RestApi, prefix: str) -> str:
    """Return the id of a webhook. A complete id is not looked up, because it may be that of a webhook for one Event."""
    return prefix if len(prefix) == _WHOLE else unique(_ids(_all(api)), prefix, what="webhook")


def _ids(rows: Iterable[Document]) -> list[str]:
    return [str(row.get("id")) for row in rows]


_ACTIONS: Final[Mapping[str, Callable[[Namespace, RestApi], int | None]]] = {
    "list": _list,
    "health": _health,
    "deliveries": _deliveries,
    "resend": _resend,
    "test": _test,
}
