"""`medialedger consumers`: the consumers of the log with their positions, and the parked records."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from api.cli.output import Column, Document, Kind, field, print_list, text
from api.cli.printable import printable
from api.cli.remote.rest_api import ApiError, RestApi, segment
from api.cli.shell import confirm
from api.wiring.startup import StartError

_PAGE: Final = 1000


def run(args: Namespace, api: RestApi) -> int:
    _ACTIONS[args.action](args, api)
    return 0


def _list(args: Namespace, api: RestApi) -> None:
    columns = (
        Column("name", field("name")),
        Column("reads", _reads, wide=True),
        Column("position", lambda consumer: "reads no log" if consumer.get("position") is None else consumer["position"]),
        Column("behind", field("lag"), Kind.NUMBER),
        Column("processes", lambda consumer: len(_members(consumer)), Kind.NUMBER),
        Column("busy", lambda consumer: sum(int(member.get("busy") or 0) for member in _members(consumer)), Kind.NUMBER),
        Column("parked", field("parked"), Kind.NUMBER),
        Column("oldest", field("oldestParkedAt"), Kind.TIME),
        Column("shards", field("shards"), Kind.NUMBER, wide=True),
        Column("hosts", lambda consumer: [text(member.get("host")) for member in _members(consumer)], wide=True),
        Column("fault", _fault, Kind.LONG),
    )
    print_list(api.documents("/api/consumer/"), columns, form=args.form, none="no consumers yet")


def _members(consumer: Document) -> list[dict[str, Any]]:
    members = consumer.get("members")
    return [member for member in members if isinstance(member, dict)] if isinstance(members, list) else []


def _reads(consumer: Document) -> str:
    if consumer.get("position") is None:
        return "tables"
    return "log, not broker" if any(member.get("readsLogSeconds") for member in _members(consumer)) else "as set up"


def _fault(consumer: Document) -> str | None:
    return next((str(member["fault"]) for member in _members(consumer) if member.get("fault")), None)


def _parked(args: Namespace, api: RestApi) -> None:
    """Print the parked records of one consumer, or of all."""
    existing = [row.get("name") for row in api.documents("/api/consumer/")]
    names = existing if args.name is None else [_check_name(args.name, existing)]
    columns = (
        Column("consumer", field("consumer")),
        Column("position", field("position"), Kind.NUMBER),
        Column("stream", lambda row: f"{row.get('aggregate')}:{row.get('id')}"),
        Column("type", field("type")),
        Column("attempts", field("attempts"), Kind.NUMBER),
        Column("parked", field("parkedAt"), Kind.TIME),
        Column("replay", field("replay"), wide=True),
        Column("error", field("error"), Kind.LONG),
    )
    records = (record for name in names for record in _records(api, str(name)))
    print_list(records, columns, form=args.form, none="no parked records")


def _records(api: RestApi, name: str) -> Iterable[Document]:
    after = 0
    while page := api.documents(f"/api/consumer/{segment(name)}/parked/", after=after, pageSize=_PAGE):
        yield from ({"consumer": name, **record} for record in page)
        if len(page) < _PAGE or int(page[-1]["position"]) <= after:
            return
        after = int(page[-1]["position"])


def _replay(args: Namespace, api: RestApi) -> None:
    aggregate, _, key = (args.stream or "").partition(":")
    query = {"aggregate": aggregate or None, "id": key or None}
    try:
        result = api.call("POST", f"/api/consumer/{segment(args.name)}/parked/replay/", query=query).document
    except ApiError as error:
        if error.status == 404:
            _check_name(args.name, [consumer.get("name") for consumer in api.documents("/api/consumer/")])
        raise
    print(f"{result['replaying']} records will be processed again by the workers that run {args.name}")


def _forget(args: Namespace, api: RestApi) -> None:
    existing = [consumer.get("name") for consumer in api.documents("/api/consumer/")]
    name = _check_name(args.name, existing)
    confirm(args, f"forget the consumer {name}, with its position and its parked records, at {api.label}")
    api.call("DELETE", f"/api/consumer/{segment(name)}")
    print(f"{printable(name)} is forgotten")


def _check_name(name: str, existing: list[Any]) -> str:
    if name not in existing:
        raise StartError(f"the consumer {name} does not exist; the consumers are: {', '.join(map(str, existing)) or 'none yet'}")
    return name


_ACTIONS: Final[Mapping[str, Callable[[Namespace, RestApi], None]]] = {
    "list": _list,
    "parked": _parked,
    "replay": _replay,
    "forget": _forget,
}
