"""The port of a kind of session: what runs, and where it is reported. Workers of sessions know nothing else about what they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from projections.kernel.sql.storable_text import storable_text
from projections.session.store import Drawn, Wanted, WantedQuery


class CannotRun(Exception):
    """Raised when there is nothing to run, and another attempt would end the same. Its text is one sentence for the operator,
    without secrets."""

    @property
    def reason(self) -> str:
        return str(self)


class StartFailed(Exception):
    """Raised when a session could not be started and is to be retried. Its text is one sentence for the operator, without secrets.
    `waits` is True if it waits for something else, so nothing was attempted."""

    def __init__(self, sentence: str, *, waits: bool = False) -> None:
        super().__init__(sentence)
        self.waits = waits


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """The reason for which a session ended without being stopped. `forgiven`: it is restarted soon, however often this happens.
    `waits`: the same, and it is not counted, because it has not begun. `over`: everything has been sent, and it is not restarted.
    """

    reason: str
    forgiven: bool = False
    waits: bool = False
    over: bool = False
    hopeless: bool = False

    def __post_init__(self) -> None:
        """Make the reason storable: it may be text from an external program."""
        object.__setattr__(self, "reason", storable_text(self.reason))


class RunningSession(Protocol):
    """A session from its start to its end."""

    async def ended(self) -> SessionEnd:
        """Wait until the session ends without being stopped."""
        ...

    async def stop(self, *, final: bool) -> None:
        """Stop the session. Nothing is sent any more when this returns. `final` is True if no further session of the key follows.
        It may be called again."""
        ...

    def statistics(self) -> Mapping[str, Any]:
        """Return statistics as JSON, without secrets."""
        ...


class SessionKind(Protocol):
    """A kind of session. `wanted` is the query for the sessions that are to run. A report is repeated if its answer was lost."""

    @property
    def wanted(self) -> WantedQuery: ...

    async def start(self, wanted: Wanted, drawn: Drawn, *, may_send: Callable[[], bool]) -> RunningSession:
        """Start a session. Raise `CannotRun` or `StartFailed`. `may_send` is called before every write. The call is cancelled if
        the session is to stop before it has started: when it ends, nothing of the session runs any more."""
        ...

    async def report_start(self, wanted: Wanted, number: int) -> None: ...

    async def report_stop(self, owner: str, number: int, *, reason: str) -> None:
        """Report the stop of a session. `reason` is empty if the stop was ordered."""
        ...

    async def report_failure(self, wanted: Wanted, number: int | None, *, reason: str) -> None:
        """Report that the session was given up until the next order. Without a number nothing ever ran."""
        ...
