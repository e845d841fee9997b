"""The application behind the guards: an ASGI middleware that connects each request with its connection.

The guard of a connection is in the `state` of the scopes of its requests, where servers put what the lifespan of an application has
made. Endpoints reach it by extensions of the scope.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, Protocol

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]

CONNECTION: Final = "medialedger.connection"
"""The key of the connection's guard in the scope's state."""
CLOSE: Final = "medialedger.close"
"""The key, in the scope's extensions, of a function that closes the connection at once."""
LONG_BODY: Final = "medialedger.long-body"
"""The key, in the scope's extensions, of a function after which the request's body may take any time, as long as data arrives. The
request is carried out to its end if its body is complete when the client disconnects."""
LINGER: Final = "medialedger.linger"
"""The key, in the scope's extensions, of a function that closes the connection if the rest of the body is not wanted. Data that
still arrive are dropped for a moment, so that the client receives the response."""
REASON: Final = "medialedger.reason"
"""The key, in the scope's extensions, of a function that sets the reason phrase in the status line of the response."""


class Guard(Protocol):
    """The guard of a connection, as its requests see it."""

    def begin(self, scope: Scope, receive: Receive) -> Receive | None:
        """Begin a request, and complete its scope. Return the function that receives its messages, or None if its client may not
        have one more."""
        ...

    def end(self) -> None:
        """End the request."""
        ...

    def refusal(self) -> tuple[Message, Message]:
        """Return the response to a request of a client that has too many."""
        ...


class GuardedApplication:
    """Calls the application for each request within the guard of its connection."""

    def __init__(self, app: Asgi) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state: dict[str, Any] = scope.get("state", {})
        guard: Guard | None = state.pop(CONNECTION, None)
        if guard is None:
            await self._app(scope, receive, send)
            return
        guarded = guard.begin(scope, receive)
        try:
            if guarded is None:
                for message in guard.refusal():
                    await send(message)
            else:
                await self._app(scope, guarded, send)
        finally:
            guard.end()
