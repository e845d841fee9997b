"""`medialedger client`: callers and their keys, for whoever has the shell."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any

from api.cli.opened import opened
from api.core import Core
from api.kernel.answer import iso
from api.media.client import new_key
from api.settings import Settings
from api.startup import StartError
from domain.client.aggregate import Client
from domain.client.commands import ConfigureClientDrm, IssueClientKey, RegisterClient, RemoveClient, RevokeClientKey
from domain.drm.settings import DrmSettings
from domain.kernel.cause import Cause
from domain.kernel.command import Command
from domain.kernel.errors import DomainError, NotFound


async def run(args: Namespace, settings: Settings) -> int:
    async with opened(settings) as wired:
        try:
            await _ACTIONS[args.action](wired, args)
        except DomainError as refusal:
            raise StartError(str(refusal)) from None
    return 0


async def _add(wired: Core, args: Namespace) -> None:
    new, key = new_key()
    await _execute(wired, RegisterClient(args.name, tuple(args.roles), new))
    print(key)


async def _rotate(wired: Core, args: Namespace) -> None:
    new, key = new_key()
    await _execute(wired, IssueClientKey(args.name, new, args.expire_others_after))
    print(key)


async def _revoke(wired: Core, args: Namespace) -> None:
    async with wired.directory.alone():
        other_admins = await wired.directory.other_admins(args.name)
        if args.key_id is None:
            await _execute(wired, RemoveClient(args.name, other_admins))
        else:
            await _execute(wired, RevokeClientKey(args.name, args.key_id, other_admins))
    print("revoked")


async def _list(wired: Core, args: Namespace) -> None:
    clients = await wired.directory.all()
    used = await wired.directory.last_used([key.key_id for client in clients for key in client.keys])
    for client in clients:
        print(f"{client.name}  {','.join(client.roles)}  since {iso(client.created_at)}")
        for key in client.keys:
            print(f"  {key.key_id}  made {iso(key.created_at)}  ends {_when(key.expires_at)}  used {_when(used.get(key.key_id))}")


def _when(moment: datetime | None) -> str:
    return iso(moment) if moment is not None else "never"


async def _execute(wired: Core, command: Command[Any]) -> None:
    await wired.ledger.execute(command, cause=Cause.by("system"))


async def _drm(wired: Core, args: Namespace) -> None:
    """Without anything to change it shows what there is."""
    given = {field.name: getattr(args, field.name) for field in fields(DrmSettings)}
    changes = {name: value if value != "" else None for name, value in given.items() if value is not None}
    if changes:
        await _execute(wired, ConfigureClientDrm(args.name, changes))
    found = await wired.directory.find(args.name)
    if found is None:
        raise NotFound(Client.KIND, args.name)
    for name, value in asdict(found.drm).items():
        print(f"{name}: {'' if value is None else value}")


_ACTIONS = {"add": _add, "rotate": _rotate, "revoke": _revoke, "list": _list, "drm": _drm}
