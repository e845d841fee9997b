"""Spans of distributed traces: the interface between the product and a tracer. Without a tracer nothing is recorded, but trace
contexts are passed on.

A trace context is the text of a W3C `traceparent`. The cause of an event holds it, so a trace continues in other processes.
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
    """A piece of work within a trace, while it lasts."""

    def child_context(self, trace_parent: str | None) -> str | None:
        """Return the context for work that follows from this one: that of the span, or without a tracer the given context."""
        ...

    def note(self, name: str, value: str | int) -> None:
        """Set an attribute."""
        ...

    def failed(self, reason: str) -> None:
        """Mark the span as failed. `reason` is the name of an exception or a status, since a message might contain what must not
        leave the product."""
        ...


class Tracer(Protocol):
    """Records spans and exports them."""

    @property
    def on(self) -> bool: ...

    def span(
        self, name: str, *, kind: Kind = "internal", parent: str | None, attributes: Attributes = NO_ATTRIBUTES
    ) -> AbstractContextManager[Span]:
        """Return a span that lasts as long as the block. An exception that leaves the block fails it. Without a parent it begins a
        trace."""
        ...

    def consumed(self, consumer: str, trace_parents: Iterable[str], *, since: int) -> None:
        """Record a span for each context whose events a consumer has processed since a time in nanoseconds."""
        ...

    def consumer_context(self, consumer: str, trace_parent: str | None) -> str | None:
        """Return the context of that consumer's span, which is the same in any process because its id is derived from the
        arguments."""
        ...

    async def stop(self) -> None:
        """Send the remaining spans, within a few seconds."""
        ...


class _NoSpan:
    """A span that records nothing and passes the trace on unchanged."""

    def child_context(self, trace_parent: str | None) -> str | None:
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
"""The tracer for a process without tracing."""


def within(span: Span, cause: Cause) -> Cause:
    """Return the cause of what happens in a span."""
    return cause.traced(span.child_context(cause.trace_parent))


def trace_parents(metadata: Iterable[str]) -> list[str]:
    """Return the distinct contexts in the stored metadata of events."""
    contexts = (json.loads(text).get("trace_parent") for text in metadata if '"trace_parent"' in text)
    return list(dict.fromkeys(text for text in contexts if isinstance(text, str)))
