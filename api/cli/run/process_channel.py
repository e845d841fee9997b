"""The channel between the supervisor and one of its processes: questions, answers and notices, as JSON frames on a socket pair."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from itertools import count
from typing import Any, Final

from projections.kernel.background_task import start_task
from workers.job.host.frames import Unpacker, pack

_PIECE: Final = 256 * 1024
_log = logging.getLogger(__name__)

Answer = Callable[[Any], Awaitable[Any]]
Notice = Callable[[Any], None]


class ChannelClosed(Exception):
    """Raised when the other end has closed, so that no answer will come."""


class ProcessChannel:
    """An end of a channel. `answers` and `notices` handle the questions and notices of the other end, by name."""

    def __init__(self, *, answers: Mapping[str, Answer], notices: Mapping[str, Notice]) -> None:
        self._answers = answers
        self._notices = notices
        self._numbers = count()
        self._open: dict[int, asyncio.Future[Any]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None

    async def connect(self, end: socket.socket) -> None:
        reader, self._writer = await asyncio.open_unix_connection(sock=end)
        self._reading = start_task(self._read(reader), what="channel")

    async def ask(self, name: str, value: Any = None, *, seconds: float) -> Any:
        """Ask a question and return the answer. Raise `ChannelClosed`, or `TimeoutError` after so many seconds."""
        if self._reading is None or self._reading.done():
            raise ChannelClosed
        number = next(self._numbers)
        answer = self._open[number] = asyncio.get_running_loop().create_future()
        try:
            self._send({"kind": "question", "name": name, "id": number, "value": value})
            async with asyncio.timeout(seconds):
                return await answer
        finally:
            del self._open[number]

    def tell(self, name: str, value: Any = None) -> None:
        """Send a notice, which has no answer."""
        self._send({"kind": "notice", "name": name, "value": value})

    async def ended(self) -> None:
        """Wait until the other end has closed and everything that it sent has been read."""
        if self._reading is not None:
            await asyncio.wait({self._reading})

    async def close(self) -> None:
        """Send the pending frames, then close."""
        if self._writer is not None:
            self._writer.close()
            with suppress(OSError):
                await self._writer.wait_closed()

    def _send(self, frame: Mapping[str, Any]) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(pack(frame))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        unpacker = Unpacker()
        try:
            with suppress(OSError):
                while piece := await reader.read(_PIECE):
                    for frame in unpacker.frames(piece):
                        self._handle(frame)
        finally:
            if self._writer is not None:
                self._writer.close()  # the other end must not wait for an end that no longer reads
            for answer in self._open.values():
                if not answer.done():
                    answer.set_exception(ChannelClosed())

    def _handle(self, frame: Mapping[str, Any]) -> None:
        """Handle a frame. An error in one frame does not stop the reading of later frames."""
        try:
            self._receive(frame)
        except Exception:
            _log.exception("a message of the channel could not be handled")

    def _receive(self, frame: Mapping[str, Any]) -> None:
        if frame["kind"] == "notice":
            self._notices[frame["name"]](frame["value"])
        elif frame["kind"] == "question":
            task = start_task(self._answer(frame), what="answers of a channel")
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
        elif (answer := self._open.get(frame["id"])) is not None and not answer.done():
            answer.set_result(frame["value"])

    async def _answer(self, frame: Mapping[str, Any]) -> None:
        value = await self._answers[frame["name"]](frame["value"])
        self._send({"kind": "answer", "id": frame["id"], "value": value})
