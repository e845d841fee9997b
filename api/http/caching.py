"""The headers that tell caches what they may keep of a response: docs/how-to/proxy.md#caches.

An API key comes in headers that no cache knows to be a credential, so a shared cache that is told nothing keeps the answer to one
caller and gives it to the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

Headers = list[tuple[bytes, bytes]]

CREDENTIALS: Final = b"api-key, x-auth-key, authorization, cookie"
"""The request headers that decide who a caller is."""
NOSNIFF: Final = (b"x-content-type-options", b"nosniff")
"""A header of every response: no browser guesses another type than the one that is sent."""
_NO_STORE: Final = b"no-store"
_PRIVATE: Final = b"private, no-cache"
_ERROR: Final = 400


@dataclass(frozen=True, slots=True)
class Caching:
    """The rule of a route. `value`: what Cache-Control says where the response itself names nothing as strict; `None`: the response
    decides. `varies`: the response depends on who asks."""

    value: bytes | None = None
    varies: bool = False

    def add(self, headers: Headers, *, status: int) -> None:
        """An error is never kept: it may be over in a moment."""
        value = _NO_STORE if status >= _ERROR else self.value
        own = next((found for name, found in headers if name == b"cache-control"), None)
        if value is not None and (own is None or (self.value is not None and not _is_private(own))):
            headers[:] = [pair for pair in headers if pair[0] != b"cache-control"]
            headers.append((b"cache-control", value))
        if self.varies:
            headers.insert(0, (b"vary", CREDENTIALS))


def caching_of(*, protected: bool, stored: bool) -> Caching:
    """`protected`: the route needs a key. Without `stored` no cache keeps the response, that of a browser neither."""
    if not stored:
        return NOT_STORED
    return KEPT_BY_ITS_CALLER if protected else UP_TO_THE_RESPONSE


UP_TO_THE_RESPONSE: Final = Caching()
KEPT_BY_ITS_CALLER: Final = Caching(_PRIVATE, varies=True)
NOT_STORED: Final = Caching(_NO_STORE)


def _is_private(value: bytes) -> bool:
    return b"no-store" in value or b"private" in value
