"""The interface between the command line and a product: how to run it, and why it may not start."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from api.guards.limits import Connections  # a process of workers has no server

LOST_KEY: Final = "see docs/how-to/when-a-master-key-is-lost.md"
AsgiApplication = Callable[[Any, Any, Any], Awaitable[None]]


class StartError(Exception):
    """Raised when the product cannot start, for a reason that a person can correct. `message` is one line and contains no
    secret."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Runnable(Protocol):
    """An application that a server process runs. `stop` is called once for each that was built, even if `start` failed half-way."""

    @property
    def app(self) -> AsgiApplication: ...

    @property
    def connections(self) -> Connections:
        """The limits on its clients' connections."""
        ...

    async def start(self) -> None: ...

    def drain(self) -> None:
        """End the answers that do not end on their own, such as streams of events. No new request will come."""
        ...

    async def stop(self) -> None: ...

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return lines for the person who started it, such as `("admin key", "/srv/home/admin-api-key")`."""
        ...
