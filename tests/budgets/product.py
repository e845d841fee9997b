"""The product in this process, behind a socket, and a client that costs nothing of what is counted."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

from api.cli.run.serving import Server, server_config
from api.wiring.product import Product, build
from api.wiring.settings import Settings
from domain.kernel.errors import Conflict
from tests.budgets.loop import CountingLoop
from tests.support.application import introduce

_BUFFER: Final = 1 << 20
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *([0-9]+)\r\n", re.IGNORECASE)


class Client:
    """A connection to the API, in the loop of the product. What it does is not counted, and its buffer is made once."""

    name: Final = "budgets"

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None
        self._buffer = bytearray(_BUFFER)
        self._view = memoryview(self._buffer)
        self._filled = 0

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def request(
        self, method: str, path: str, *, body: object = None, kind: str = "application/json", more: Mapping[str, str] | None = None
    ) -> bytes:
        data = b"" if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        headers = {"Host": "127.0.0.1", "API-KEY": f"key-of-{self.name}", "Accept-Encoding": "identity", **(more or {})}
        if body is not None:
            headers |= {"Content-Type": kind, "Content-Length": str(len(data))}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + data

    async def send(self, request: bytes) -> None:
        """Send a request, and wait for the whole response."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, CountingLoop)
        done = loop.create_future()
        self._filled = 0
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port))
            self._socket.setblocking(False)
            loop.ignore(self._socket.fileno())
        self._socket.send(request)
        loop.add_reader(self._socket.fileno(), self._receive, done)
        try:
            await done
        finally:
            loop.remove_reader(self._socket.fileno())

    def check(self) -> None:
        """Raise if the last response was no success."""
        if self._buffer[9:10] != b"2":
            raise RuntimeError(bytes(self._view[: self._filled]).decode())

    async def ask(self, method: str, path: str, **given: Any) -> Any:
        """Send a request, and return the decoded body of its response."""
        await self.send(self.request(method, path, **given))
        self.check()
        return json.loads(bytes(self._view[: self._filled]).partition(b"\r\n\r\n")[2])

    def _receive(self, done: asyncio.Future[None]) -> None:
        assert self._socket is not None
        received = self._socket.recv_into(self._view[self._filled :])
        if not received:
            done.set_exception(RuntimeError("the product has closed the connection"))
            return
        self._filled += received
        end = self._buffer.find(b"\r\n\r\n", 0, self._filled)
        if end < 0:
            return
        match = _LENGTH.search(self._buffer, 0, end + 2)
        length = 0 if match is None else int(match[1])
        if self._filled >= end + 4 + length and not done.done():
            done.set_result(None)


def _settings(home: Path) -> Settings:
    given = {"HOME": str(home), "OUTBOUND_ALLOW": "127.0.0.0/8", "SPEKE_RATE": "1000000", "SEAL_SECONDS": "86400"}
    made = Settings.from_env({f"MEDIALEDGER_{name}": value for name, value in given.items()})
    if not made.master_key_file.exists():
        made.master_key_file.write_bytes(b"a master key of tests of budgets")
        made.master_key_file.chmod(0o600)
    return made.complete()


@asynccontextmanager
async def _served(product: Product) -> AsyncIterator[Client]:
    """Serve the API of a product that was started, and yield a client with the role admin."""
    with suppress(Conflict):  # an earlier product has introduced it
        await introduce(product.core, Client.name, "admin")
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(16)
        ready = asyncio.Event()
        server = Server(server_config(product.app, product.connections, seconds=5), listening=ready.set)
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        await ready.wait()
        client = Client(listening.getsockname()[1])
        try:
            yield client
        finally:
            client.close()
            server.drain()
            await serving


@asynccontextmanager
async def running(home: Path, url: str, *, roles: Sequence[str] = ()) -> AsyncIterator[tuple[Product, Client]]:
    """Run the product with these roles of workers; without any, only what answers requests."""
    product = await build(_settings(home), url, roles=roles)
    try:
        await (product.start() if roles else product.start_answering())
        async with _served(product) as client:
            yield product, client
    finally:
        await product.stop()
