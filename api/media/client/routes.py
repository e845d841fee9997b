"""Clients and their API keys: docs/reference/api/clients.md. For admins only."""

from __future__ import annotations

from api.http.response import Response
from api.http.router import Router
from api.kernel.api_keys import new_api_key
from api.kernel.auth import ADMIN
from api.kernel.request import Request
from api.kernel.surfaces import MEDIA
from api.media.client.requests import AddClientRequest, ChangeClientRolesRequest, IssueApiKeyRequest
from api.media.client.responses import AddedClient, ApiKey, Client, IssuedApiKey
from domain.client import aggregate
from domain.client.handlers import API_KEY, ClientHandlers
from domain.kernel.errors import NotFound
from domain.kernel.ports import Outcome
from projections.clients.directory import ClientDirectory

routes = Router("/client", tag="Clients", surface=MEDIA, stored=False)

_NEVER_STORED = (("cache-control", "no-store"),)
_OF_A_NEW_CLIENT = 3
"""Number of events of a new client: registered, key issued, and trusted. A client whose name was used before has more."""
_AGAIN = ("warning", '299 - "A client had this name before; its content keys, jobs and callbacks now belong to this client"')


async def client_added(request: Request, outcome: Outcome[aggregate.Client]) -> Response:
    """Return the new client with its key, without the key in a repeat. A warning says if another client had the name before."""
    client = outcome.aggregate
    body = AddedClient.of_aggregate(client).model_copy(update={"key": outcome.secrets.get(API_KEY)})
    headers = _NEVER_STORED if client.version <= _OF_A_NEW_CLIENT else (*_NEVER_STORED, _AGAIN)
    return Response(201, body, etag=client.version, location=f"/api/client/{client.key}", headers=headers)


async def client_changed(request: Request, outcome: Outcome[aggregate.Client], directory: ClientDirectory) -> Response:
    return await _shown(outcome.aggregate, directory)


async def client_deleted(request: Request, outcome: Outcome[aggregate.Client], directory: ClientDirectory) -> Response:
    [client] = outcome.previous
    return await _shown(client, directory)


async def key_issued(request: Request, outcome: Outcome[aggregate.Client]) -> Response:
    """Return the new key, which is the client's last one, without its text in a repeat."""
    client = outcome.aggregate
    key = client.keys[-1]
    body = IssuedApiKey(key_id=key.key_id, key=outcome.secrets.get(API_KEY), created_at=key.created_at, expires_at=None)
    return Response(201, body, location=f"/api/client/{client.key}", headers=_NEVER_STORED)


async def key_revoked(request: Request, outcome: Outcome[aggregate.Client], directory: ClientDirectory) -> Response:
    [before] = outcome.previous
    remaining = {key.key_id for key in outcome.aggregate.keys}
    [key] = [key for key in before.keys if key.key_id not in remaining]
    return Response(200, ApiKey.of(key, await directory.last_used([key.key_id])))


@routes.post("/", ADMIN, response_model=AddedClient, status=201, respond=client_added)
async def add_client(request: Request, body: AddClientRequest, handlers: ClientHandlers) -> Outcome[aggregate.Client]:
    """Add a client. Its key is shown only in this response."""
    return await handlers.register(
        body.name, body.roles, key=new_api_key(), trust_actor=body.trust_actor, invocation=request.invocation
    )


@routes.get("/", ADMIN, response_model=list[Client])
async def list_clients(request: Request, directory: ClientDirectory) -> Response:
    """All clients."""
    clients = await directory.all()
    last_used = await directory.last_used([key.key_id for client in clients for key in client.keys])
    return Response(200, [Client.of(client, last_used) for client in clients])


@routes.get("/{name}", ADMIN, response_model=Client)
async def get_client(request: Request, name: str, directory: ClientDirectory) -> Response:
    """The client with this name."""
    client = await directory.find(name)
    if client is None:
        raise NotFound(aggregate.Client.KIND, name)
    last_used = await directory.last_used([key.key_id for key in client.keys])
    return Response(200, Client.of(client, last_used), etag=client.version)


@routes.put("/{name}", ADMIN, response_model=Client, respond=client_changed)
async def change_client_roles(
    request: Request, name: str, body: ChangeClientRolesRequest, handlers: ClientHandlers
) -> Outcome[aggregate.Client]:
    """Replace the roles of a client, and set whether it may name end users."""
    return await handlers.change(name, body.roles, trust_actor=body.trust_actor, invocation=request.invocation)


@routes.delete("/{name}", ADMIN, response_model=Client, respond=client_deleted)
async def delete_client(request: Request, name: str, handlers: ClientHandlers) -> Outcome[aggregate.Client]:
    """Delete a client; its keys stop working. The response shows its last state."""
    return await handlers.delete(name, invocation=request.invocation)


@routes.post("/{name}/keys/", ADMIN, response_model=IssuedApiKey, status=201, respond=key_issued)
async def issue_client_key(
    request: Request, name: str, handlers: ClientHandlers, body: IssueApiKeyRequest | None = None
) -> Outcome[aggregate.Client]:
    """Issue another key. With `expireOthersAfter` the other keys expire after this number of seconds."""
    expire_others_after = body.expire_others_after if body is not None else None
    return await handlers.issue_key(name, key=new_api_key(), expire_others_after=expire_others_after, invocation=request.invocation)


@routes.delete("/{name}/keys/{keyId}", ADMIN, response_model=ApiKey, respond=key_revoked)
async def revoke_client_key(request: Request, name: str, key_id: str, handlers: ClientHandlers) -> Outcome[aggregate.Client]:
    """Revoke a key. The response shows its last state."""
    return await handlers.revoke_key(name, key_id, invocation=request.invocation)


async def _shown(client: aggregate.Client, directory: ClientDirectory) -> Response:
    last_used = await directory.last_used([key.key_id for key in client.keys])
    return Response(200, Client.of_aggregate(client, last_used), etag=client.version)
