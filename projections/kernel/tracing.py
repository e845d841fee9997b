"""Spans of distributed traces: what the product's parts tell a tracer. Without one nothing is recorded, and traces are passed on.

A trace context is the text of a W3C `traceparent`. The cause of an event holds it, so a trace goes on in other processes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Literal, Protocol

from domain.kernel.cause import Cause

Kind = Literal["internal", "server", "client", "consumer"]
Attributes = Mapping[str, str | int]
NO_ATTRIBUTES: Final[Attributes] = {}


class Span(Protocol):
    """One piece of work of a trace, while it lasts."""

    def passed_on(self, trace_parent: str | None) -> str | None:
        """The context for what this work leads to: the span's, or without a tracer the one that is given."""
        ...

    def note(self, name: str, value: str | int) -> None:
        """Set an attribute."""
        ...

    def failed(self, reason: str) -> None:
        """`reason` is the name of an exception or a status: a message might hold what must not leave the product."""
        ...


class Tracer(Protocol):
    """Records spans and sends them away."""

    @property
    def on(self) -> bool: ...

    def span(
        self, name: str, *, kind: Kind = "internal", parent: str | None, attributes: Attributes = NO_ATTRIBUTES
    ) -> AbstractContextManager[Span]:
        """A span as long as the block. An exception that leaves the block fails it. Without a parent it begins a trace."""
        ...

    def consumed(self, consumer: str, trace_parents: Iterable[str], *, since: int) -> None:
        """A consumer has taken in what these contexts caused, since a time in nanoseconds: a span for each."""
        ...

    def consumer_context(self, consumer: str, trace_parent: str | None) -> str | None:
        """The context of that consumer's span, in any process: its id follows from the other two."""
        ...

    async def stop(self) -> None:
        """Send what is left, within a few seconds."""
        ...


class _NoSpan:
    """Passes the trace on as it came."""

    def passed_on(self, trace_parent: str | None) -> str | None:
        return trace_parent

    def note(self, name: str, value: str | int) -> None:
        pass

    def failed(self, reason: str) -> None:
        pass


class _Untraced:
    on = False
    _span: Final[AbstractContextManager[Span]] = nullcontext(_NoSpan())

    def span(
        self, name: str, *, kind: Kind = "internal", parent: str | None, attributes: Attributes = NO_ATTRIBUTES
    ) -> AbstractContextManager[Span]:
        return self._span

    def consumed(self, consumer: str, trace_parents: Iterable[str], *, since: int) -> None:
        pass

    def consumer_context(self, consumer: str, trace_parent: str | None) -> str | None:
        return trace_parent

    async def stop(self) -> None:
        pass


UNTRACED: Final[Tracer] = _Untraced()
"""The tracer where traces are off."""


def within(span: Span, cause: Cause) -> Cause:
    """The cause of what happens in a span."""
    return cause.traced(span.passed_on(cause.trace_parent))


def trace_parents(metadata: Iterable[str]) -> list[str]:
    """The contexts in the stored metadata of events, each once."""
    found = (json.loads(text).get("trace_parent") for text in metadata if '"trace_parent"' in text)
    return list(dict.fromkeys(text for text in found if isinstance(text, str)))
