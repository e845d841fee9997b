"""The client of the demo and its key, which is stored in the home like that of the admin."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from api.cli import shell
from api.cli.demo.ledger import CLIENT
from api.cli.run.core import open_core
from api.kernel.api_keys import new_api_key
from api.wiring.catalogue import RECORDS
from api.wiring.core import Core
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from domain.client.handlers import API_KEY, ClientHandlers
from domain.client.roles import Role
from domain.kernel.errors import NotFound
from domain.record.kinds.channel import Channel
from domain.record.kinds.destination import Destination
from domain.record.kinds.room import Room
from domain.webhook.aggregate import Webhook
from projections.event.filters import EventFilter
from projections.event.queries import EventQueries
from projections.record.queries import RecordQueries

_FILE: Final = "demo-api-key"
_REASON: Final = "demo"


async def demo_key(settings: Settings, *, beside_others: bool) -> str:
    """Return the key of the demo. The client, or another key for it, is created if the file is missing. Raise `StartError` for a
    first demo in an installation with other records, unless `beside_others` allows it: nothing is written then."""
    path = _path(settings)
    if path.is_file():
        return path.read_text(encoding="ascii").strip()
    async with open_core(settings) as wired:
        handlers, who = ClientHandlers(wired.executor, wired.directory), shell.invocation(correlation_id=_REASON)
        if await wired.directory.find(CLIENT) is not None:
            outcome = await handlers.issue_key(CLIENT, key=new_api_key(), invocation=who)
        elif not beside_others and (present := await _present(wired)):
            raise StartError(f"this installation already has {present}, so no demo is loaded; --yes loads it in addition")
        else:
            outcome = await handlers.register(CLIENT, (Role.ADMIN.value,), key=new_api_key(), trust_actor=True, invocation=who)
    key = outcome.secrets[API_KEY]
    await asyncio.to_thread(_write, path, key)
    return key


@contextmanager
def one_at_a_time(settings: Settings) -> Iterator[None]:
    """Hold the lock of the demo. The kernel releases it whenever the process ends. Raise `StartError` if another process
    holds it."""
    with open(os.open(settings.home / "demo.lock", os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartError(f"a demo is being loaded or removed already on this home: {settings.home}") from None
        yield


async def is_loaded(settings: Settings) -> bool:
    """Return True if there is a demo, or the beginning of one."""
    if _path(settings).is_file():
        return True
    async with open_core(settings) as wired:
        return await wired.directory.find(CLIENT) is not None


async def _present(wired: Core) -> str:
    """Describe the records of the installation in words."""
    records = RecordQueries(wired.database, RECORDS)
    events = await EventQueries(wired.database).page(EventFilter())
    counts = [("Events", events.total)]
    for noun, kind in (("rooms", Room), ("channels", Channel), ("webhooks", Webhook), ("destinations", Destination)):
        counts.append((noun, len(await records.all(kind))))
    return ", ".join(f"{count} {noun}" for noun, count in counts if count)


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
