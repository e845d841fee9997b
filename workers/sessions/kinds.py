"""The port of a kind of session: what runs, and who is told of it. Workers of sessions know nothing else of what they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from projections.kernel.storable import storable_text
from projections.sessions.store import Drawn, Wanted, WantedQuery


class CannotRun(Exception):
    """There is nothing to run, and another try would end the same. One sentence for the operator, without secrets."""

    @property
    def reason(self) -> str:
        return str(self)


class StartFailed(Exception):
    """It could not be started, and is tried again. One sentence, as above. `waits`: for something else, so nothing was tried."""

    def __init__(self, sentence: str, *, waits: bool = False) -> None:
        super().__init__(sentence)
        self.waits = waits


@dataclass(frozen=True, slots=True)
class Ended:
    """Why a session ended by itself. `forgiven`: however often that happens, it is started again, and soon; `waits`: so too, and it
    is not counted, because it has not begun. `over`: all has been sent, and it is not started again."""

    reason: str
    forgiven: bool = False
    waits: bool = False
    over: bool = False
    hopeless: bool = False

    def __post_init__(self) -> None:
        """A program outside may have said it."""
        object.__setattr__(self, "reason", storable_text(self.reason))


class RunningSession(Protocol):
    """From its start to its end."""

    async def ended(self) -> Ended:
        """Waits until it ends by itself."""
        ...

    async def stop(self, *, final: bool) -> None:
        """Nothing is sent any more when this returns. `final`: no further session of the key follows. May be called again."""
        ...

    def statistics(self) -> Mapping[str, Any]:
        """As JSON, without secrets."""
        ...


class SessionKind(Protocol):
    """`wanted` says which sessions are to run. What is reported is reported again where the answer was lost."""

    @property
    def wanted(self) -> WantedQuery: ...

    async def start(self, wanted: Wanted, drawn: Drawn, *, may_send: Callable[[], bool]) -> RunningSession:
        """Raises `CannotRun` and `StartFailed`. `may_send` is asked before every write. It is cancelled when the session is to stop
        before it has started: then nothing of it runs any more when it ends."""
        ...

    async def report_start(self, wanted: Wanted, number: int) -> None: ...

    async def report_stop(self, owner: str, number: int, *, reason: str) -> None:
        """`reason` is empty where the stop was ordered."""
        ...

    async def report_failure(self, wanted: Wanted, number: int | None, *, reason: str) -> None:
        """It was given up until the next order. Without a number nothing ever ran."""
        ...
