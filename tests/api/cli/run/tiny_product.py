"""The smallest product that `serve` can run, as a separate process: `python tiny_product.py`, with settings in the environment.

`/held` answers only once the file HOME/go exists, and creates HOME/held while it waits, so that a test can detect the request under
way. `/endless` is a stream of events that never ends on its own.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import uvloop
from psycopg.conninfo import conninfo_to_dict

from api.cli.run.database import start_database
from api.cli.run.home import create_home, lock_home
from api.cli.run.serving import serve
from api.guards.limits import Connections
from api.http.response import EVENT_STREAM, OpenStreams
from api.kernel.request import Request
from api.wiring.settings import Settings
from api.wiring.startup import StartError


class TinyProduct:
    def __init__(self, home: Path) -> None:
        self._home = home
        self.connections = Connections()
        self._streams = OpenStreams()

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/endless":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            request = Request(scope, receive, send)
            await self._streams.send(_endless(), request, media_type=EVENT_STREAM, receive=receive, send=send)
            return
        if scope["path"] == "/held":
            (self._home / "held").touch()
            while not (self._home / "go").exists():  # noqa: ASYNC110 - the one who says "go" is another process
                await asyncio.sleep(0.01)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    async def start(self) -> None: ...

    def drain(self) -> None:
        self._streams.end()

    async def stop(self) -> None:
        (self._home / "stopped-in-order").touch()

    def summary(self) -> Sequence[tuple[str, str]]:
        return [("admin key", str(self._home / "admin-api-key"))]


async def _endless() -> AsyncIterator[bytes]:
    yield b": here\n\n"
    await asyncio.Event().wait()


async def build(settings: Settings, database: str, *, owner: str) -> TinyProduct:
    assert conninfo_to_dict(database)["dbname"]
    return TinyProduct(settings.home)


async def main() -> int:
    settings = Settings.from_process()
    create_home(settings.home)
    with lock_home(settings.home):
        return await serve(settings, database=start_database, build=build)


if __name__ == "__main__":
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            sys.exit(runner.run(main()))
    except StartError as error:
        sys.exit(error.message)
