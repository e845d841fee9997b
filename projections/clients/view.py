"""The view of clients: roles and keys (hashes), for authentication and for their administration."""

from __future__ import annotations

from typing import Any

from pydantic_core import to_json

from domain.client.aggregate import Client
from projections.kernel.view import Column, View


def row(client: Client) -> tuple[Any, ...]:
    return (
        client.key,
        client.version,
        client.removed,
        client.registered_at,
        to_json(client.roles).decode(),
        to_json(client.keys).decode(),
    )


CLIENT_VIEW = View(
    name="client_view",
    version=1,
    kinds=(Client.KIND,),
    columns=(
        Column("name", "text"),
        Column("version", "bigint"),
        Column("removed", "boolean"),
        Column("registered_at", "timestamptz"),
        Column("roles", "text"),
        Column("keys", "text"),
    ),
    row=row,
    key=("name",),
    indexes={},
)
