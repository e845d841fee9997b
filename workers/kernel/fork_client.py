"""The client of a fork server: starts the server and its processes. See ADR 0045 and 0057."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import IO, Any, Final, Self

_STARTING: Final = 120.0
"""Seconds until a process must have started; the first one waits for the imports of the fork server."""
_LAST_WORD: Final = 10.0
_SIZE: Final = 4096


class ForkedProcess:
    """A forked process. A signal cannot reach another process that has been assigned the same pid."""

    def __init__(self, pid: int, watched: int, *, status: socket.socket) -> None:
        self.pid = pid
        self._watched = watched
        self._status = status
        self.orphaned = False
        """True if the fork server ended before the process: then its group was not killed."""

    async def wait(self) -> int:
        """Wait for the exit code; it is negative for a signal, and that of a kill if the fork server cannot report it any more. It
        may be called once only."""
        try:
            await _readable(self._watched)
            async with asyncio.timeout(_LAST_WORD):
                await _readable(self._status.fileno())
            return int(self._status.recv(_SIZE))
        except (OSError, ValueError):
            self.orphaned = True
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
    """Starts the module as a fork server: at the first fork or earlier, and again after it has ended.

    `arguments` follow the two that every fork server gets. `environment` and `output`, the standard output, default to those of
    this process.
    """

    def __init__(
        self,
        module: str,
        *,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        output: IO[Any] | int | None = None,
    ) -> None:
        self._module = module
        self._arguments = arguments
        self._environment = environment
        self._output = output
        self._process: asyncio.subprocess.Process | None = None
        self._orders: socket.socket | None = None
        self._starting = asyncio.Lock()

    async def __aenter__(self) -> Self:
        await self._running()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.stop()

    async def stop(self) -> None:
        async with self._starting:
            await self._end()

    async def fork(self, order: Mapping[str, Any], descriptors: Sequence[int]) -> ForkedProcess:
        """Start a process. Raise `OSError` with the error number from the fork server. A cancelled call may leave a process that no
        caller waits for: the process must learn this from the descriptors that it received."""
        message = json.dumps(order).encode()
        try:
            return await self._fork(message, descriptors)
        except ConnectionError:  # the fork server ended a moment ago
            return await self._fork(message, descriptors)
        except TimeoutError:
            await self.stop()
            raise

    async def _fork(self, message: bytes, descriptors: Sequence[int]) -> ForkedProcess:
        status, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            status.setblocking(False)
            with theirs:
                orders = await self._running()
                socket.send_fds(orders, [message], [theirs.fileno(), *descriptors])
            async with asyncio.timeout(_STARTING):
                await _readable(status.fileno())
            answer, watched, flags, _ = socket.recv_fds(status, _SIZE, 1, socket.MSG_CMSG_CLOEXEC)
            if not answer and _is_closed(orders):
                raise ConnectionError("the fork server ended")
            if not watched:
                short = not answer or flags & socket.MSG_CTRUNC  # there is no free descriptor in the server or here
                number = errno.EMFILE if short else int(answer)
                raise OSError(number, os.strerror(number))
        except BaseException:
            status.close()
            raise
        return ForkedProcess(int(answer), watched[0], status=status)

    async def _running(self) -> socket.socket:
        """Return the socket for orders of a fork server that is alive."""
        async with self._starting:
            if self._orders is None or _is_closed(self._orders):
                await self._end()
                self._orders = await self._start()
            return self._orders

    async def _start(self) -> socket.socket:
        """Start the fork server in a session of its own: Ctrl-C in a terminal reaches only this process."""
        orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-P", "-m", self._module, str(theirs.fileno()), str(os.getpid())),
                    *self._arguments,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=self._output,
                    env=self._environment,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
            except BaseException:
                orders.close()
                raise
        orders.setblocking(False)
        return orders

    async def _end(self) -> None:
        if self._orders is not None:
            self._orders.close()
            self._orders = None
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
            self._process = None


def _is_closed(sock: socket.socket) -> bool:
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
