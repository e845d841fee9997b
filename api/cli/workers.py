"""`medialedger workers [NAME…]`: what acts on the world, without a web. Any number of these may run, on any number of machines."""

from __future__ import annotations

import asyncio
from argparse import Namespace

from api.cli.database import attached
from api.cli.home import prepare
from api.cli.serving import tell
from api.cli.stopping import Stopping
from api.kernel.version import product_version
from api.wiring.catalogue import WORKER_ROLES
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from api.wiring.workers import prepared, process_workers
from domain.kernel.encryption import SecretCipher
from workers.adapters.keyfiles import master_key, previous_master_key
from workers.adapters.outbound_http import GuardedClient


async def run(args: Namespace, settings: Settings) -> int:
    """Every step undoes itself in the reverse order, whichever way this ends."""
    names = tuple(dict.fromkeys(args.names)) or tuple(WORKER_ROLES)
    if settings.kafka_bootstrap_servers is None and all(WORKER_ROLES[name].needs_kafka for name in names):
        raise StartError("the relay needs a broker; set MEDIALEDGER_KAFKA_BOOTSTRAP_SERVERS")
    prepare(settings.home)
    with Stopping() as stopping:
        key = master_key(settings.master_key_file)
        try:
            async with attached(settings) as found:
                await _work(settings, found.url, key, label=found.label, names=names, stopping=stopping)
        except asyncio.CancelledError:
            if not stopping.asked:
                raise
        tell("stopped")
        return 0


async def _work(settings: Settings, database: str, key: bytes, *, label: str, names: tuple[str, ...], stopping: Stopping) -> None:
    previous = previous_master_key(settings.master_key_file)
    inner = await prepared(database, key, previous=previous)
    outbound = GuardedClient(settings.outbound_allow)
    workers = process_workers(inner, SecretCipher(key, previous=previous), outbound=outbound, settings=settings, roles=names)
    stopped = asyncio.Event()
    try:
        await inner.start()
        await workers.start()
        stopping.when_asked(stopped.set)
        tell(f"medialedger {product_version()} works as {', '.join(workers.names)} on {label}; Ctrl-C or SIGTERM stops it")
        await stopped.wait()
    finally:
        stopping.when_asked(lambda: None)
        await workers.stop()
        await outbound.close()
        await inner.stop()
