"""`medialedger client`: clients and their API keys."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict, fields
from datetime import datetime

from api.cli import shell
from api.cli.open_core import open_core
from api.cli.printable import printable
from api.kernel.api_keys import new_api_key
from api.wiring.core import Core
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from domain.client.aggregate import Client
from domain.client.handlers import API_KEY, ClientHandlers
from domain.drm.settings import DrmSettings
from domain.kernel.clock import iso
from domain.kernel.errors import DomainError, NotFound


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
    """Without a key id, delete the client."""
    if args.key_id is None:
        await _handlers(wired).delete(args.name, invocation=shell.invocation())
    else:
        await _handlers(wired).revoke_key(args.name, args.key_id, invocation=shell.invocation())
    print("revoked")


async def _trust_actor(wired: Core, args: Namespace) -> None:
    await _handlers(wired).change(args.name, None, trust_actor=args.trusted == "yes", invocation=shell.invocation())


async def _list(wired: Core, args: Namespace) -> None:
    clients = await wired.directory.all()
    last_used = await wired.directory.last_used([key.key_id for client in clients for key in client.keys])
    for client in clients:
        trusted = "  names its end users" if client.trust_actor else ""
        print(f"{client.name}  {','.join(client.roles)}  since {iso(client.created_at)}{trusted}")
        for key in client.keys:
            print(
                f"  {key.key_id}  made {iso(key.created_at)}  ends {_when(key.expires_at)}  used {_when(last_used.get(key.key_id))}"
            )


def _when(moment: datetime | None) -> str:
    return iso(moment) if moment is not None else "never"


def _handlers(wired: Core) -> ClientHandlers:
    return ClientHandlers(wired.executor, wired.directory)


async def _drm(wired: Core, args: Namespace) -> None:
    """Change the given settings, then show all."""
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
