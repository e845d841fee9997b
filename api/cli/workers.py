"""`medialedger workers [NAME…]`: the workers without the API. Any number of processes may run, on any number of machines."""

from __future__ import annotations

import asyncio
from argparse import Namespace

from api.cli.database import attach_database
from api.cli.home import create_home
from api.cli.serving import print_status
from api.cli.stop_signals import StopSignals
from api.kernel.version import product_version
from api.wiring.catalogue import WORKER_ROLES
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from api.wiring.workers import prepared, process_workers
from domain.kernel.encryption import SecretCipher
from workers.adapters.keyfiles import master_key, previous_master_key
from workers.adapters.outbound_http import GuardedClient


async def run(args: Namespace, settings: Settings) -> int:
    """Run the workers until a stop signal. What was opened is closed in reverse order, also after an error."""
    names = tuple(dict.fromkeys(args.names)) or tuple(WORKER_ROLES)
    if settings.kafka_bootstrap_servers is None and all(WORKER_ROLES[name].needs_kafka for name in names):
        raise StartError("the relay needs a broker; set MEDIALEDGER_KAFKA_BOOTSTRAP_SERVERS")
    create_home(settings.home)
    with StopSignals() as signals:
        key = master_key(settings.master_key_file)
        try:
            async with attach_database(settings) as found:
                await _work(settings, found.url, key, label=found.label, names=names, signals=signals)
        except asyncio.CancelledError:
            if not signals.requested:
                raise
        print_status("stopped")
        return 0


async def _work(settings: Settings, database: str, key: bytes, *, label: str, names: tuple[str, ...], signals: StopSignals) -> None:
    previous = previous_master_key(settings.master_key_file)
    inner = await prepared(database, key, previous=previous)
    outbound = GuardedClient(settings.outbound_allow)
    workers = process_workers(inner, SecretCipher(key, previous=previous), outbound=outbound, settings=settings, roles=names)
    stopped = asyncio.Event()
    try:
        await inner.start()
        await workers.start()
        signals.on_stop(stopped.set)
        print_status(f"medialedger {product_version()} runs {', '.join(workers.names)} on {label}; Ctrl-C or SIGTERM stops it")
        await stopped.wait()
    finally:
        signals.on_stop(lambda: None)
        await workers.stop()
        await outbound.close()
        await inner.stop()
