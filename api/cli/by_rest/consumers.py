"""`medialedger consumers`: the consumers of the log with their positions, and the parked records."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from api.cli.consent import confirm
from api.cli.output import Column, Document, Kind, field, print_list, text
from api.cli.printable import printable
from api.cli.rest_api import ApiError, RestApi, segment
from api.wiring.startup import StartError

_PAGE: Final = 1000


def run(args: Namespace, api: RestApi) -> int:
    _ACTIONS[args.action](args, api)
    return 0


def _list(args: Namespace, api: RestApi) -> None:
    columns = (
        Column("name", field("name")),
        Column("reads", _reads, wide=True),
        Column("position", lambda one: "reads no log" if one.get("position") is None else one["position"]),
        Column("behind", field("lag"), Kind.NUMBER),
        Column("processes", lambda one: len(_members(one)), Kind.NUMBER),
        Column("busy", lambda one: sum(int(member.get("busy") or 0) for member in _members(one)), Kind.NUMBER),
        Column("parked", field("parked"), Kind.NUMBER),
        Column("oldest", field("oldestParkedAt"), Kind.TIME),
        Column("shards", field("shards"), Kind.NUMBER, wide=True),
        Column("hosts", lambda one: [text(member.get("host")) for member in _members(one)], wide=True),
        Column("fails", _fault, Kind.LONG),
    )
    print_list(api.documents("/api/consumer/"), columns, form=args.form, none="no consumers yet")


def _members(consumer: Document) -> list[dict[str, Any]]:
    members = consumer.get("members")
    return [one for one in members if isinstance(one, dict)] if isinstance(members, list) else []


def _reads(consumer: Document) -> str:
    if consumer.get("position") is None:
        return "tables"
    return "log, not broker" if any(member.get("readsLogSeconds") for member in _members(consumer)) else "as set up"


def _fault(consumer: Document) -> str | None:
    return next((str(member["fault"]) for member in _members(consumer) if member.get("fault")), None)


def _parked(args: Namespace, api: RestApi) -> None:
    """Of one consumer, or of all."""
    known = [one.get("name") for one in api.documents("/api/consumer/")]
    names = known if args.name is None else [_known(args.name, known)]
    columns = (
        Column("consumer", field("consumer")),
        Column("position", field("position"), Kind.NUMBER),
        Column("stream", lambda one: f"{one.get('aggregate')}:{one.get('id')}"),
        Column("type", field("type")),
        Column("tried", field("attempts"), Kind.NUMBER),
        Column("parked", field("parkedAt"), Kind.TIME),
        Column("replay", field("replay"), wide=True),
        Column("error", field("error"), Kind.LONG),
    )
    found = (record for name in names for record in _records(api, str(name)))
    print_list(found, columns, form=args.form, none="no parked records")


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
        found = api.call("POST", f"/api/consumer/{segment(args.name)}/parked/replay/", query=query).document
    except ApiError as error:
        if error.status == 404:
            _known(args.name, [one.get("name") for one in api.documents("/api/consumer/")])
        raise
    print(f"{found['replaying']} records will be processed again by the workers that run {args.name}")


def _forget(args: Namespace, api: RestApi) -> None:
    known = [one.get("name") for one in api.documents("/api/consumer/")]
    name = _known(args.name, known)
    confirm(args, f"forget the consumer {name}, with its position and its parked records, at {api.label}")
    api.call("DELETE", f"/api/consumer/{segment(name)}")
    print(f"{printable(name)} is forgotten")


def _known(name: str, known: list[Any]) -> str:
    if name not in known:
        raise StartError(f"there is no consumer {name}; there are {', '.join(map(str, known)) or 'none yet'}")
    return name


_ACTIONS: Final[Mapping[str, Callable[[Namespace, RestApi], None]]] = {
    "list": _list,
    "parked": _parked,
    "replay": _replay,
    "forget": _forget,
}
