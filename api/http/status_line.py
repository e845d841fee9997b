"""Other words in the status line of one response than those that its status has: uvicorn takes the status alone."""

from __future__ import annotations

from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

REASON: Final = "medialedger.reason"
"""In the scope's extensions: a function of a scope and of the words that the status line of its response gets."""


class WithReason:
    """The transport of one response until its head is written."""

    def __init__(self, cycle: RequestResponseCycle, reason: bytes) -> None:
        self._cycle = cycle
        self._reason = reason
        self._transport: Any = cycle.transport

    def write(self, head: bytes) -> None:
        self._cycle.transport = self._transport
        version, status, rest = head.split(b" ", 2)
        self._transport.write(b" ".join((version, status, self._reason + rest[rest.index(b"\r\n") :])))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
