"""A server to compare, in a process of its own: `python -m bench.serve KIND`.

`working` is the product with all its workers in the same process, as `medialedger up` runs it; `probing` has the prober alone. Both
may reach loopback.

All run with the product's own settings of uvicorn and of the cycle collector: uvloop, httptools, no access log, one worker. The
address of the database comes on standard input, because it holds a password.
"""

from __future__ import annotations

import argparse
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn
import uvloop

from api.cli.run.limits import tune_garbage_collector
from api.cli.run.serving import BACKLOG, server_config
from api.guards.limits import Connections
from api.wiring.catalogue import WORKER_ROLES
from api.wiring.product import build
from api.wiring.settings import Settings
from bench import crud_twin, trivial

KEY = "bench-admin-key-0123456789"
MASTER_KEY = b"a master key for benchmarks only"
PLUGINS = str(Path(__file__).parents[1] / "tests" / "support" / "plugins")
"""The folder of workflows whose steps do nothing."""
_ROLES = {"working": tuple(WORKER_ROLES), "probing": ("prober",)}


@asynccontextmanager
async def _application(kind: str, *, url: str, home: Path) -> AsyncIterator[Any]:
    if kind == "trivial":
        yield trivial.application()
    elif kind == "twin":
        await crud_twin.create_table(url)
        yield crud_twin.application(url)
    else:
        given = {"HOME": str(home), "ADMIN_API_KEY": KEY, "OUTBOUND_ALLOW": "127.0.0.0/8", "SPEKE_RATE": "1000000"}
        settings = Settings.from_env({f"MEDIALEDGER_{name}": value for name, value in given.items()})
        settings.master_key_file.write_bytes(MASTER_KEY)
        settings.master_key_file.chmod(0o600)
        product = await build(settings, url, roles=_ROLES.get(kind, ()))
        try:
            await product.start()
            yield product.app
        finally:
            await product.stop()


async def _serve(kind: str, *, url: str, home: Path) -> None:
    async with _application(kind, url=url, home=home) as app:
        tune_garbage_collector()
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen(BACKLOG)
            print(listening.getsockname()[1], flush=True)
            await uvicorn.Server(server_config(app, Connections(), seconds=5)).serve(sockets=[listening])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.serve", description=__doc__)
    parser.add_argument("kind", choices=("product", "working", "probing", "trivial", "twin"))
    parser.add_argument("--home", type=Path, default=Path())
    given = parser.parse_args()
    sys.path.append(PLUGINS)
    uvloop.run(_serve(given.kind, url=sys.stdin.readline().strip(), home=given.home))


if __name__ == "__main__":
    main()
