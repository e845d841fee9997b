"""Hosts for outbound requests: correct and faulty servers on loopback, and resolvers with given answers."""

from __future__ import annotations

import asyncio
import socket
import ssl
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType

from aiohttp.abc import AbstractResolver, ResolveResult

from workers.adapters.outbound_guard import AddressGuard, GuardedResolver

Script = Callable[[StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def says(answer: bytes, *, then_closes: bool = False) -> Script:
    async def script(out: StreamWriter) -> None:
        out.write(answer)
        if then_closes:
            out.close()

    return script


async def hangs(_: StreamWriter) -> None:
    await asyncio.Event().wait()


@dataclass
class Host:
    """Reads whole requests and answers each as its script says."""

    script: Script
    tls: ssl.SSLContext | None = None
    heads: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    connections: int = 0

    async def __aenter__(self) -> Host:
        self._under_way: set[asyncio.Task[None] | None] = set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.url = f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self._server.close()
        for task in self._under_way:
            if task is not None:
                task.cancel()
        await asyncio.gather(*(task for task in self._under_way if task is not None), return_exceptions=True)

    async def _serve(self, incoming: StreamReader, out: StreamWriter) -> None:
        self.connections += 1
        self._under_way.add(asyncio.current_task())
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while True:
                head = (await incoming.readuntil(b"\r\n\r\n")).decode()
                length = next(
                    (int(line.split(":")[1]) for line in head.lower().split("\r\n") if line.startswith("content-length")), 0
                )
                self.heads.append(head)
                self.bodies.append(await incoming.readexactly(length))
                await self.script(out)
        out.close()


class Counted(asyncio.Protocol):
    """Counts who comes."""

    def __init__(self, count: list[asyncio.BaseTransport], arrived: asyncio.Event) -> None:
        self._count, self._arrived = count, arrived

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._count.append(transport)
        self._arrived.set()


class Silence:
    """A port on every address of this machine, to which no connection should come."""

    async def __aenter__(self) -> Silence:
        loop = asyncio.get_running_loop()
        self._seen: dict[str, list[asyncio.BaseTransport]] = {"127.0.0.1": [], "::1": []}
        self._events = {address: asyncio.Event() for address in self._seen}
        four = socket.create_server(("0.0.0.0", 0))
        self.port: int = four.getsockname()[1]
        six = socket.create_server(("::", self.port), family=socket.AF_INET6)
        self._servers = [
            await loop.create_server(partial(Counted, self._seen[address], self._events[address]), sock=listening)
            for address, listening in (("127.0.0.1", four), ("::1", six))
        ]
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        for server in self._servers:
            server.close()
        for transport in (transport_seen for seen in self._seen.values() for transport_seen in seen):
            transport.close()

    async def arrivals(self) -> int:
        """Connections are accepted in the order they came: when our own is there, so is every one before it."""
        for address in self._seen:
            self._events[address].clear()
            before = len(self._seen[address])
            _, out = await asyncio.open_connection(address, self.port)
            while not any(self._is(arrival, out) for arrival in self._seen[address][before:]):
                await self._events[address].wait()
                self._events[address].clear()
            self._seen[address].pop()
            out.close()
        return sum(len(seen) for seen in self._seen.values())

    @staticmethod
    def _is(transport: asyncio.BaseTransport, ours: StreamWriter) -> bool:
        return bool(transport.get_extra_info("peername")[:2] == ours.get_extra_info("sockname")[:2])


def _results(host: str, port: int, addresses: Iterable[str]) -> list[ResolveResult]:
    return [
        ResolveResult(
            hostname=host, host=address, port=port, family=socket.AF_INET6 if ":" in address else socket.AF_INET, proto=0, flags=0
        )
        for address in addresses
    ]


class Answers(GuardedResolver):
    """The guarded resolver over names of a test; the last answer is repeated."""

    def __init__(self, guard: AddressGuard, *answers: Iterable[str]) -> None:
        super().__init__(guard)
        self._answers = [list(answer) for answer in answers]

    async def addresses(self, host: str, port: int, *, family: socket.AddressFamily) -> list[ResolveResult]:
        return _results(host, port, self._answers.pop(0) if len(self._answers) > 1 else self._answers[0])


class Liar(AbstractResolver):
    """Checks nothing, as a resolver does whose answer has changed since it was checked."""

    def __init__(self, *answers: Iterable[str]) -> None:
        self._answers = [list(answer) for answer in answers]

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> list[ResolveResult]:
        return _results(host, port, self._answers.pop(0) if len(self._answers) > 1 else self._answers[0])

    async def close(self) -> None:
        return None
