"""The view of clients: roles, keys (hashes) and DRM settings, for authentication, key answers and administration."""

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
        to_json(client.drm).decode(),
    )


CLIENT_VIEW = View(
    name="client_view",
    version=2,
    kinds=(Client.KIND,),
    columns=(
        Column("name", "text"),
        Column("version", "bigint"),
        Column("removed", "boolean"),
        Column("registered_at", "timestamptz"),
        Column("roles", "text"),
        Column("keys", "text"),
        Column("drm", "text"),
    ),
    row=row,
    key=("name",),
    indexes={},
)
