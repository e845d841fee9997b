"""Logs: one JSON object per line, of the same shape for messages of the code and for requests; or text for a terminal."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Protocol, TextIO

from pydantic_core import to_json

from api.http.request import Request
from domain.kernel.clock import Clock, iso
from domain.kernel.token_patterns import without_tokens

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

_ATOMIC: Final = 4096
"""PIPE_BUF of Linux in bytes. Lines are ASCII."""
_HALF: Final = 8192
"""Number of characters that are kept of the beginning and of the end of a long text."""
_READS: Final = ("GET", "HEAD")
_Entry = tuple[datetime, str, str, str, str, int, float]
"""Time, transaction id, client, method, route, status and seconds. The request itself is not stored, because that would keep its
body in memory."""


class TextStream(Protocol):
    def write(self, text: str, /) -> object: ...

    def flush(self) -> object: ...


def _line(fields: Mapping[str, Any]) -> str:
    return to_json(fields, fallback=str, serialize_unknown=True).decode()


def _bounded(text: str) -> str:
    """Return the beginning and the end of a text without credentials that are recognized by their form. An error may repeat a
    text of any size from a request."""
    omitted = len(text) - 2 * _HALF
    return without_tokens(text if omitted <= 0 else f"{text[:_HALF]} … {omitted} characters … {text[-_HALF:]}")


class JsonFormatter(logging.Formatter):
    """A formatter for handlers of the standard library. Values passed as `extra` become fields of the line."""

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
    """A formatter for a terminal: local time, level unless it is INFO, message, and a traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()} "
        line = f"{_local(datetime.fromtimestamp(record.created, UTC))} {level}{_visible(_bounded(record.getMessage()))}"
        if record.exc_info:
            line += "\n" + "\n".join(map(_visible, _bounded(self.formatException(record.exc_info)).splitlines()))
        return line


def _shown(value: object) -> object:
    return without_tokens(value) if isinstance(value, str) else value


def as_text(form: str, stream: TextIO) -> bool:
    """Return True if logs are text. `form` is auto, json or text; auto is text on a terminal."""
    return form == "text" or (form == "auto" and stream.isatty())


def _local(moment: datetime) -> str:
    return f"{moment.astimezone():%H:%M:%S}"


def _visible(text: str) -> str:
    """Return the text with unprintable characters escaped, because parts of it may come from requests and must not control the
    terminal."""
    return (
        text
        if text.isprintable()
        else "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
    )


class RequestLog:
    """The log of requests, one line each, buffered and written a few times per second: a write to stderr costs more than many
    requests. Lines hold the route's template, never the path, query, headers or body, which may contain secrets. Successful
    reads are omitted unless `reads` is set, and so are routine calls, such as segments of a live stream."""

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
    """Yield texts of whole lines that a pipe accepts atomically, because other processes write to it too."""
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
