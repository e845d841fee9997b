"""The view of clients: roles, hashes of API keys and DRM settings."""

from __future__ import annotations

from typing import Any

from pydantic_core import to_json

from domain.client.aggregate import Client
from projections.kernel.schema.view import Column, View


def row(client: Client) -> tuple[Any, ...]:
    return (
        client.key,
        client.version,
        client.deleted,
        client.registered_at,
        to_json(client.roles).decode(),
        to_json(client.keys).decode(),
        to_json(client.drm).decode(),
        client.trust_actor,
    )


CLIENT_VIEW = View(
    name="client_view",
    version=3,
    kinds=(Client.KIND,),
    columns=(
        Column("name", "text"),
        Column("version", "bigint"),
        Column("deleted", "boolean"),
        Column("registered_at", "timestamptz"),
        Column("roles", "text"),
        Column("keys", "text"),
        Column("drm", "text"),
        Column("trust_actor", "boolean"),
    ),
    row=row,
    key=("name",),
    indexes={},
)
