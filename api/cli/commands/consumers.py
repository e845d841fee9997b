"""`medialedger consumers`: the consumers of the log with their positions, and the parked records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import click

from api.cli.command import TEXT, calls_api, consent_option, form_option, group
from api.cli.output import Document, Kind, TableColumn, field, print_list, text
from api.cli.remote.rest_api import ApiError, RestApi, segment
from api.cli.shell import confirm
from api.cli.terminal_text import printable
from api.wiring.startup import StartError

_PAGE: Final = 1000
_AS_LISTED: Final = "The consumer, as `medialedger consumers list` names it"


@group(
    "consumers",
    examples="""
    medialedger consumers list
    medialedger consumers parked webhooks
    medialedger consumers replay webhooks
    medialedger consumers replay webhooks --stream event:1b671a64-40d5-491e-99b0-da01ff1f3341
    medialedger consumers forget 'relay 4L6g3nShT-eMCtK--X86sw'
    """,
)
def consumers() -> None:
    """List the consumers of the log and the records that they could not process, and replay such records. A parked record does
    not stop the consumer; only later records of the same aggregate wait for it. `forget` is for a consumer that no process runs
    any more. A consumer that follows the log cannot be forgotten, except for the relay to Kafka."""


@consumers.command("list")
@form_option
@calls_api
def list_consumers(api: RestApi, form: str) -> None:
    """List every consumer with its position, its processes and the number of parked records."""
    columns = (
        TableColumn("name", field("name")),
        TableColumn("reads", _reads, wide=True),
        TableColumn("position", lambda consumer: "reads no log" if consumer.get("position") is None else consumer["position"]),
        TableColumn("behind", field("lag"), Kind.NUMBER),
        TableColumn("processes", lambda consumer: len(_members(consumer)), Kind.NUMBER),
        TableColumn("busy", lambda consumer: sum(int(member.get("busy") or 0) for member in _members(consumer)), Kind.NUMBER),
        TableColumn("parked", field("parked"), Kind.NUMBER),
        TableColumn("oldest", field("oldestParkedAt"), Kind.TIME),
        TableColumn("shards", field("shards"), Kind.NUMBER, wide=True),
        TableColumn("hosts", lambda consumer: [text(member.get("host")) for member in _members(consumer)], wide=True),
        TableColumn("fault", _fault, Kind.LONG),
    )
    print_list(api.documents("/api/consumer/"), columns, form=form, none="no consumers yet")


@consumers.command("parked")
@click.argument("name", type=TEXT, metavar="[NAME]", required=False, help=f"{_AS_LISTED} (default: all).")
@form_option
@calls_api
def list_parked(api: RestApi, *, name: str | None, form: str) -> None:
    """List the records that could not be processed, with their errors."""
    existing = [row.get("name") for row in api.documents("/api/consumer/")]
    names = existing if name is None else [_check_name(name, existing)]
    columns = (
        TableColumn("consumer", field("consumer"), is_id=True),
        TableColumn("position", field("position"), Kind.NUMBER),
        TableColumn("stream", lambda row: f"{row.get('aggregate')}:{row.get('id')}", is_id=True),
        TableColumn("type", field("type")),
        TableColumn("attempts", field("attempts"), Kind.NUMBER),
        TableColumn("parked", field("parkedAt"), Kind.TIME),
        TableColumn("replay", field("replay"), wide=True),
        TableColumn("error", field("error"), Kind.LONG),
    )
    records = (record for each in names for record in _records(api, str(each)))
    print_list(records, columns, form=form, none="no parked records")


@consumers.command("replay")
@click.argument("name", type=TEXT, metavar="NAME", help=f"{_AS_LISTED}.")
@click.option(
    "--stream", type=TEXT, metavar="KIND:ID", help="Only the records of one aggregate, such as event:1b671a64-… (default: all)."
)
@calls_api
def replay_parked(api: RestApi, *, name: str, stream: str | None) -> None:
    """Process parked records again."""
    aggregate, _, key = (stream or "").partition(":")
    query = {"aggregate": aggregate or None, "id": key or None}
    try:
        result = api.call("POST", f"/api/consumer/{segment(name)}/parked/replay/", query=query).document
    except ApiError as error:
        if error.status == 404:
            _check_name(name, [consumer.get("name") for consumer in api.documents("/api/consumer/")])
        raise
    print(f"{result['replaying']} records will be processed again by the workers that run {name}")


@consumers.command("forget")
@click.argument("name", type=TEXT, metavar="NAME", help=f"{_AS_LISTED}.")
@consent_option
@calls_api
def forget_consumer(api: RestApi, *, name: str, yes: bool) -> None:
    """Forget a consumer that is no longer run, such as the relay to a broker that was removed."""
    existing = [consumer.get("name") for consumer in api.documents("/api/consumer/")]
    _check_name(name, existing)
    confirm(yes, f"forget the consumer {name}, with its position and its parked records, at {api.label}")
    api.call("DELETE", f"/api/consumer/{segment(name)}")
    print(f"{printable(name)} is forgotten")


def _members(consumer: Document) -> list[dict[str, Any]]:
    members = consumer.get("members")
    return [member for member in members if isinstance(member, dict)] if isinstance(members, list) else []


def _reads(consumer: Document) -> str:
    if consumer.get("position") is None:
        return "tables"
    return "log, not broker" if any(member.get("readsLogSeconds") for member in _members(consumer)) else "as set up"


def _fault(consumer: Document) -> str | None:
    return next((str(member["fault"]) for member in _members(consumer) if member.get("fault")), None)


def _records(api: RestApi, name: str) -> Iterable[Document]:
    after = 0
    while page := api.documents(f"/api/consumer/{segment(name)}/parked/", after=after, pageSize=_PAGE):
        yield from ({"consumer": name, **record} for record in page)
        if len(page) < _PAGE or int(page[-1]["position"]) <= after:
            return
        after = int(page[-1]["position"])


def _check_name(name: str, existing: list[Any]) -> str:
    if name not in existing:
        raise StartError(f"the consumer {name} does not exist; the consumers are: {', '.join(map(str, existing)) or 'none yet'}")
    return name
