"""W3C Trace Context: the header `traceparent`, by which a gateway says of which trace a request is a part."""

from __future__ import annotations

from re import compile as regex
from typing import Final

_PARENT: Final = regex(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[\x21-\x7e]*)?")
_NO_TRACE: Final = b"0" * 32
_NO_PARENT: Final = b"0" * 16
_LONGEST: Final = 512


def trace_parent(header: bytes) -> str | None:
    """The header, as version 00 writes it; `None` where it is invalid, which is no error: tracing never stops a request.
    A later version may have more behind its four fields."""
    found = None if len(header) > _LONGEST else _PARENT.fullmatch(header)
    if found is None or found[1] == b"ff" or found[2] == _NO_TRACE or found[3] == _NO_PARENT:
        return None
    if found[1] == b"00" and found[5] is not None:
        return None
    return b"-".join((b"00", found[2], found[3], found[4])).decode("ascii")
