"""The output of entries of the log and of differences between two moments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from api.cli.output import JSON, NDJSON, Document, Kind, TableColumn, field, json_line, json_text, print_list
from api.cli.remote.rest_api import RestApi
from api.cli.terminal_text import printable


def print_entries(entries: Iterable[Document], *, form: str) -> None:
    """Print the entries. The text form of an entry has two lines: what happened, and its fields."""
    if form == JSON:
        print(json_text(list(entries)))
        return
    for entry in entries:
        print(json_line(entry) if form == NDJSON else _lines(entry), flush=True)


def print_diff(api: RestApi, path: str, *, since: str, until: str | None, form: str) -> None:
    extent: dict[str, Any] = {"from": since, "to": until}
    document = api.document(path, **extent)
    if form == JSON:
        print(json_text(document))
        return
    changes = document.get("changes")
    columns = (
        TableColumn("field", field("field")),
        TableColumn("before", field("before"), Kind.LONG),
        TableColumn("after", field("after"), Kind.LONG),
        TableColumn("by", author),
        TableColumn("when", field("recordedAt"), Kind.TIME),
        TableColumn("version", field("version"), Kind.NUMBER, wide=True),
        TableColumn("transaction", field("transactionId"), wide=True),
    )
    listed = [change for change in changes if isinstance(change, dict)] if isinstance(changes, list) else []
    print_list(listed, columns, form=form, none="no differences")


def author(entry: Document) -> Any:
    """Return the author of an entry and the end user, with the kind of the actor unless its name implies it."""
    actor, kind, user = entry.get("actor"), entry.get("actorKind"), entry.get("endUser")
    is_plain = kind in (None, "shell") or (kind == "client" and actor != "system")
    who = actor if is_plain else f"{actor} ({kind})"
    return who if not user else f"{who} for {user}"


def _lines(entry: Document) -> str:
    head = f"{entry.get('position')!s:>8}  {entry.get('recordedAt')}  {entry.get('aggregate')} {entry.get('id')}"
    what = f"v{entry.get('version')}  {entry.get('type')}  by {author(entry)}  in {entry.get('transactionId')}"
    return f"{printable(f'{head} {what}')}\n          {json_line(entry.get('data'))}"
