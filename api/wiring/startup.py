"""What the command line needs to know of a product: how to run it, and why it may not start."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from api.http.connection_limits import Connections  # a process of workers has no server

LOST_KEY: Final = "see docs/how-to/when-a-master-key-is-lost.md"
AsgiApplication = Callable[[Any, Any, Any], Awaitable[None]]


class StartError(Exception):
    """The product cannot start, for a reason that a person can correct. `message` is one line and holds no secret."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Runnable(Protocol):
    """What a server process runs. `stop` is called once for each that was built, even if `start` failed half-way."""

    @property
    def app(self) -> AsgiApplication: ...

    @property
    def connections(self) -> Connections:
        """The limits of its clients' connections."""
        ...

    async def start(self) -> None: ...

    def drain(self) -> None:
        """No new request will come: what does not end by itself, such as a stream of events, ends now."""
        ...

    async def stop(self) -> None: ...

    def summary(self) -> Sequence[tuple[str, str]]:
        """Lines for the person who started it, such as `("admin key", "/srv/home/admin-api-key")`."""
        ...
