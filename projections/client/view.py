"""The view of clients: roles, hashes of API keys and DRM settings."""

from __future__ import annotations

from pydantic_core import to_json

from domain.client.aggregate import Client
from projections.kernel.schema.view import Column, View

CLIENT_VIEW = View[Client](
    name="client_view",
    version=3,
    kinds=(Client.KIND,),
    columns=(
        Column("name", "text", lambda client: client.key),
        Column("version", "bigint", lambda client: client.version),
        Column("deleted", "boolean", lambda client: client.deleted),
        Column("registered_at", "timestamptz", lambda client: client.registered_at),
        Column("roles", "text", lambda client: to_json(client.roles).decode()),
        Column("keys", "text", lambda client: to_json(client.keys).decode()),
        Column("drm", "text", lambda client: to_json(client.drm).decode()),
        Column("trust_actor", "boolean", lambda client: client.trust_actor),
    ),
    key=("name",),
    indexes={},
)
