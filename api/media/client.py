"""Clients and their keys: contract.md, "Callers"; decisions.md, "Callers". For admins only."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Any

from pydantic import Field

from api.kernel.answer import Answer, iso
from api.kernel.auth import ADMIN, Role
from api.kernel.call import Call
from api.kernel.commands import CommandBus
from api.kernel.routes import Routes
from api.kernel.wire import Between, Instant, Integer, Wire
from domain.client.aggregate import ApiKey, Client
from domain.client.commands import (
    ChangeClientRoles,
    IssueClientKey,
    NewKey,
    RegisterClient,
    RemoveClient,
    RevokeClientKey,
)
from domain.kernel.errors import NotFound
from projections.clients.directory import ClientDirectory

routes = Routes("/client", tag="Clients")

_CENTURY = 100 * 365 * 24 * 3600


class ClientKeyWire(Wire):
    key_id: str
    created_at: Instant
    expires_at: Instant | None
    last_used_at: Instant | None


class ClientWire(Wire):
    name: str
    roles: list[str]
    created_at: Instant
    keys: list[ClientKeyWire]


class NewClientWire(ClientWire):
    """`key` is shown this once and never again."""

    key: str | None


class NewKeyWire(Wire):
    key_id: str
    key: str | None
    created_at: Instant
    expires_at: Instant | None


Roles = Annotated[list[Role], Field(min_length=1)]


class NewClientBody(Wire):
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
    roles: Roles


class RolesBody(Wire):
    roles: Roles


class NewKeyBody(Wire):
    """`expireOthersAfter`: seconds for which the client's other keys still work."""

    expire_others_after: Annotated[Integer, Between(0, _CENTURY)] | None = None


def new_key(given: str | None = None) -> tuple[NewKey, str]:
    """A key with 256 random bits (or one that an operator chose), and what is stored of it."""
    key_id = secrets.token_hex(8)
    key = given or f"mlk_{key_id}_{secrets.token_urlsafe(32)}"
    return NewKey(key_id, sha256(key.encode()).hexdigest()), key


@routes.post("/", ADMIN, answers=NewClientWire, status=201)
async def add_client(call: Call, body: NewClientBody, bus: CommandBus, directory: ClientDirectory) -> Answer:
    """Add a client. Its key is shown in this answer and never again."""
    new, key = new_key()

    async def show(client: Client) -> Answer:
        shown = shaped(client.key, client.roles, client.registered_at, client.keys, {})
        return Answer(
            201,
            {**shown, "key": key},
            etag=client.version,
            location=f"/api/client/{client.key}",
            headers=_NEVER_STORED,
            replay_body={**shown, "key": None},
        )

    answer = await bus.send(call, RegisterClient(body.name, tuple(body.roles), new), show)
    directory.forget()
    return answer


@routes.get("/", ADMIN, answers=list[ClientWire])
async def list_clients(call: Call, directory: ClientDirectory) -> Answer:
    """All clients."""
    clients = await directory.all()
    used = await directory.last_used([key.key_id for client in clients for key in client.keys])
    return Answer(200, [shaped(c.name, c.roles, c.created_at, c.keys, used) for c in clients])


@routes.get("/{name}", ADMIN, answers=ClientWire)
async def client_by_name(call: Call, name: str, directory: ClientDirectory) -> Answer:
    """One client."""
    found = await directory.find(name)
    if found is None:
        raise NotFound(Client.KIND, name)
    used = await directory.last_used([key.key_id for key in found.keys])
    return Answer(200, shaped(found.name, found.roles, found.created_at, found.keys, used), etag=found.version)


@routes.put("/{name}", ADMIN, answers=ClientWire)
async def change_client_roles(call: Call, name: str, body: RolesBody, bus: CommandBus, directory: ClientDirectory) -> Answer:
    """Give a client other roles."""
    async with directory.alone():
        command = ChangeClientRoles(name, tuple(body.roles), await directory.other_admins(name))
        return await _sent(call, bus, directory, command)


@routes.delete("/{name}", ADMIN, answers=ClientWire)
async def remove_client(call: Call, name: str, bus: CommandBus, directory: ClientDirectory) -> Answer:
    """Remove a client; its keys stop working. The answer is the client as it last was."""
    last = await client_by_name(call, name, directory)
    async with directory.alone():
        await bus.send(call, RemoveClient(name, await directory.other_admins(name)), _nothing)
    directory.forget()
    return last


@routes.post("/{name}/keys/", ADMIN, answers=NewKeyWire, status=201)
async def issue_client_key(
    call: Call, name: str, bus: CommandBus, directory: ClientDirectory, body: NewKeyBody | None = None
) -> Answer:
    """Issue another key; with `expireOthersAfter` the others end after so many seconds."""
    new, key = new_key()

    async def show(client: Client) -> Answer:
        issued = next(one for one in client.keys if one.key_id == new.key_id)
        shown = {"keyId": issued.key_id, "key": key, "createdAt": iso(issued.created_at), "expiresAt": None}
        location = f"/api/client/{client.key}"
        return Answer(201, shown, location=location, headers=_NEVER_STORED, replay_body={**shown, "key": None})

    expire_others_after = body.expire_others_after if body is not None else None
    answer = await bus.send(call, IssueClientKey(name, new, expire_others_after), show)
    directory.forget()
    return answer


@routes.delete("/{name}/keys/{keyId}", ADMIN, answers=ClientKeyWire)
async def revoke_client_key(call: Call, name: str, key_id: str, bus: CommandBus, directory: ClientDirectory) -> Answer:
    """Revoke a key. The answer is the key as it last was."""
    found = await directory.find(name)
    last = next((key for key in found.keys if key.key_id == key_id), None) if found is not None else None
    used = await directory.last_used([key_id])
    async with directory.alone():
        await bus.send(call, RevokeClientKey(name, key_id, await directory.other_admins(name)), _nothing)
    directory.forget()
    return Answer(200, _key(last, used) if last is not None else None)


_NEVER_STORED = (("cache-control", "no-store"),)


async def _sent(call: Call, bus: CommandBus, directory: ClientDirectory, command: ChangeClientRoles) -> Answer:
    async def show(client: Client) -> Answer:
        used = await directory.last_used([key.key_id for key in client.keys])
        shown = shaped(client.key, client.roles, client.registered_at, client.keys, used)
        return Answer(200, shown, etag=client.version)

    answer = await bus.send(call, command, show)
    directory.forget()
    return answer


async def _nothing(_: Client) -> Answer:
    return Answer(200)


def shaped(
    name: str, roles: Sequence[str], created_at: datetime, keys: Sequence[ApiKey], used: Mapping[str, datetime]
) -> dict[str, Any]:
    return {"name": name, "roles": list(roles), "createdAt": iso(created_at), "keys": [_key(key, used) for key in keys]}


def _key(key: ApiKey, used: Mapping[str, datetime]) -> dict[str, Any]:
    last = used.get(key.key_id)
    return {
        "keyId": key.key_id,
        "createdAt": iso(key.created_at),
        "expiresAt": iso(key.expires_at) if key.expires_at is not None else None,
        "lastUsedAt": iso(last) if last is not None else None,
    }
