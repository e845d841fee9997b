"""The client of the demo and its key, which lies in the home like that of the admin."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Final

from api.cli import shell
from api.cli.demo.ledger import CLIENT
from api.cli.open_core import open_core
from api.kernel.api_keys import new_api_key
from api.wiring.settings import Settings
from domain.client.handlers import API_KEY, ClientHandlers
from domain.client.roles import Role
from domain.kernel.errors import NotFound

_FILE: Final = "demo-api-key"
_REASON: Final = "demo"


async def demo_key(settings: Settings) -> str:
    """Its key. The client, or another key of it, is made where the file is missing."""
    path = _path(settings)
    if path.is_file():
        return path.read_text(encoding="ascii").strip()
    async with open_core(settings) as wired:
        handlers, who = ClientHandlers(wired.executor, wired.directory), shell.invocation(correlation_id=_REASON)
        if await wired.directory.find(CLIENT) is None:
            outcome = await handlers.register(CLIENT, (Role.ADMIN.value,), key=new_api_key(), trust_actor=True, invocation=who)
        else:
            outcome = await handlers.issue_key(CLIENT, key=new_api_key(), invocation=who)
    key = outcome.secrets[API_KEY]
    await asyncio.to_thread(_write, path, key)
    return key


async def forget_key(settings: Settings) -> None:
    """Delete the client with its keys, and the file."""
    async with open_core(settings) as wired:
        with suppress(NotFound):
            who = shell.invocation(correlation_id=_REASON)
            await ClientHandlers(wired.executor, wired.directory).delete(CLIENT, invocation=who)
    _path(settings).unlink(missing_ok=True)


def _path(settings: Settings) -> Path:
    return settings.home / _FILE


def _write(path: Path, key: str) -> None:
    path.touch(mode=0o600)
    path.write_text(f"{key}\n", encoding="ascii")
