"""A streaming server whose publishing points are all on the air: `python -m bench.points`. Prints its port.

The response to every path is a state page with the present time. `/gaps` returns as JSON how often and how regularly the other
paths were requested since the last `/gaps`.
"""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime
from itertools import pairwise
from typing import cast

import uvloop

_seen: dict[bytes, list[float]] = {}


def _page() -> bytes:
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    text = f'<smil xmlns="u"><head><meta name="updated" content="{now}"/><meta name="state" content="started"/></head></smil>'
    return text.encode()


def _gaps() -> bytes:
    gaps = sorted(later - earlier for times in _seen.values() for earlier, later in pairwise(times))
    report = {"points": len(_seen), "samples": sum(map(len, _seen.values())), "gaps": gaps}
    _seen.clear()
    return json.dumps(report).encode()


class _Server(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # that of uvloop is none by its class

    def data_received(self, data: bytes) -> None:
        """Answer a request. On loopback the head of a request arrives whole."""
        path = data.split(b" ", 2)[1]
        if path == b"/gaps":
            body = _gaps()
        else:
            _seen.setdefault(path, []).append(time.monotonic())
            body = _page()
        self._transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(_Server, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve())
