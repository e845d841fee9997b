"""Consoles that follow the changes, in a process of their own: `python -m bench.followers PORT FILE`.

The cookies of their sessions come on standard input, as JSON. It prints a line when all streams are open, reads until it is
terminated, and then writes to FILE how many changes and bytes all consoles received, and how many consoles received none.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from functools import partial
from pathlib import Path
from typing import cast

import uvloop

_ASKED = (
    "GET /api/changes/stream HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\naccept: text/event-stream\r\nsec-fetch-site: same-origin\r\n"
    "cookie: {cookie}\r\n\r\n"
)
_OPEN = b"event: open"
_CHANGE = b'"recordedAt"'


class _Follower(asyncio.Protocol):
    """A client that counts changes; one that is split between two reads is not counted."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self.opened = asyncio.get_running_loop().create_future()
        self._head = b""
        self.changes = 0
        self.bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).write(self._request)  # that of uvloop is none by its class

    def data_received(self, data: bytes) -> None:
        if not self.opened.done():
            self._head += data
            if _OPEN in self._head:
                self.opened.set_result(None)
        self.bytes += len(data)
        self.changes += data.count(_CHANGE)

    def connection_lost(self, _: Exception | None) -> None:
        if not self.opened.done():
            self.opened.set_exception(RuntimeError(f"the stream did not begin: {self._head!r}"))


async def _follow(port: int, cookies: list[str], *, into: Path) -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    requests = [_ASKED.format(port=port, cookie=cookie).encode() for cookie in cookies]
    made = [await loop.create_connection(partial(_Follower, each), "127.0.0.1", port) for each in requests]
    followers = [follower for _, follower in made]
    async with asyncio.timeout(60):
        await asyncio.gather(*(follower.opened for follower in followers))
    print("ready", flush=True)
    await ended.wait()
    got = [follower.changes for follower in followers]
    report = {"changes": sum(got), "bytes": sum(follower.bytes for follower in followers), "without": got.count(0)}
    await asyncio.to_thread(into.write_text, json.dumps(report))


if __name__ == "__main__":
    uvloop.run(_follow(int(sys.argv[1]), json.loads(sys.stdin.readline()), into=Path(sys.argv[2])))
