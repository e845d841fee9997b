"""`medialedger events`: lists Events, and shows an Event as it is or was, its history, and the differences between two moments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import click

from api.cli.command import MOMENT, MOMENT_OR_VERSION, TEXT, calls_api, form_option, group, items_option
from api.cli.output import Document, Kind, TableColumn, field, moment, print_list, print_one
from api.cli.remote.history import print_diff, print_entries
from api.cli.remote.rest_api import RestApi, segment
from api.wiring.startup import StartError
from domain.kernel.clock import iso

_KIND: Final = "event"
_PAGE: Final = 1000
_FACTS: Final = (
    *("id", "refId", "externalId", "title", "description", "stateString", "room", "channel", "eventType", "category", "tags"),
    *(
        "scheduledStart",
        "scheduledEnd",
        "actualLiveStart",
        "actualLiveEnd",
        "streamSource",
        "vodDrm",
        "dateCreated",
        "dateModified",
    ),
)
_TIMES: Final = ("Start", "End", "Created", "Modified")


_EVENT: Final = click.argument("event", type=TEXT, metavar="EVENT", help="The Event's id or reference id.")


@group(
    "events",
    examples="""
    medialedger events list --state LIVE_PUBLISHED,PRE_LIVE
    medialedger events list --search final --from 2031-05-01
    medialedger events show 3fa85f64-5717-4562-b3fc-2c963f66afa6 --at 2031-05-01T18:30
    medialedger events history match-17
    medialedger events diff match-17 v1 v3
    """,
)
def events() -> None:
    """List and show Events, their history, and what differs between two moments. A time without an offset is UTC."""


@events.command("list")
@click.option("--search", type=TEXT, metavar="TEXT", help="Only Events with this text in their title, description or an id.")
@click.option(
    "--state", type=TEXT, metavar="STATE", help="Only Events in this state, such as LIVE_PUBLISHED; separate several by commas."
)
@click.option("--room", type=TEXT, metavar="NAME", help="Only Events in rooms with this name.")
@click.option("--tag", type=TEXT, metavar="NAME", help="Only Events with this tag.")
@click.option("--from", "starts_from", type=MOMENT, metavar="TIME", help="Only Events that are scheduled then or later.")
@click.option("--to", "starts_to", type=MOMENT, metavar="TIME", help="Only Events that are scheduled then or earlier.")
@click.option("--deleted", is_flag=True, help="Only deleted Events.")
@items_option(20)
@form_option
@calls_api
def list_events(
    api: RestApi,
    *,
    search: str | None,
    state: str | None,
    room: str | None,
    tag: str | None,
    starts_from: datetime | None,
    starts_to: datetime | None,
    deleted: bool,
    items: int,
    form: str,
) -> None:
    """List Events by their scheduled start."""
    filters = {
        "search": search,
        "eventState": state,
        "room": room,
        "tags": tag,
        "from": None if starts_from is None else iso(starts_from),
        "to": None if starts_to is None else iso(starts_to),
    }
    columns = (
        TableColumn("id", field("id")),
        TableColumn("start", field("scheduledStart"), Kind.TIME),
        TableColumn("end", field("scheduledEnd"), Kind.TIME, wide=True),
        TableColumn("state", field("stateString"), Kind.STATE),
        TableColumn("title", field("title"), Kind.LONG),
        TableColumn("room", field("room")),
        TableColumn("channel", field("channel"), wide=True),
        TableColumn("type", field("eventType"), wide=True),
        TableColumn("reference", field("refId"), wide=True),
        TableColumn("changed", field("dateModified"), Kind.TIME, wide=True),
    )
    path = "/api/event/deleted/" if deleted else "/api/event/"
    print_list(_pages(api, path, filters, most=items), columns, form=form, none="no Events")


@events.command("show")
@_EVENT
@click.option("--at", type=MOMENT_OR_VERSION, metavar="TIME", help="Show it at this time, or at this version: v3.")
@form_option
@calls_api
def show_event(api: RestApi, *, event: str, at: str | None, form: str) -> None:
    """Show one Event as it is or as it was."""
    key = _key(api, event)
    if at is None:
        shown = _require_event(api.get(f"/api/event/{key}"), event)
    else:
        moment_or_version: dict[str, Any] = {"version": at} if at.isdigit() else {"at": at}
        state = api.document(f"/api/audit/{_KIND}/{key}/state", **moment_or_version)
        shown = _require_event(state.get("state"), event) if form in ("table", "wide") else state
    facts = [(name, shown.get(name)) for name in _FACTS if shown.get(name) not in (None, "", [])]
    print_one(shown, ((name, _fact(name, value)) for name, value in facts), form=form)


@events.command("history")
@_EVENT
@form_option
@calls_api
def event_history(api: RestApi, *, event: str, form: str) -> None:
    """List every change of an Event with its author and time."""
    print_entries(api.documents(f"/api/audit/{_KIND}/{_key(api, event)}/"), form=form)


@events.command("diff")
@_EVENT
@click.argument("since", type=MOMENT_OR_VERSION, metavar="FROM", help="A time, or a version: v1.")
@click.argument(
    "until", type=MOMENT_OR_VERSION, metavar="[TO]", required=False, help="A time or a version, as FROM (default: now)."
)
@form_option
@calls_api
def diff_event(api: RestApi, *, event: str, since: str, until: str | None, form: str) -> None:
    """Show what differs between two moments of an Event."""
    print_diff(api, f"/api/audit/{_KIND}/{_key(api, event)}/diff", since=since, until=until, form=form)


def _pages(api: RestApi, path: str, filters: Mapping[str, Any], *, most: int) -> Iterable[Document]:
    size, number, remaining = min(most, _PAGE), 1, most
    while remaining > 0:
        rows = api.documents(path, pageNumber=number, pageSize=size, **filters)
        yield from rows[:remaining]
        remaining -= len(rows)
        if len(rows) < size:
            return
        number += 1


def _fact(name: str, value: Any) -> Any:
    if name == "tags" and isinstance(value, list):
        return [tag.get("name") if isinstance(tag, dict) else tag for tag in value]
    return moment(value) if name.endswith(_TIMES) else value


def _key(api: RestApi, id_or_reference: str) -> str:
    """Return the id of an Event that is given by its id or its reference id."""
    try:
        return str(UUID(id_or_reference))
    except ValueError:
        return segment(_require_event(api.get("/api/event/reference", id=id_or_reference), id_or_reference).get("id"))


def _require_event(event: Any, id_or_reference: str) -> dict[str, Any]:
    if not isinstance(event, dict):
        raise StartError(f"the Event {id_or_reference} does not exist")
    return event
