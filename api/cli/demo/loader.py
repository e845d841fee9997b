"""Loads and removes the demo. The parts that can be seen at once come first; the films follow."""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from api.cli import shell
from api.cli.demo import SEED, catalogue, events, jobs, media, publishing, removal
from api.cli.demo.ledger import CLIENT, Ledger
from api.cli.demo.product import ProductClient
from api.cli.demo.schedule import DemoSchedule, to_minute
from api.cli.run.core import open_core
from api.cli.shell import confirm
from api.cli.terminal_text import printable
from api.kernel.api_keys import new_api_key
from api.wiring.assembly import services_of
from api.wiring.core import Core
from api.wiring.origin import base_url
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from domain.client.handlers import API_KEY, ClientHandlers
from domain.client.roles import Role
from domain.kernel.clock import iso, system_clock
from domain.kernel.errors import NotFound
from domain.record.kinds.channel import Channel
from domain.record.kinds.destination import Destination
from domain.record.kinds.room import Room
from domain.webhook.aggregate import Webhook
from projections.event.filters import EventFilter
from projections.event.queries import EventQueries
from projections.record.queries import RecordQueries


async def _check_running(settings: Settings) -> None:
    """Raise `StartError` unless the product is ready. It is called before anything is written."""
    async with ProductClient(base_url(settings.host, port=settings.port), "none", client=CLIENT) as product:
        await product.get("/readyz")


async def load_demo(settings: Settings, *, seed: int | None, around: datetime | None, beside_others: bool, films: int) -> None:
    """Create the missing parts of the demo. `beside_others` permits it in an installation that has other records."""
    await _check_running(settings)
    with one_at_a_time(settings):
        key = await demo_key(settings, beside_others=beside_others)
        async with ProductClient(base_url(settings.host, port=settings.port), key, client=CLIENT) as product:
            ledger = await Ledger.read(product)
            await _fill(_schedule(ledger, seed=seed, around=around, films=films), settings, ledger)


async def _fill(schedule: DemoSchedule, settings: Settings, ledger: Ledger) -> None:
    started = time.perf_counter()
    for name, key in await catalogue.make_clients(ledger):
        _say(f"client {name} has the key {key}")
    webhook = await publishing.make_webhook(ledger)
    await events.make_events(ledger, schedule, catalogue=await catalogue.make_catalogue(ledger))
    await jobs.make_waiting_jobs(ledger, schedule)
    _say(f"schedule around {iso(schedule.around)}, ready after {time.perf_counter() - started:.1f} s")
    if not schedule.films:
        return
    await publishing.set_webhook(ledger, webhook, on=False)
    films = await media.make_films(ledger, schedule, settings=settings)
    await publishing.set_webhook(ledger, webhook, on=True)
    await media.make_pieces(ledger, films)
    await media.make_composition(ledger, schedule, events=films)
    if left_out := await publishing.make_publications(ledger, films[0], settings=settings):
        _say(left_out)
    await jobs.make_long_job(ledger, schedule)
    _say(f"complete after {time.perf_counter() - started:.0f} s; `medialedger demo remove` removes it")


def _schedule(ledger: Ledger, *, seed: int | None, around: datetime | None, films: int) -> DemoSchedule:
    """Return the schedule of the loaded demo, else a new one. Raise `StartError` if a demo with another seed is loaded."""
    if (loaded := events.parameters(ledger)) is not None:
        loaded_seed, middle = loaded
        if seed not in (None, loaded_seed):
            raise StartError(f"a demo with the seed {loaded_seed} is loaded; `medialedger demo remove` removes it")
        return DemoSchedule(loaded_seed, middle, number=ledger.number, films=films)
    return DemoSchedule(SEED if seed is None else seed, to_minute(around or system_clock()), number=ledger.number, films=films)


async def remove_demo(settings: Settings, *, yes: bool) -> None:
    await _check_running(settings)
    with one_at_a_time(settings):
        await _remove(settings, yes=yes)


async def _remove(settings: Settings, *, yes: bool) -> None:
    if not await is_loaded(settings):
        _say("there is no demo")
        return
    confirm(yes, "remove the demo, including everything that was changed in it since")
    key = await demo_key(settings, beside_others=True)
    async with ProductClient(base_url(settings.host, port=settings.port), key, client=CLIENT) as product:
        remaining = await removal.remove(await Ledger.read(product), settings)
    for line in remaining:
        _say(f"not removed: {line}")
    if not removal.is_complete(remaining):
        raise StartError("parts of the demo are still in use; run this again later")
    await forget_key(settings)
    _say("removed; its history stays in the log, and its recordings stay at the origin until they expire")


def _say(text: str) -> None:
    print(f"demo: {printable(text)}", flush=True)


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
    services = services_of(wired)
    records, events = services.get(RecordQueries), await services.get(EventQueries).page(EventFilter())
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
