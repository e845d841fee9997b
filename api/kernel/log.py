"""Logs: one JSON object a line, the same shape for messages of the code and for requests; or text, for a person at a terminal."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Protocol, TextIO

from pydantic_core import to_json

from api.http.request import Request
from domain.kernel.clock import Clock, iso
from domain.kernel.known_tokens import without_tokens

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

_ATOMIC: Final = 4096
"""PIPE_BUF of Linux; the lines are ASCII."""
_HALF: Final = 8192
"""Characters."""
_READS: Final = ("GET", "HEAD")
_Entry = tuple[datetime, str, str, str, str, int, float]
"""Time, transaction id, client, method, route, status, seconds: not the call itself, which would keep its body alive."""


class TextStream(Protocol):
    def write(self, text: str, /) -> object: ...

    def flush(self) -> object: ...


def _line(fields: Mapping[str, Any]) -> str:
    return to_json(fields, fallback=str, serialize_unknown=True).decode()


def _bounded(text: str) -> str:
    """The beginning and the end, without credentials that are known by their form: an error may repeat a text of any size that
    somebody sent."""
    left_out = len(text) - 2 * _HALF
    return without_tokens(text if left_out <= 0 else f"{text[:_HALF]} … {left_out} characters … {text[-_HALF:]}")


class JsonFormatter(logging.Formatter):
    """For stdlib handlers. What a caller passes as `extra` becomes fields of the line."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "time": iso(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname,
            "logger": record.name,
            "message": _bounded(record.getMessage()),
        }
        fields.update((name, _shown(value)) for name, value in vars(record).items() if name not in _STANDARD)
        if record.exc_info:
            fields["exception"] = _bounded(self.formatException(record.exc_info))
        return _line(fields)


class TextFormatter(logging.Formatter):
    """For a person at a terminal: local time, level where it is no information, message, and a traceback where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()} "
        line = f"{_local(datetime.fromtimestamp(record.created, UTC))} {level}{_visible(_bounded(record.getMessage()))}"
        if record.exc_info:
            line += "\n" + "\n".join(map(_visible, _bounded(self.formatException(record.exc_info)).splitlines()))
        return line


def _shown(value: object) -> object:
    return without_tokens(value) if isinstance(value, str) else value


def as_text(form: str, stream: TextIO) -> bool:
    """`form` is auto, json or text: auto is text on a terminal."""
    return form == "text" or (form == "auto" and stream.isatty())


def _local(moment: datetime) -> str:
    return f"{moment.astimezone():%H:%M:%S}"


def _visible(text: str) -> str:
    """Somebody else may have written a part of it: nothing in it steers the terminal."""
    return text if text.isprintable() else "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


class RequestLog:
    """One line per request, buffered, written a few times a second: a write to stderr costs more than many a request.

    Lines hold the route's template, never the path, query, headers or body: any of those may carry a secret. Reads that
    went well are left out unless `reads` is set, and so are routine calls, such as segments of a live stream."""

    def __init__(self, stream: TextStream, *, clock: Clock, reads: bool = False, text: bool = False, interval: float = 0.1) -> None:
        self._stream = stream
        self._clock = clock
        self._reads = reads
        self._line = _text_line if text else _request_line
        self._interval = interval
        self._lines: list[_Entry] = []
        self._timer: asyncio.TimerHandle | None = None

    def wants(self, method: str, status: int, *, routine: bool) -> bool:
        return self._reads or status >= 400 or not (routine or method in _READS)

    def add(self, request: Request, *, status: int, seconds: float) -> None:
        self._lines.append(
            (self._clock(), request.transaction_id, request.caller.name, request.method, request.path, status, seconds)
        )
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._interval, self.flush)

    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        lines, self._lines = self._lines, []
        for text in _pieces([f"{self._line(line)}\n" for line in lines]):
            self._stream.write(text)
            self._stream.flush()


def _pieces(lines: Sequence[str]) -> Iterator[str]:
    """Whole lines, in texts that a pipe takes in one piece: other processes write to it too."""
    text = ""
    for line in lines:
        if text and len(text) + len(line) > _ATOMIC:
            yield text
            text = ""
        text += line
    if text:
        yield text


def _request_line(entry: _Entry) -> str:
    time, transaction_id, client, method, route, status, seconds = entry
    return _line(
        {
            "time": iso(time),
            "level": "INFO" if status >= 400 or method not in _READS else "DEBUG",
            "logger": "medialedger.request",
            "message": f"{method} {route} {status}",
            "transactionId": transaction_id,
            "client": client,
            "method": method,
            "route": route,
            "status": status,
            "ms": round(seconds * 1000, 2),
        }
    )


def _text_line(entry: _Entry) -> str:
    time, transaction_id, client, method, route, status, seconds = entry
    shown = f"{seconds * 1000:.0f} ms {client} {transaction_id.partition('-')[0]}"
    return f"{_local(time)} {_visible(f'{method} {route} {status} {shown}')}"
