"""Requests with large bodies: so many at a time in memory, and one after another from their parsing to their response.

Parsing and storing a megabyte takes a tenth of a second in which nothing else runs. Many at once would hold up all other requests
for as long as all of them take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final, NamedTuple

_LARGE: Final = 32_768

Places = Callable[[], AbstractAsyncContextManager[None]]


def is_large(headers: Mapping[bytes, bytes]) -> bool:
    """A body without a length may be."""
    length = headers.get(b"content-length", b"")
    return int(length) > _LARGE if length.isdigit() else b"transfer-encoding" in headers


class LargeBodies(NamedTuple):
    """`room` is a place to read the body, until the response; `turn` one to parse it, until the response. Without them there are as
    many as are asked for."""

    room: Places = nullcontext
    turn: Places = nullcontext
