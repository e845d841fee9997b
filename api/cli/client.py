"""`medialedger client`: clients and their API keys."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import asdict, fields
from datetime import datetime

from api.cli import shell
from api.cli.client_list import print_clients
from api.cli.output import Document
from api.cli.printable import printable
from api.cli.remote.lookup import unique
from api.cli.run.core import open_core
from api.cli.shell import confirm
from api.kernel.api_keys import new_api_key
from api.wiring.core import Core
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from domain.client.aggregate import Client
from domain.client.handlers import API_KEY, ClientHandlers
from domain.drm.settings import DrmSettings
from domain.kernel.clock import iso
from domain.kernel.errors import DomainError, NotFound
from projections.client.directory import ClientRow


async def run(args: Namespace, settings: Settings) -> int:
    async with open_core(settings, make=args.action == "add") as wired:
        try:
            await _ACTIONS[args.action](wired, args)
        except DomainError as refusal:
            raise StartError(str(refusal)) from None
    return 0


async def _add(wired: Core, args: Namespace) -> None:
    outcome = await _handlers(wired).register(
        args.name, args.roles, key=new_api_key(), trust_actor=args.trust_actor, invocation=shell.invocation()
    )
    print(outcome.secrets[API_KEY])


async def _rotate(wired: Core, args: Namespace) -> None:
    outcome = await _handlers(wired).issue_key(
        args.name, key=new_api_key(), expire_others_after=args.expire_others_after, invocation=shell.invocation()
    )
    print(outcome.secrets[API_KEY])


async def _revoke(wired: Core, args: Namespace) -> None:
    """Revoke a key; without a key id, delete the client."""
    client = await wired.directory.find(args.name)
    if client is None:
        raise NotFound(Client.KIND, args.name)
    if args.key_id is None:
        confirm(args, f"delete the client {args.name} with all its keys")
        await _handlers(wired).delete(args.name, invocation=shell.invocation())
    else:
        key = unique([client_key.key_id for client_key in client.keys], args.key_id, what=f"key of {args.name}")
        confirm(args, f"revoke the key {key} of {args.name}")
        await _handlers(wired).revoke_key(args.name, key, invocation=shell.invocation())
    print("revoked")


async def _trust_actor(wired: Core, args: Namespace) -> None:
    await _handlers(wired).change(args.name, None, trust_actor=args.trusted == "yes", invocation=shell.invocation())


async def _list(wired: Core, args: Namespace) -> None:
    clients = await wired.directory.all()
    last_used = await wired.directory.last_used([key.key_id for client in clients for key in client.keys])
    print_clients([_document(client, last_used) for client in clients], form=args.form)


def _document(client: ClientRow, last_used: Mapping[str, datetime]) -> Document:
    keys = [
        {
            "keyId": key.key_id,
            "createdAt": iso(key.created_at),
            "expiresAt": _iso_or_none(key.expires_at),
            "lastUsedAt": _iso_or_none(last_used.get(key.key_id)),
        }
        for key in client.keys
    ]
    roles = [str(role) for role in client.roles]
    return {
        "name": client.name,
        "roles": roles,
        "trustActor": client.trust_actor,
        "createdAt": iso(client.created_at),
        "keys": keys,
    }


def _iso_or_none(moment: datetime | None) -> str | None:
    return iso(moment) if moment is not None else None


def _handlers(wired: Core) -> ClientHandlers:
    return ClientHandlers(wired.executor, wired.directory)


async def _drm(wired: Core, args: Namespace) -> None:
    """Change the given DRM settings, then print all of them."""
    given = {field.name: getattr(args, field.name) for field in fields(DrmSettings)}
    changes = {name: value if value != "" else None for name, value in given.items() if value is not None}
    if changes:
        await _handlers(wired).configure_drm(args.name, changes, invocation=shell.invocation())
    client = await wired.directory.find(args.name)
    if client is None:
        raise NotFound(Client.KIND, args.name)
    for name, value in asdict(client.drm).items():
        print(printable(f"{name}: {'' if value is None else value}"))


_ACTIONS = {"add": _add, "rotate": _rotate, "revoke": _revoke, "list": _list, "trust-actor": _trust_actor, "drm": _drm}
