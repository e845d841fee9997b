"""The hostile side of the scenario `hostile`: ill receivers, slow connections, searches and large jobs at the same time.

`python -m faults.hostile_side ADDRESS` is a separate process. It reads its key from standard input, writes `begun` when all acts
are in progress, ends with its input, and then writes the counts of its acts as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio import StreamReader, StreamWriter
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

import aiohttp
import uvloop

from faults.ill_receivers import IllReceivers

SLOW: Final = 600
_LISTS: Final = ("/engine/jobs?items=1000", "/api/event/?pageSize=1000", "/api/event/?search=hostile", "/engine/dashboard")
_SEARCHES: Final = 8
_SUBMITTERS: Final = 4
_DOWNLOADS: Final = (
    "a body without end",
    "dripped body",
    "chunks without end",
    "never answers",
    "resets in the body",
    "a gzip bomb",
)
_ARRAYS: Final = 15_000


class HostileSide:
    """Performs the hostile acts. `done` counts them by kind."""

    def __init__(self, address: str, key: str) -> None:
        self._address = address
        self._where = urlsplit(address)
        self._key = key
        self._receivers = IllReceivers()
        self.done: Counter[str] = Counter()

    async def run(self, until: Awaitable[object]) -> None:
        await self._receivers.start()
        headers = {"API-KEY": self._key, "client": "stranger"}
        async with aiohttp.ClientSession(self._address, headers=headers, timeout=aiohttp.ClientTimeout(60)) as http:
            webhooks = await asyncio.gather(*(self._subscribe(http, url) for url in self._receivers.urls.values()))
            self.done["ill receivers"] = len(webhooks)
            for name in _DOWNLOADS:
                await self._submit(http, url=self._receivers.urls[name], later=False)
            acts: list[Callable[[], Awaitable[None]]] = []
            acts += [lambda n=n: self._search(http, _LISTS[n % len(_LISTS)]) for n in range(_SEARCHES)]  # type: ignore[misc]
            acts += [lambda: self._submit(http, url="http://127.0.0.1:1/a", later=True)] * _SUBMITTERS
            acts += [lambda start=start: self._slow(start) for start in self._starts() for _ in range(SLOW // 3)]  # type: ignore[misc]
            tasks = [asyncio.create_task(self._repeat(act)) for act in acts]
            await self._until_connected(SLOW)
            sys.stdout.write("begun\n")
            sys.stdout.flush()
            await until
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.gather(*(self._unsubscribe(http, webhook) for webhook in webhooks))
        await self._receivers.stop()
        self.done["attempts at ill receivers"] = self._receivers.asked.total()
        self.done["kinds of ill receivers that were asked"] = len(self._receivers.asked)

    async def _repeat(self, act: Callable[[], Awaitable[None]]) -> None:
        while True:
            with suppress(aiohttp.ClientError, OSError):
                await act()
            await asyncio.sleep(0.05)

    async def _subscribe(self, http: aiohttp.ClientSession, url: str) -> str:
        async with http.post("/api/webhook/", json={"webhookUrl": url, "useJsonBody": True}) as answer:
            answer.raise_for_status()
            return str((await answer.json())["id"])

    async def _unsubscribe(self, http: aiohttp.ClientSession, webhook: str) -> None:
        async with http.delete(f"/api/webhook/{webhook}") as answer:
            await answer.read()

    async def _until_connected(self, connections: int) -> None:
        while self.done["slow connections"] < connections:  # noqa: ASYNC110 - what counts them are many tasks
            await asyncio.sleep(0.05)

    async def _search(self, http: aiohttp.ClientSession, path: str) -> None:
        async with http.get(path) as answer:
            await answer.read()
            self.done[f"searches {answer.status}"] += 1

    async def _submit(self, http: aiohttp.ClientSession, *, url: str, later: bool) -> None:
        job = {"workflow": "http_fetch_verify"} | ({"run_at": "2099-01-01T00:00:00Z"} if later else {})
        parameters = {"content_id": "hostile", "url": url, "custom_data": [[]] * _ARRAYS if later else []}
        async with http.post("/engine/job", json={"job": job, "parameters": parameters}) as answer:
            await answer.read()
            self.done[f"jobs {answer.status}"] += 1

    def _starts(self) -> list[bytes]:
        head = b"POST /api/event/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        whole = head + f"API-KEY: {self._key}\r\nContent-Length: 1000\r\n\r\n".encode()
        return [b"", head, whole + b'{"title":"']

    async def _slow(self, start: bytes) -> None:
        """Hold a connection until the server closes it."""
        reader, writer = await self._connected()
        try:
            writer.write(start)
            self.done["slow connections"] += 1
            while await reader.read(65_536):
                pass
        finally:
            writer.transport.abort()

    async def _connected(self) -> tuple[StreamReader, StreamWriter]:
        return await asyncio.open_connection(self._where.hostname, self._where.port)


async def _main() -> None:
    incoming = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(incoming), sys.stdin)
    side = HostileSide(sys.argv[1], (await incoming.readline()).decode().strip())
    await side.run(incoming.read())
    json.dump(side.done, sys.stdout)


if __name__ == "__main__":
    uvloop.run(_main())
