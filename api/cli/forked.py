"""Processes of the fork server, as the supervisor sees them. ADR 0045."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

from api.wiring.startup import StartError

_STARTING: Final = 120.0
"""Seconds until a process is there; the first one waits for the imports of the fork server."""
_LAST_WORD: Final = 10.0
_SIZE: Final = 4096


class Forked:
    """One process. A signal cannot reach another one that has got its pid."""

    def __init__(self, pid: int, watched: int, *, status: socket.socket) -> None:
        self.pid = pid
        self._watched = watched
        self._status = status

    async def wait(self) -> int:
        """Its exit code; negative for a signal, and that of `kill` where the fork server cannot say it any more. Once only."""
        try:
            await _readable(self._watched)
            async with asyncio.timeout(_LAST_WORD):
                await _readable(self._status.fileno())
            return int(self._status.recv(_SIZE) or -signal.SIGKILL)
        except (OSError, TimeoutError):
            return -signal.SIGKILL
        finally:
            self._status.close()
            os.close(self._watched)
            self._watched = -1

    def send_signal(self, number: signal.Signals) -> None:
        if self._watched != -1:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._watched, number)


class ForkServer:
    """Starts the module as a fork server, and again when it has ended; its processes have ended with it."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._process: asyncio.subprocess.Process
        self._orders: socket.socket
        self._starting = asyncio.Lock()

    async def __aenter__(self) -> Self:
        await self._start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._orders.close()
        await self._end()

    async def fork(self, order: Mapping[str, Any], descriptors: Sequence[int]) -> Forked:
        """Raises `StartError`."""
        status, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        status.setblocking(False)
        try:
            with theirs:
                message, passed = json.dumps(order).encode(), [theirs.fileno(), *descriptors]
                try:
                    socket.send_fds(self._orders, [message], passed)
                except OSError:
                    await self._start_again()
                    socket.send_fds(self._orders, [message], passed)
            async with asyncio.timeout(_STARTING):
                await _readable(status.fileno())
            told, watched, _, _ = socket.recv_fds(status, _SIZE, 1, socket.MSG_CMSG_CLOEXEC)
        except TimeoutError:
            status.close()
            await self._end()
            raise StartError("the fork server did not answer") from None
        except OSError as error:
            status.close()
            raise StartError(f"the fork server cannot be reached: {error}") from None
        except BaseException:
            status.close()
            raise
        if not watched:
            status.close()
            raise StartError(f"no process could be forked: {told.decode() or 'the fork server ended'}")
        return Forked(int(told), watched[0], status=status)

    async def _start(self) -> None:
        """A session of its own: Ctrl-C in a terminal reaches the supervisor alone."""
        orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-P", "-m", self._module, str(theirs.fileno()), str(os.getpid())),
                    stdin=asyncio.subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
            except BaseException:
                orders.close()
                raise
        orders.setblocking(False)
        self._orders = orders

    async def _start_again(self) -> None:
        async with self._starting:
            if self._process.returncode is not None or _closed(self._orders):
                self._orders.close()
                await self._end()
                await self._start()

    async def _end(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()


def _closed(sock: socket.socket) -> bool:
    try:
        return not sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()

    def done() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(descriptor, done)
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)
