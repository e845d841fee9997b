"""JSON arrays of any length: one that has several parts is sent while it is read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

from api.http.response import Response, encode


async def array(parts: AsyncIterator[Sequence[Any]], *, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """An array that comes in one part is sent at once, with its length. A fault in the first two parts is an error response; a
    later one breaks the connection off."""
    first = await anext(parts, None) or []
    second = await anext(parts, None)
    if second is None:
        return Response(first, headers=headers)
    return Response(_pieces([first, second], parts), headers=headers)


async def _pieces(begun: Iterable[Sequence[Any]], rest: AsyncIterator[Sequence[Any]]) -> AsyncIterator[bytes]:
    before = b"["
    for part in begun:
        if part:
            yield before + _joined(part)
            before = b","
    async for part in rest:
        if part:
            yield before + _joined(part)
            before = b","
    yield b"]" if before == b"," else b"[]"


def _joined(entries: Sequence[Any]) -> bytes:
    return b",".join(map(encode, entries))
