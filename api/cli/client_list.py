"""The table of clients, with one row for each key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from api.cli.output import JSON, NDJSON, Column, Document, Kind, field, print_list


def _ever(name: str) -> Callable[[Document], Any]:
    """Return a function that reads a time of a row's key: "never" if the key has no such time, None if the row has no key."""
    return lambda row: (row["key"].get(name) or "never") if row["key"] else None


_COLUMNS = (
    Column("client", field("name")),
    Column("roles", field("roles")),
    Column("key", field("key", "keyId")),
    Column("created", field("key", "createdAt"), Kind.TIME),
    Column("expires", _ever("expiresAt"), Kind.TIME),
    Column("last used", _ever("lastUsedAt"), Kind.TIME),
    Column("names end users", lambda row: bool(row.get("trustActor")), wide=True),
    Column("since", field("createdAt"), Kind.TIME, wide=True),
)


def print_clients(clients: Sequence[Document], *, form: str) -> None:
    """Print the clients. JSON forms have them as the API returns them, one document per client."""
    print_list(clients if form in (JSON, NDJSON) else _rows(clients), _COLUMNS, form=form, none="no clients")


def _rows(clients: Sequence[Document]) -> Iterator[Document]:
    for client in clients:
        keys = client.get("keys")
        for key in keys if isinstance(keys, list) and keys else [{}]:
            yield {**client, "key": key if isinstance(key, dict) else {}}
