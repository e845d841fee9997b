"""Byte ranges of a GET: RFC 9110, 14. One range is served; several are answered with the whole file, as the standard allows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_ONE: Final = re.compile(r"bytes=[ \t]*([0-9]{0,18})-([0-9]{0,18})[ \t]*", re.IGNORECASE)


class NotSatisfiable(Exception):
    """Raised when no byte of the range is in the file."""


@dataclass(frozen=True, slots=True)
class ByteRange:
    start: int
    size: int

    def content_range(self, total: int) -> str:
        return f"bytes {self.start}-{self.start + self.size - 1}/{total}"


def byte_range(header: str, total: int) -> ByteRange | None:
    """Parse a Range header. Return None for a header that is ignored. Raise `NotSatisfiable` if no byte of the range is in the
    file."""
    match = _ONE.fullmatch(header)
    if match is None or match[0].strip().endswith("=-"):
        return None
    first, last = match[1], match[2]
    if not first:
        size = min(int(last), total)
        if not size:
            raise NotSatisfiable
        return ByteRange(total - size, size)
    start, end = int(first), min(int(last), total - 1) if last else total - 1
    if last and int(last) < start:
        return None
    if start >= total:
        raise NotSatisfiable
    return ByteRange(start, end - start + 1)
