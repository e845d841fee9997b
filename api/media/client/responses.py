"""Responses for clients: docs/reference/api/clients.md. An API key is in plain text only in the response that issues it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from pydantic import Field

from api.kernel.wire import Instant, Wire
from domain.client import aggregate
from domain.drm import settings
from projections.clients.directory import ClientRow

NEVER_USED: Mapping[str, datetime] = {}


class ApiKey(Wire):
    """An API key of a client, without its text."""

    key_id: str = Field(description="The id of the key in calls; not secret.")
    created_at: Instant = Field(description="The time when the key was issued.")
    expires_at: Instant | None = Field(description="The time when the key stops working; null: never.")
    last_used_at: Instant | None = Field(description="The time when the key was last used, to the minute; null if it never was.")

    @classmethod
    def of(cls, key: aggregate.ApiKey, last_used: Mapping[str, datetime]) -> ApiKey:
        return cls.model_construct(
            key_id=key.key_id,
            created_at=key.created_at,
            expires_at=key.expires_at,
            last_used_at=last_used.get(key.key_id),
        )


class Client(Wire):
    """A client: its roles and its API keys."""

    name: str = Field(description="Name of the client.")
    roles: list[str] = Field(description="Roles of the client: viewer, operator, auditor, keys, admin.")
    created_at: Instant = Field(description="The time when the client was added; for a reused name, the last time.")
    keys: list[ApiKey] = Field(description="API keys of the client, oldest first.")
    trust_actor: bool = Field(description="True if it may name its end user in the header X-Actor.")

    @classmethod
    def of(cls, row: ClientRow, last_used: Mapping[str, datetime] = NEVER_USED) -> Client:
        return cls.model_construct(
            trust_actor=row.trust_actor,
            **_fields(row.name, row.roles, created_at=row.created_at, keys=row.keys, last_used=last_used),
        )

    @classmethod
    def of_aggregate(cls, client: aggregate.Client, last_used: Mapping[str, datetime] = NEVER_USED) -> Client:
        fields = _fields(client.key, client.roles, created_at=client.registered_at, keys=client.keys, last_used=last_used)
        return cls.model_construct(trust_actor=client.trust_actor, **fields)


class AddedClient(Client):
    """A new client with its first API key."""

    key: str | None = Field(
        description="API key of the new client; shown once; null when the answer is repeated under an Idempotency-Key."
    )


class IssuedApiKey(Wire):
    """A new API key."""

    key_id: str = Field(description="The id of the key in calls; not secret.")
    key: str | None = Field(description="The new key; shown once; null when the answer is repeated under an Idempotency-Key.")
    created_at: Instant = Field(description="The time when the key was issued.")
    expires_at: Instant | None = Field(description="The time when the key stops working; null: never. Always null for a new key.")


class ClientDrmSettings(Wire):
    """The settings of the key provider's answers to a client."""

    playready_la_url: str | None = Field(description="Licence address in PlayReady headers; null: none.")
    widevine_provider: str | None = Field(description="Provider name in Widevine boxes; null: none.")
    content_id_in_pssh: bool = Field(description="True if Widevine boxes hold the content id.")
    fairplay_uri_template: str = Field(description="FairPlay key URI with placeholders.")
    fairplay_key_format_versions: str = Field(description="KEYFORMATVERSIONS of FairPlay.")
    fairplay_direct_plain_value: bool = Field(
        description="True if a key requested for FairPlay is repeated in a PlainValue directly below ContentKey."
    )
    fairplay_hex_form: bool = Field(
        description="True if a FairPlay key, and an IV that was not sent, is base64 of its 32 hexadecimal characters instead of "
        "its 16 bytes."
    )

    @classmethod
    def of(cls, drm: settings.DrmSettings) -> ClientDrmSettings:
        return cls.model_construct(**asdict(drm))


def _fields(
    name: str,
    roles: Iterable[str],
    *,
    created_at: datetime,
    keys: Iterable[aggregate.ApiKey],
    last_used: Mapping[str, datetime],
) -> dict[str, Any]:
    return {
        "name": name,
        "roles": list(roles),
        "created_at": created_at,
        "keys": [ApiKey.of(key, last_used) for key in keys],
    }
