"""Loads and removes the demo. The parts that can be seen at once come first; the films follow."""

from __future__ import annotations

import time
from argparse import Namespace

from api.cli.demo import catalogue, events, jobs, media, publishing, removal
from api.cli.demo.access import demo_key, forget_key, is_loaded, one_at_a_time
from api.cli.demo.ledger import CLIENT, Ledger
from api.cli.demo.product import ProductClient
from api.cli.demo.schedule import Schedule, to_minute
from api.cli.printable import printable
from api.cli.shell import confirm
from api.cli.up_arguments import SEED
from api.wiring.origin import base_url
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from domain.kernel.clock import iso, system_clock


async def run(args: Namespace, settings: Settings) -> int:
    await _check_running(settings)
    with one_at_a_time(settings):
        return await (_load if args.action == "load" else _remove)(args, settings)


async def _check_running(settings: Settings) -> None:
    """Raise `StartError` unless the product is ready. It is called before anything is written."""
    async with ProductClient(base_url(settings.host, port=settings.port), "none", client=CLIENT) as product:
        await product.get("/readyz")


async def _load(args: Namespace, settings: Settings) -> int:
    key = await demo_key(settings, beside_others=args.yes)
    async with ProductClient(base_url(settings.host, port=settings.port), key, client=CLIENT) as product:
        ledger = await Ledger.read(product)
        await _fill(_schedule(args, ledger), settings, ledger)
    return 0


async def _fill(schedule: Schedule, settings: Settings, ledger: Ledger) -> None:
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


def _schedule(args: Namespace, ledger: Ledger) -> Schedule:
    """Return the schedule of the loaded demo, else a new one. Raise `StartError` if a demo with another seed is loaded."""
    if (loaded := events.parameters(ledger)) is not None:
        seed, around = loaded
        if args.seed not in (None, seed):
            raise StartError(f"a demo with the seed {seed} is loaded; `medialedger demo remove` removes it")
        return Schedule(seed, around, number=ledger.number, films=args.films)
    seed, around = SEED if args.seed is None else args.seed, to_minute(args.around or system_clock())
    return Schedule(seed, around, number=ledger.number, films=args.films)


async def _remove(args: Namespace, settings: Settings) -> int:
    if not await is_loaded(settings):
        _say("there is no demo")
        return 0
    confirm(args, "remove the demo, including everything that was changed in it since")
    key = await demo_key(settings, beside_others=True)
    async with ProductClient(base_url(settings.host, port=settings.port), key, client=CLIENT) as product:
        remaining = await removal.remove(await Ledger.read(product), settings)
    for line in remaining:
        _say(f"not removed: {line}")
    if not removal.is_complete(remaining):
        raise StartError("parts of the demo are still in use; run this again later")
    await forget_key(settings)
    _say("removed; its history stays in the log, and its recordings stay at the origin until they expire")
    return 0


def _say(text: str) -> None:
    print(f"demo: {printable(text)}", flush=True)
