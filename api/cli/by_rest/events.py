"""`medialedger events`: lists Events, and shows an Event as it is or was, its history, and the differences between two moments."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from api.cli.by_rest.history import print_diff, print_entries
from api.cli.output import Column, Document, Kind, field, moment, print_list, print_one
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


def run(args: Namespace, api: RestApi) -> int:
    _ACTIONS[args.action](args, api)
    return 0


def _list(args: Namespace, api: RestApi) -> None:
    """Print up to the given number of Events, read page by page."""
    filters = {
        "search": args.search,
        "eventState": args.state,
        "room": args.room,
        "tags": args.tag,
        "from": None if args.starts_from is None else iso(args.starts_from),
        "to": None if args.starts_to is None else iso(args.starts_to),
    }
    columns = (
        Column("id", field("id")),
        Column("start", field("scheduledStart"), Kind.TIME),
        Column("end", field("scheduledEnd"), Kind.TIME, wide=True),
        Column("state", field("stateString"), Kind.STATE),
        Column("title", field("title"), Kind.LONG),
        Column("room", field("room")),
        Column("channel", field("channel"), wide=True),
        Column("type", field("eventType"), wide=True),
        Column("reference", field("refId"), wide=True),
        Column("changed", field("dateModified"), Kind.TIME, wide=True),
    )
    path = "/api/event/deleted/" if args.deleted else "/api/event/"
    print_list(_pages(api, path, filters, most=args.items), columns, form=args.form, none="no Events")


def _pages(api: RestApi, path: str, filters: Mapping[str, Any], *, most: int) -> Iterable[Document]:
    size, number, remaining = min(most, _PAGE), 1, most
    while remaining > 0:
        rows = api.documents(path, pageNumber=number, pageSize=size, **filters)
        yield from rows[:remaining]
        remaining -= len(rows)
        if len(rows) < size:
            return
        number += 1


def _show(args: Namespace, api: RestApi) -> None:
    key = _key(api, args.event)
    if args.at is None:
        shown = _require_event(api.get(f"/api/event/{key}"), args.event)
    else:
        at = {"version": args.at} if args.at.isdigit() else {"at": args.at}
        state = api.document(f"/api/audit/{_KIND}/{key}/state", **at)
        shown = _require_event(state.get("state"), args.event) if args.form in ("table", "wide") else state
    facts = [(name, shown.get(name)) for name in _FACTS if shown.get(name) not in (None, "", [])]
    print_one(shown, ((name, _fact(name, value)) for name, value in facts), form=args.form)


def _fact(name: str, value: Any) -> Any:
    if name == "tags" and isinstance(value, list):
        return [tag.get("name") if isinstance(tag, dict) else tag for tag in value]
    return moment(value) if name.endswith(_TIMES) else value


def _history(args: Namespace, api: RestApi) -> None:
    print_entries(api.documents(f"/api/audit/{_KIND}/{_key(api, args.event)}/"), form=args.form)


def _diff(args: Namespace, api: RestApi) -> None:
    print_diff(api, f"/api/audit/{_KIND}/{_key(api, args.event)}/diff", args)


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


_ACTIONS: Final[Mapping[str, Callable[[Namespace, RestApi], None]]] = {
    "list": _list,
    "show": _show,
    "history": _history,
    "diff": _diff,
}
