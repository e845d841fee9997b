"""The serving process: binds the port, opens the database, serves until a stop signal. `up` and `api` differ in the database."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Protocol

import uvicorn

from api.cli.run.database import OpenDatabase, warn_of_rights
from api.cli.run.limits import raise_descriptor_limit, return_large_memory, tune_garbage_collector
from api.cli.run.sockets import bound_sockets, with_duplicates
from api.cli.run.startup_text import print_ready, print_status
from api.cli.run.stop_signals import StopSignals
from api.guards.connection import GuardedConfig
from api.guards.limits import Connections
from api.wiring.settings import Settings
from api.wiring.startup import AsgiApplication, Runnable, StartError
from projections.kernel.background_task import start_task

BACKLOG = 2048
_AFTER_IDLE = 1.0
"""The seconds that a retired process waits after the time-out of idle connections."""


Ready = Callable[[int], None]


class Build(Protocol):
    """Builds the application to serve, on a database that answers."""

    def __call__(self, settings: Settings, database: str, /, *, owner: str) -> Awaitable[Runnable]: ...


class Server(uvicorn.Server):
    """The uvicorn server without its signal handlers, and with a callback when it listens. Those handlers would raise the signals
    again at the end of the server, before the product and the database are stopped."""

    def __init__(self, config: GuardedConfig, *, listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._connections = config.connections
        self._listening = listening

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=None if sockets is None else with_duplicates(sockets))
        if not self.should_exit:
            self._listening()

    def drain(self) -> None:
        self.should_exit = True

    async def retire(self, seconds: float) -> None:
        """Accept no more connections, and wait until the open ones are closed: by the answer to their next request, by their
        clients, or by their time-out. An idle connection is not closed earlier: a proxy may send a request on it at the same
        moment, and does not repeat a POST."""
        for server in self.servers:
            server.close()
        self._connections.answer_last()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._connections.open:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
        self.drain()


def no_further_step(port: int) -> None:
    """Do nothing when the product is ready."""


async def serve(settings: Settings, *, database: OpenDatabase, build: Build, ready: Ready = no_further_step) -> int:
    """Serve until a stop signal. Resources are closed in reverse order, also after an error. `ready` is called with the port when
    the server listens."""
    raise_descriptor_limit()
    with StopSignals() as signals, bound_sockets(settings.host, port=settings.port) as (sockets,):
        settings = settings.listening_on(sockets[0].getsockname()[1])
        try:
            async with database(settings) as opened:
                warn_of_rights(opened)
                product = await build(settings, opened.url, owner=opened.owner)
                address = sockets[0].getsockname()[0]
                listening = partial(_announce, settings, product, address=address, label=opened.label, ready=ready)
                await run_product(product, sockets, signals=signals, seconds=settings.shutdown_seconds, listening=listening)
        except asyncio.CancelledError:
            if not signals.requested:
                raise
        print_status("stopped by force" if signals.forced.is_set() else "stopped")
        return 1 if signals.forced.is_set() else 0


async def run_product(
    product: Runnable,
    sockets: list[socket.socket],
    *,
    signals: StopSignals,
    seconds: int,
    listening: Callable[[], None],
    retire: asyncio.Event | None = None,
) -> None:
    """Run the product until a stop signal or until `retire` is set: then another process has taken over, and every connection may
    end in its own time."""
    return_large_memory()
    server = Server(server_config(product.app, product.connections, seconds=seconds), listening=listening)
    tasks = [start_task(_force(server, signals), what="stop by force")]
    if retire is not None:
        tasks.append(start_task(_retire(server, product, retire), what="retirement"))
    try:
        await product.start()
        tune_garbage_collector()
        signals.on_stop(partial(_drain, server, product))
        await server.serve(sockets=sockets)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise StartError("another program has taken the port meanwhile; start again") from error
    finally:
        signals.on_stop(lambda: None)
        for task in tasks:
            task.cancel()
        # The stop has a time limit: the database must be stopped after it even if a worker hangs.
        await signals.in_order(product.stop(), seconds=max(seconds, 1))


def server_config(app: AsgiApplication, connections: Connections, *, seconds: int) -> GuardedConfig:
    return GuardedConfig(
        app,
        connections,
        interface="asgi3",
        loop="none",  # the event loop runs already
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        backlog=BACKLOG,
        timeout_graceful_shutdown=seconds,
    )


def _drain(server: Server, product: Runnable) -> None:
    server.drain()
    product.drain()


async def _force(server: Server, signals: StopSignals) -> None:
    await signals.forced.wait()
    server.force_exit = True


async def _retire(server: Server, product: Runnable, retire: asyncio.Event) -> None:
    await retire.wait()
    product.drain()
    await server.retire(product.connections.limits.idle_seconds + _AFTER_IDLE)


def _announce(settings: Settings, product: Runnable, *, address: str, label: str, ready: Ready) -> None:
    print_ready(settings, address=address, port=settings.port, database=label, summary=product.summary())
    ready(settings.port)
