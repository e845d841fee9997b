"""Clients and their API keys: docs/reference/api/clients.md. For admins only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path
from pydantic import ConfigDict, Field

from api.audit.past_states import Moment, Renderer
from api.http.response import Response
from api.http.routing import Service, rules
from api.kernel.api_keys import new_api_key
from api.kernel.auth import ADMIN
from api.kernel.request import Request
from api.kernel.surfaces import UnstoredMediaRoute
from api.kernel.wire import Between, Flag, Instant, Integer, Label, Text, Wire
from domain.client import aggregate
from domain.client.handlers import API_KEY, ClientHandlers
from domain.client.roles import Role
from domain.drm import settings
from domain.drm.settings import DrmSettings
from domain.kernel.errors import NotFound
from domain.kernel.ports import Outcome
from projections.client.directory import ClientDirectory, ClientRow

# Responses for clients: docs/reference/api/clients.md. An API key is in plain text only in the response that issues it.

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


_CENTURY = 100 * 365 * 24 * 3600
_FAIRPLAY_URI = DrmSettings().fairplay_uri_template

Roles = Annotated[list[Role], Field(min_length=1)]


class AddClientRequest(Wire):
    """A new client."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "playout", "roles": ["operator"]}]})

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")] = Field(
        description="1 to 64 of A-Z a-z 0-9 . _ -; upper and lower case differ; some names are reserved."
    )
    roles: Roles = Field(description="At least one of viewer, operator, auditor, keys, admin.")
    trust_actor: Flag = Field(False, description="True if it may name its end user in the header X-Actor. Default false.")


class ChangeClientRolesRequest(Wire):
    """The roles of a client, and whether its end users are trusted."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"roles": ["operator", "keys"]}]})

    roles: Roles = Field(description="The new roles of the client, at least one of viewer, operator, auditor, keys, admin.")
    trust_actor: Flag | None = Field(
        None, description="True if it may name its end user in the header X-Actor; absent or null: unchanged."
    )


class IssueApiKeyRequest(Wire):
    """A new key, and the expiry of the client's other keys."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"expireOthersAfter": 86400}]})

    expire_others_after: Annotated[Integer, Between(0, _CENTURY)] | None = Field(
        default=None,
        description="Seconds after which the client's other keys stop working, 0 for immediately; null or absent: they keep "
        "working.",
    )


class ConfigureDrmRequest(Wire):
    """Changes of DRM settings. An absent field stays unchanged; null sets the default."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "playreadyLaUrl": "https://drm.example/rightsmanager.asmx",
                    "fairplayUriTemplate": "skd://fps.example/{content_id}?kid={kid}",
                }
            ]
        }
    )

    playready_la_url: Text | None = Field(
        default=None,
        description="Licence address in PlayReady headers, an http or https URL of at most 512 characters; "
        "null (the default): none.",
    )
    widevine_provider: Label | None = Field(
        default=None, description="Provider name in Widevine boxes, 1 to 128 visible ASCII characters; null (the default): none."
    )
    content_id_in_pssh: Flag | None = Field(
        default=None, description="True if Widevine boxes hold the content id; default false, null means the default."
    )
    fairplay_uri_template: Text | None = Field(
        default=None,
        description="FairPlay key URI, skd:// or https://, at most 512 characters, with {kid} and optionally {host}, {client}, "
        f"{{content_id}}, {{iv}}; null means the default {_FAIRPLAY_URI}.",
    )
    fairplay_key_format_versions: Label | None = Field(
        default=None,
        description="KEYFORMATVERSIONS of FairPlay, numbers separated by slashes; null means the default 1.",
    )
    fairplay_direct_plain_value: Flag | None = Field(
        default=None,
        description="True if a key requested for FairPlay is repeated in a PlainValue directly below ContentKey; "
        "default false, null means the default.",
    )
    fairplay_hex_form: Flag | None = Field(
        default=None,
        description="True if a FairPlay key, and an IV that was not sent, is base64 of its 32 hexadecimal characters instead of "
        "its 16 bytes; default false, null means the default.",
    )


routes = APIRouter(prefix="/api/client", tags=["Clients"], route_class=UnstoredMediaRoute)

_NEVER_STORED = (("cache-control", "no-store"),)
_OF_A_NEW_CLIENT = 3
"""Number of events of a new client: registered, key issued, and trusted. A client whose name was used before has more."""
_AGAIN = ("warning", '299 - "A client had this name before; its content keys, jobs and callbacks now belong to this client"')


async def client_added(request: Request, outcome: Outcome[aggregate.Client]) -> Response:
    """Return the new client with its key, without the key in a repeat. A warning says if another client had the name before."""
    client = outcome.aggregate
    body = AddedClient.of_aggregate(client).model_copy(update={"key": outcome.secrets.get(API_KEY)})
    headers = _NEVER_STORED if client.version <= _OF_A_NEW_CLIENT else (*_NEVER_STORED, _AGAIN)
    return Response(body, 201, etag=client.version, location=f"/api/client/{client.key}", headers=headers)


async def client_changed(request: Request, outcome: Outcome[aggregate.Client], directory: Service[ClientDirectory]) -> Response:
    return await _shown(outcome.aggregate, directory)


async def client_deleted(request: Request, outcome: Outcome[aggregate.Client], directory: Service[ClientDirectory]) -> Response:
    [client] = outcome.previous
    return await _shown(client, directory)


async def key_issued(request: Request, outcome: Outcome[aggregate.Client]) -> Response:
    """Return the new key, which is the client's last one, without its text in a repeat."""
    client = outcome.aggregate
    key = client.keys[-1]
    body = IssuedApiKey(key_id=key.key_id, key=outcome.secrets.get(API_KEY), created_at=key.created_at, expires_at=None)
    return Response(body, 201, location=f"/api/client/{client.key}", headers=_NEVER_STORED)


async def key_revoked(request: Request, outcome: Outcome[aggregate.Client], directory: Service[ClientDirectory]) -> Response:
    [before] = outcome.previous
    remaining = {key.key_id for key in outcome.aggregate.keys}
    [key] = [key for key in before.keys if key.key_id not in remaining]
    return Response(ApiKey.of(key, await directory.last_used([key.key_id])))


@routes.post("/", dependencies=[ADMIN], response_model=AddedClient, status_code=201)
@rules(respond=client_added)
async def add_client(request: Request, body: AddClientRequest, handlers: Service[ClientHandlers]) -> Outcome[aggregate.Client]:
    """Add a client. Its key is shown only in this response."""
    return await handlers.register(
        body.name, body.roles, key=new_api_key(), trust_actor=body.trust_actor, invocation=request.invocation
    )


@routes.get("/", dependencies=[ADMIN], response_model=list[Client])
async def list_clients(request: Request, directory: Service[ClientDirectory]) -> Response:
    """All clients."""
    clients = await directory.all()
    last_used = await directory.last_used([key.key_id for client in clients for key in client.keys])
    return Response([Client.of(client, last_used) for client in clients])


@routes.get("/{name}", dependencies=[ADMIN], response_model=Client)
async def get_client(request: Request, name: str, directory: Service[ClientDirectory]) -> Response:
    """The client with this name."""
    client = await directory.find(name)
    if client is None:
        raise NotFound(aggregate.Client.KIND, name)
    last_used = await directory.last_used([key.key_id for key in client.keys])
    return Response(Client.of(client, last_used), etag=client.version)


@routes.put("/{name}", dependencies=[ADMIN], response_model=Client)
@rules(respond=client_changed)
async def change_client_roles(
    request: Request, name: str, body: ChangeClientRolesRequest, handlers: Service[ClientHandlers]
) -> Outcome[aggregate.Client]:
    """Replace the roles of a client, and set whether it may name end users."""
    return await handlers.change(name, body.roles, trust_actor=body.trust_actor, invocation=request.invocation)


@routes.delete("/{name}", dependencies=[ADMIN], response_model=Client)
@rules(respond=client_deleted)
async def delete_client(request: Request, name: str, handlers: Service[ClientHandlers]) -> Outcome[aggregate.Client]:
    """Delete a client; its keys stop working. The response shows its last state."""
    return await handlers.delete(name, invocation=request.invocation)


@routes.post("/{name}/keys/", dependencies=[ADMIN], response_model=IssuedApiKey, status_code=201)
@rules(respond=key_issued)
async def issue_client_key(
    request: Request, name: str, handlers: Service[ClientHandlers], body: Annotated[IssueApiKeyRequest | None, Body()] = None
) -> Outcome[aggregate.Client]:
    """Issue another key. With `expireOthersAfter` the other keys expire after this number of seconds."""
    expire_others_after = body.expire_others_after if body is not None else None
    return await handlers.issue_key(name, key=new_api_key(), expire_others_after=expire_others_after, invocation=request.invocation)


@routes.delete("/{name}/keys/{keyId}", dependencies=[ADMIN], response_model=ApiKey)
@rules(respond=key_revoked)
async def revoke_client_key(
    request: Request, name: str, key_id: Annotated[str, Path(alias="keyId")], handlers: Service[ClientHandlers]
) -> Outcome[aggregate.Client]:
    """Revoke a key. The response shows its last state."""
    return await handlers.revoke_key(name, key_id, invocation=request.invocation)


async def _shown(client: aggregate.Client, directory: ClientDirectory) -> Response:
    last_used = await directory.last_used([key.key_id for key in client.keys])
    return Response(Client.of_aggregate(client, last_used), etag=client.version)


def past_states() -> Mapping[str, Renderer]:
    async def client(root: aggregate.Client, moment: Moment) -> Any:
        return Client.of_aggregate(root).model_dump(mode="json")

    return {aggregate.Client.KIND: client}
