"""One process that answers: from bound port to "stopped". `up` and `api` differ only in where their database comes from."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import socket
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from functools import partial

import uvicorn

from api.cli.database import Database
from api.cli.port import bound
from api.cli.ready import ready_text
from api.cli.stopping import Stopping
from api.wiring.settings import Settings
from api.wiring.startup import AsgiApplication, Runnable, StartError
from workers.adapters.keyfiles import master_key

BACKLOG = 2048
Build = Callable[[Settings, str, bytes], Awaitable[Runnable]]
Ground = Callable[[Settings], AbstractAsyncContextManager[Database]]

logger = logging.getLogger(__name__)


class Server(uvicorn.Server):
    """uvicorn would take the signals for itself and raise them again when it is done, which ends the process before the
    product and the database are stopped. Here it leaves them alone, and says when it listens."""

    def __init__(self, config: uvicorn.Config, *, listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._listening = listening

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if not self.should_exit:
            self._listening()

    def drain(self) -> None:
        self.should_exit = True


async def serve(settings: Settings, *, database: Ground, build: Build) -> int:
    """Every step undoes itself in the reverse order, whichever way this ends."""
    with Stopping() as stopping, bound(settings.host, port=settings.port) as sockets:
        key = master_key(settings.master_key_file)
        try:
            async with database(settings) as found:
                product = await build(settings, found.url, key)
                listening = partial(_tell_ready, settings, product, label=found.label, sockets=sockets)
                await run_product(product, sockets, stopping=stopping, seconds=settings.shutdown_seconds, listening=listening)
        except asyncio.CancelledError:
            if not stopping.asked:
                raise
        tell("stopped by force" if stopping.forced.is_set() else "stopped")
        return 1 if stopping.forced.is_set() else 0


async def run_product(
    product: Runnable,
    sockets: list[socket.socket],
    *,
    stopping: Stopping,
    seconds: int,
    listening: Callable[[], None],
) -> None:
    server = Server(server_config(product.app, seconds=seconds), listening=listening)
    insisting = asyncio.create_task(_force(server, stopping))
    try:
        await product.start()
        rest_the_collector()
        stopping.when_asked(partial(_drain, server, product))
        await server.serve(sockets=sockets)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise StartError("another program took the port in the meantime; start again") from error
    finally:
        stopping.when_asked(lambda: None)
        insisting.cancel()
        await _stop(product, stopping=stopping, seconds=seconds)


def rest_the_collector() -> None:
    """What is loaded by now stays for good, and requests leave few cycles behind: look for them seldom, and never among the
    former. Python's own thresholds walk every kept aggregate again and again (seen: 8 % of a write)."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def server_config(app: AsgiApplication, *, seconds: int) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        interface="asgi3",
        loop="none",  # we are already in it
        http="httptools",
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


async def _force(server: Server, stopping: Stopping) -> None:
    await stopping.forced.wait()
    server.force_exit = True


async def _stop(product: Runnable, *, stopping: Stopping, seconds: int) -> None:
    """Bounded: a worker that hangs must not keep the database from being stopped in order."""
    stop = asyncio.create_task(product.stop())
    forced = asyncio.create_task(stopping.forced.wait())
    await asyncio.wait({stop, forced}, timeout=max(seconds, 1), return_when=asyncio.FIRST_COMPLETED)
    forced.cancel()
    if not stop.done():
        stop.cancel()
        await asyncio.wait({stop}, timeout=1)
        logger.error("work under way was cut off: it did not stop in time")
    elif (error := stop.exception()) is not None:
        logger.error("the product did not stop in order", exc_info=error)


def _tell_ready(settings: Settings, product: Runnable, *, label: str, sockets: Sequence[socket.socket]) -> None:
    port = sockets[0].getsockname()[1]
    tell(ready_text(settings, port=port, database=label, summary=product.summary()))


def tell(text: str) -> None:
    """A terminal that has gone away is no reason to fail."""
    with suppress(OSError):
        print(text, flush=True)
