"""The list of clients with their keys, one line for each key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from api.cli.output import JSON, NDJSON, Column, Document, Kind, field, print_list


def _ever(name: str) -> Callable[[Document], Any]:
    """A time of the key, or that there is none."""
    return lambda row: (row["key"].get(name) or "never") if row["key"] else None


_COLUMNS = (
    Column("client", field("name")),
    Column("roles", field("roles")),
    Column("key", field("key", "keyId")),
    Column("made", field("key", "createdAt"), Kind.TIME),
    Column("ends", _ever("expiresAt"), Kind.TIME),
    Column("used", _ever("lastUsedAt"), Kind.TIME),
    Column("names end users", lambda row: bool(row.get("trustActor")), wide=True),
    Column("since", field("createdAt"), Kind.TIME, wide=True),
)


def print_clients(clients: Sequence[Document], *, form: str) -> None:
    """As documents they are as the API shows them."""
    print_list(clients if form in (JSON, NDJSON) else _rows(clients), _COLUMNS, form=form, none="no clients")


def _rows(clients: Sequence[Document]) -> Iterator[Document]:
    for client in clients:
        keys = client.get("keys")
        for key in keys if isinstance(keys, list) and keys else [{}]:
            yield {**client, "key": key if isinstance(key, dict) else {}}
