"""The REST API in the process of a command, on the database of this home, for commands that run while no product does."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import unquote

import uvloop

from api.cli import shell
from api.cli.remote.rest_api import Answer, RestApi
from api.cli.run.database import open_database
from api.cli.run.home import create_home
from api.cli.run.runner import EXPECTED_ERRORS, settings_of_process
from api.http.request import Caller
from api.kernel.auth import Role
from api.wiring.product import Product, build
from api.wiring.settings import Settings
from api.wiring.startup import StartError

_HOST: Final = b"localhost"
_NOT_BEGUN: Final = r"coroutine '(_answer|_AsyncGeneratorContextManager\.__a(enter|exit)__)' was never awaited"
"""Ctrl+C may come between the creation of a coroutine and its first step."""


class InProcessApi(RestApi):
    """The API of this home. It is opened at once, so that a missing database is reported before the first request. The caller is
    the user of the shell. With `make`, a missing or empty database is created."""

    label = "the product of this home"
    local = True
    running = False

    def __init__(self, *, make: bool = False) -> None:
        warnings.filterwarnings("ignore", _NOT_BEGUN, RuntimeWarning)
        self._runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self._product_context = _open(settings_of_process(), make=make)
        try:
            self._product = self._runner.run(self._product_context.__aenter__())
        except EXPECTED_ERRORS as error:
            self._runner.close()
            raise StartError(str(error)) from None
        except BaseException:
            self._runner.close()
            raise

    def close(self) -> None:
        try:
            self._runner.run(self._product_context.__aexit__(None, None, None))
        finally:
            self._runner.close()

    def exchange(self, method: str, target: str, *, body: bytes | None, client: str | None = None) -> Answer:
        headers = [(b"client", client.encode())] if client is not None else []
        try:
            return self._runner.run(_answer(self._product, method, target, body=body, headers=headers))
        except EXPECTED_ERRORS as error:
            raise StartError(str(error)) from None


@asynccontextmanager
async def _open(settings: Settings, *, make: bool) -> AsyncIterator[Product]:
    if make:
        create_home(settings.home)
    async with open_database(settings, make=make) as database:
        caller = Caller(shell.user_of_shell(), frozenset({Role.ADMIN}))
        product = await build(settings, database.url, owner=database.owner, caller=caller)
        try:
            await product.start_answering()
            yield product
        finally:
            await product.stop()


async def _answer(product: Product, method: str, target: str, *, body: bytes | None, headers: list[tuple[bytes, bytes]]) -> Answer:
    path, _, query = target.partition("?")
    headers = [*headers, (b"host", _HOST), (b"accept", b"application/json"), (b"api-key", b"-")]
    if body is not None:
        headers += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 0),
        "server": ("localhost", 80),
    }
    head: dict[str, Any] = {}
    pieces: list[bytes] = []
    ended = asyncio.Event()
    requests = [{"type": "http.request", "body": body or b"", "more_body": False}]

    async def receive() -> dict[str, Any]:
        if requests:
            return requests.pop()
        await ended.wait()
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            head.update(message)
        else:
            pieces.append(message.get("body", b""))

    await product.app(scope, receive, send)
    ended.set()
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError  # Ctrl-C came during the request, which was answered as an unavailable database
    named = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in head["headers"]}
    return Answer(head["status"], named, b"".join(pieces))
